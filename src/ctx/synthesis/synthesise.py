"""From the steps of a session to what memory keeps of it."""

from collections.abc import Sequence

from ctx.capture.session_state import Session
from ctx.capture.steps import Step
from ctx.synthesis import junk
from ctx.synthesis.changes import changes
from ctx.synthesis.course import Course
from ctx.synthesis.decisions import decisions
from ctx.synthesis.discoveries import discoveries
from ctx.synthesis.fixes import fixes
from ctx.synthesis.observations import NOTHING, Observation, Synthesis
from ctx.synthesis.summary import summarise

MOST_STEPS = 20_000
"""Of a session that is longer, the last ones count."""


def synthesise(session: Session, steps: Sequence[Step], *, is_over: bool) -> Synthesis:
    """What there is to keep of a session so far.

    Bug fixes, decisions and discoveries hold as soon as they are there. What was built, and what
    the session was about, is told when the agent rests: it has said its last word, or is gone.
    """
    course = Course([step for step in steps[-MOST_STEPS:] if step.session == session.id])
    if not course.prompts and not course.edits:
        return NOTHING
    fixed = fixes(course)
    told = [*fixed.observations, *decisions(course)]
    found_out = [*discoveries(course), *fixed.flaky]
    # What was found out may be told already, as the cause of a fix or as a decision.
    learned = [*fixed.causes, *(each.title for each in found_out)]
    texts = [*fixed.causes, *(f"{each.title} {each.text}" for each in told)]
    told += [each for each in found_out if not junk.is_told(each.title, texts)]
    if not (is_over or is_at_rest(course.steps)):
        return Synthesis(_in_order(told), None)
    built, done = changes(course, fixed.edits, fixed.failing)
    told += built
    return Synthesis(_in_order(told), summarise(course, told, learned, fixed, done))


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
