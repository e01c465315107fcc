"""Groups steps into batches, one per question to a model.

A batch holds the next steps that no question has covered yet, as many as fit into one question. So
each step is covered once; late steps go into a later batch.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from ctx.capture.injected_text import without_injected
from ctx.capture.private_text import without_private
from ctx.capture.steps import ABOUT_SESSION, Step, StepFinding, outcome_text
from ctx.synthesis import wording
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
    steps: Sequence[Step], known: Collection[str], *, is_over: bool, most_tokens: int = MOST_TOKENS
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


_LONGEST_TEXT = 60_000
_LONGEST_MESSAGE = 900
_LONGEST_COMMAND = 300
_LONGEST_PATH = 200
_LONGEST_LINE = 200
_LONGEST_PRINTED = 600
_LONGEST_EXCERPT = 500
_MOST_FINDINGS = 4
_MOST_CHANGES = 10
_MOST_LINES = 12
_INDENT = "    "


def step_text(number: int, step: Step) -> str:
    """A step as text, without useless details; at most a few thousand characters."""
    who = " (subagent)" if step.agent else ""
    return "\n".join([f"[{number}]{who} {_step_action(step)}", *_details(step)])


def indented(text: str, longest: int) -> str:
    """A text with every line indented."""
    return "\n".join(_lines(text, longest))


def _step_action(step: Step) -> str:
    path = _line(step.path, _LONGEST_PATH)
    match step.kind:
        case "prompt":
            return "the person said:" if step.is_by_person else f"a {step.author} said:"
        case "say":
            return "the agent said:"
        case "recap":
            return "the agent summed up:"
        case "title" | "name":
            return f"the session is called {_line(step.text, _LONGEST_LINE)}"
        case "read":
            return f"read {path}"
        case "write":
            ended = "" if step.ok else ", which failed"
            return f"wrote {path} (+{step.added} -{step.removed} lines){ended}"
        case "command":
            return f"ran {_line(step.text, _LONGEST_COMMAND)}{outcome_text(step)}"
        case "search":
            return f"looked for {_line(step.text, _LONGEST_LINE)}"
        case "plan":
            return "planned:"
        case "agent":
            return f"ran a subagent: {_line(step.text, _LONGEST_COMMAND)}"
        case "mark":
            return f"({_line(step.text, _LONGEST_LINE)})"


def _details(step: Step) -> Iterator[str]:
    match step.kind:
        case "prompt" | "say" | "recap" | "plan":
            told = without_injected(without_private(step.text[:_LONGEST_TEXT]))
            yield from _lines(told, _LONGEST_MESSAGE)
        case "write":
            for each in step.changes[:_MOST_CHANGES]:
                yield f"{_INDENT}{each.change} {each.kind} {_line(each.name, _LONGEST_LINE)}"
            yield from _lines(step.excerpt, _LONGEST_EXCERPT)
        case "command" if step.findings:
            for finding in step.findings[:_MOST_FINDINGS]:
                yield f"{_INDENT}{_line(_finding_line(finding), _LONGEST_LINE)}"
        case "command" if not step.ok or step.passed is False:
            # The error is at the end of the output.
            yield from _lines(step.output[-_LONGEST_PRINTED:], _LONGEST_PRINTED)


def _finding_line(finding: StepFinding) -> str:
    place = f"{finding.path}:{finding.line}" if finding.line else finding.path
    return f"{place} {finding.code} {finding.message} {finding.test}"


def _lines(text: str, longest: int) -> list[str]:
    """The non-empty lines of a text, indented and limited in length."""
    cut = text[:longest].strip()
    lines = [_plain(line).rstrip() for line in cut.splitlines()]
    told = [f"{_INDENT}{line}" for line in lines if line.strip()]
    more = [f"{_INDENT}…"] if len(told) > _MOST_LINES or len(text.strip()) > longest else []
    return told[:_MOST_LINES] + more


def _line(text: str, longest: int) -> str:
    return wording.shortened(_plain(text[: 4 * longest]), longest)


def _plain(text: str) -> str:
    """A text without unprintable characters."""
    return "".join(each if each.isprintable() or each == "\t" else " " for each in text)
