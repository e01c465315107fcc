"""Turns the steps of a session into observations and a summary."""

from collections.abc import Sequence

from ctx.capture.session_state import Session
from ctx.capture.steps import ABOUT_SESSION, Step
from ctx.synthesis import dedupe
from ctx.synthesis.code_changes import changes
from ctx.synthesis.decisions import decisions
from ctx.synthesis.discoveries import discoveries
from ctx.synthesis.fixes import fixes
from ctx.synthesis.observations import NOTHING, Observation, Synthesis
from ctx.synthesis.summary import summarise
from ctx.synthesis.timeline import Timeline

MOST_STEPS = 20_000
"""Of a longer session, only the last steps are read."""


def synthesise(session: Session, steps: Sequence[Step], *, is_over: bool) -> Synthesis:
    """The observations and the summary of a session so far.

    Bug fixes, decisions and discoveries are reported at once. Features, refactorings and the
    summary wait until the agent is idle or the session is over.
    """
    timeline = Timeline([step for step in steps[-MOST_STEPS:] if step.session == session.id])
    if not timeline.prompts and not timeline.edits:
        return NOTHING
    fixed = fixes(timeline)
    told = [*fixed.observations, *decisions(timeline)]
    found_out = [*discoveries(timeline), *fixed.flaky]
    # A discovery may already be part of a fix or a decision.
    learned = [*fixed.causes, *(each.title for each in found_out)]
    texts = [*fixed.causes, *(f"{each.title} {each.text}" for each in told)]
    told += [each for each in found_out if not dedupe.is_repeated(each.title, texts)]
    if not (is_over or is_at_rest(timeline.steps)):
        return Synthesis(_in_order(told), None)
    built, done = changes(timeline, fixed.edits, fixed.failing)
    told += built
    return Synthesis(_in_order(told), summarise(timeline, told, learned, fixed, done))


def is_at_rest(steps: Sequence[Step]) -> bool:
    """Whether the agent is idle: its last step is a message."""
    for step in reversed(steps):
        if step.kind != "recap" and step.kind not in ABOUT_SESSION and not step.agent:
            return step.kind == "say"
    return False


def _in_order(told: Sequence[Observation]) -> tuple[Observation, ...]:
    """Observations by time, without duplicate keys."""
    unique: dict[str, Observation] = {}
    for each in told:
        unique.setdefault(each.key, each)
    return tuple(sorted(unique.values(), key=lambda each: each.at))
