"""The limits of each layer of a context.

Hooks load this module when they compose a context.
"""

from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctx.config.resolve import Config


class LayerLimits(NamedTuple):
    """The limits of each layer: tokens, for a budget of 2,000, and items."""

    memory: int = 700
    standing: int = 130
    rules: int = 180
    commands: int = 80
    past_work: int = 240
    code: int = 50
    sessions: int = 80
    learnings: int = 40
    frame: int = 150
    most_sessions: int = 10
    most_commands: int = 8
    most_changes: int = 30
    most_learnings: int = 10
    most_past_work: int = 10
    least_confidence: int = 500
    """The least confidence of a learning, in thousandths."""


def from_config(config: "Config") -> LayerLimits:
    """The limits in the settings."""
    return LayerLimits(
        past_work=config.integer("context.observations_cap"),
        code=config.integer("context.function_map_cap"),
        sessions=config.integer("context.session_index_cap"),
        learnings=config.integer("context.learnings_cap"),
        frame=config.integer("context.reserve"),
        most_sessions=config.integer("context.max_sessions"),
        most_changes=config.integer("context.max_functions"),
        most_learnings=config.integer("context.max_learnings"),
        most_past_work=config.integer("context.max_observations"),
        least_confidence=round(config.number("context.min_learning_confidence") * 1000),
    )
