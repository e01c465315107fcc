"""Groups steps into batches, one per question to a model.

A batch holds the next steps that no question has covered yet, as many as fit into one question. So
each step is covered once; late steps go into a later batch.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from ctx.capture.steps import ABOUT_SESSION, Step
from ctx.synthesis.by_model.step_text import step_text
from ctx.synthesis.failures import is_failing
from ctx.tokens import estimate

MOST_TOKENS = 3_000
"""The estimated tokens of the steps in one question. Several times as many are reserved before a
question is sent, so larger batches would soon exceed the limit of a session."""

_ENOUGH = 8
_ENOUGH_AT_THE_END = 3


class StepBatch(NamedTuple):
    steps: tuple[Step, ...]
    """The steps, numbered from 1 in the question."""
    text: str
    """The steps as the model sees them."""

    @property
    def first(self) -> str:
        return self.steps[0].id

    @property
    def files(self) -> tuple[str, ...]:
        """The files of the steps and their findings, without duplicates."""
        named = [step.path for step in self.steps]
        named += [finding.path for step in self.steps for finding in step.findings]
        return tuple(dict.fromkeys(filter(None, named)))


def due_batches(
    steps: Sequence[Step],
    known: Collection[str],
    *,
    is_over: bool,
    most_tokens: int = MOST_TOKENS,
) -> list[StepBatch]:
    """The batches of steps outside `known` that are worth a question."""
    waiting = [step for step in steps if step.id not in known and step.kind not in ABOUT_SESSION]
    found = _stretches(waiting, most_tokens)
    return [each for each in found if _may_add_something(each, is_over=is_over)]


def _stretches(steps: Sequence[Step], most_tokens: int) -> list[StepBatch]:
    found: list[StepBatch] = []
    texts: list[str] = []
    first, size = 0, 0
    for index, step in enumerate(steps):
        text = step_text(index - first + 1, step)
        more = estimate(text) + 1
        if texts and size + more > most_tokens:
            found.append(StepBatch(tuple(steps[first:index]), "\n".join(texts)))
            first, size, texts = index, 0, []
            text = step_text(1, step)
        texts.append(text)
        size += more
    if texts:
        found.append(StepBatch(tuple(steps[first:]), "\n".join(texts)))
    return found


def _may_add_something(batch: StepBatch, *, is_over: bool) -> bool:
    """Whether a batch may contain something that synthesis without a model would miss."""
    steps = batch.steps
    has_work = any(step.kind == "write" or is_failing(step) for step in steps)
    return has_work or len(steps) >= (_ENOUGH_AT_THE_END if is_over else _ENOUGH)
