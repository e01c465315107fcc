"""Which steps a model is asked about together.

A stretch is whatever was not asked about yet, in order, as long as it fits into one question. So
each step is asked about once; one that comes late is in a later stretch.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from ctx.capture.steps import Step
from ctx.synthesis.by_model.step_text import shown
from ctx.synthesis.failures import is_failing
from ctx.tokens import estimate

MOST_TOKENS = 3_000
"""Of the steps in one question, by our own estimate. What is set aside for a question before it is
sent is several times that: a larger one would soon be more than a session may take."""

_ENOUGH = 8
_ENOUGH_AT_THE_END = 3


class StepBatch(NamedTuple):
    steps: tuple[Step, ...]
    """Those that are numbered in the question, from 1."""
    text: str
    """As a model is shown them."""

    @property
    def first(self) -> str:
        return self.steps[0].id

    @property
    def files(self) -> tuple[str, ...]:
        """Those that it is about, each once."""
        named = [step.path for step in self.steps]
        named += [finding.path for step in self.steps for finding in step.findings]
        return tuple(dict.fromkeys(filter(None, named)))


def due(
    steps: Sequence[Step],
    known: Collection[str],
    *,
    is_over: bool,
    most_tokens: int = MOST_TOKENS,
) -> list[StepBatch]:
    """The stretches that are worth a question, of the steps that are not among the known ones."""
    waiting = [step for step in steps if step.id not in known and step.kind != "mark"]
    found = _stretches(waiting, most_tokens)
    return [each for each in found if _is_worth_it(each, is_over=is_over)]


def _stretches(steps: Sequence[Step], most_tokens: int) -> list[StepBatch]:
    found: list[StepBatch] = []
    texts: list[str] = []
    first, size = 0, 0
    for index, step in enumerate(steps):
        text = shown(index - first + 1, step)
        more = estimate(text) + 1
        if texts and size + more > most_tokens:
            found.append(StepBatch(tuple(steps[first:index]), "\n".join(texts)))
            first, size, texts = index, 0, []
            text = shown(1, step)
        texts.append(text)
        size += more
    if texts:
        found.append(StepBatch(tuple(steps[first:]), "\n".join(texts)))
    return found


def _is_worth_it(batch: StepBatch, *, is_over: bool) -> bool:
    """Whether it can hold something that synthesis could not tell as well by itself."""
    steps = batch.steps
    has_work = any(step.kind == "write" or is_failing(step) for step in steps)
    return has_work or len(steps) >= (_ENOUGH_AT_THE_END if is_over else _ENOUGH)
