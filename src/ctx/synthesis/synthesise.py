"""From the steps of a session to what memory keeps of it."""

from collections.abc import Sequence

from ctx.capture.state import Session
from ctx.capture.steps import Step
from ctx.synthesis import dedupe
from ctx.synthesis.code_changes import changes
from ctx.synthesis.decisions import decisions
from ctx.synthesis.discoveries import discoveries
from ctx.synthesis.fixes import fixes
from ctx.synthesis.observations import NOTHING, Observation, Synthesis
from ctx.synthesis.summary import summarise
from ctx.synthesis.timeline import Timeline

MOST_STEPS = 20_000
"""Of a session that is longer, the last ones count."""


def synthesise(session: Session, steps: Sequence[Step], *, is_over: bool) -> Synthesis:
    """What there is to keep of a session so far.

    Bug fixes, decisions and discoveries hold as soon as they are there. What was built, and what
    the session was about, is told when the agent rests: it has said its last word, or is gone.
    """
    timeline = Timeline([step for step in steps[-MOST_STEPS:] if step.session == session.id])
    if not timeline.prompts and not timeline.edits:
        return NOTHING
    fixed = fixes(timeline)
    told = [*fixed.observations, *decisions(timeline)]
    found_out = [*discoveries(timeline), *fixed.flaky]
    # What was found out may be told already, as the cause of a fix or as a decision.
    learned = [*fixed.causes, *(each.title for each in found_out)]
    texts = [*fixed.causes, *(f"{each.title} {each.text}" for each in told)]
    told += [each for each in found_out if not dedupe.is_repeated(each.title, texts)]
    if not (is_over or is_at_rest(timeline.steps)):
        return Synthesis(_in_order(told), None)
    built, done = changes(timeline, fixed.edits, fixed.failing)
    told += built
    return Synthesis(_in_order(told), summarise(timeline, told, learned, fixed, done))


def is_at_rest(steps: Sequence[Step]) -> bool:
    """Whether the last thing the agent did was to say something."""
    for step in reversed(steps):
        if step.kind != "mark" and not step.agent:
            return step.kind == "say"
    return False


def _in_order(told: Sequence[Observation]) -> tuple[Observation, ...]:
    """By time; each key once."""
    unique: dict[str, Observation] = {}
    for each in told:
        unique.setdefault(each.key, each)
    return tuple(sorted(unique.values(), key=lambda each: each.at))
