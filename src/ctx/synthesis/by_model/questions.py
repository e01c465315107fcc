"""Builds the questions to a model: about the excerpts of a session, all of it, or a repair.

The prompts are in `synthesis/prompts`.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import resources
from itertools import accumulate
from string import Template
from typing import Any, Literal, NamedTuple, get_args

from ctx import terms
from ctx.capture.injected_text import without_injected
from ctx.capture.private_text import without_private
from ctx.capture.steps import ABOUT_SESSION, Step
from ctx.ids import NodeId
from ctx.llm.protocol import Request
from ctx.synthesis import dedupe, wording
from ctx.synthesis.observations import ObservationKind, Summary, Synthesis
from ctx.synthesis.sentences import LONGEST
from ctx.synthesis.session_excerpts import MOST_KEPT, Excerpt, ExcerptSource
from ctx.synthesis.statements import MOST
from ctx.synthesis.timeline import Timeline
from ctx.tokens import estimate

Kind = Literal["excerpts", "summary"]

KINDS: tuple[ObservationKind, ...] = get_args(ObservationKind)
SPEAKERS: tuple[ExcerptSource, ...] = ("user", "agent", "pasted")
"""From the one whose words count most."""
SECTIONS = ("investigated", "learned", "completed", "next_steps", "notes")
"""The list sections of a summary that a model may fill."""
MOST_TOKENS = 6_000
"""The estimated tokens of a session in one question."""

_FOR_STATEMENTS = 4
"""A quarter of them is for earlier statements of the project."""
_LONGEST_FIELD = 4_000
_LONGEST_REQUEST = 500
_LONGEST_CLOSING = 1_500
_LONGEST_OBSERVATION = 200
_LONGEST_ANSWER = 3_000
_MOST_REQUESTS = 6
_MOST_FILES = 20
_FOR_THE_ANSWER = 4
_END_OF_SENTENCE = re.compile(r"[.:;]\s|\"\s| - ")
_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}

MOST_MORE_FOR_SUMMARY = MOST * 3 * (_LONGEST_OBSERVATION + len("    \n"))
"""The additional tokens of a summary after an answer about excerpts.

A character takes at most three bytes, or is escaped with two."""


class QuestionOptions(NamedTuple):
    """Limits and sampling for all questions to a model."""

    max_tokens: int
    """The limit for an answer."""
    temperature: float | None = None
    most_tokens: int = MOST_TOKENS
    """The limit for the part of a session that one question shows."""

    def within(self, context_tokens: int) -> "QuestionOptions":
        """The options reduced to a model's context size, which includes the answer."""
        longest = min(self.max_tokens, context_tokens // _FOR_THE_ANSWER)
        # Leave a margin, since token counts are estimated.
        room = (context_tokens - longest) * 8 // 10 - _own_prompt_tokens()
        return self._replace(max_tokens=longest, most_tokens=min(self.most_tokens, room))


class QuestionName(NamedTuple):
    """Identifies a question, independent of its content."""

    session: str
    kind: Kind


class Stated(NamedTuple):
    """What an earlier session of the project stated."""

    id: NodeId
    source: str
    text: str


class ModelQuestion(NamedTuple):
    """A request to a model, and what its answer is checked against."""

    session: str
    kind: Kind
    steps: tuple[str, ...]
    """The ids of the steps that it shows; the last one is the last of the session."""
    request: Request
    excerpts: tuple[Excerpt, ...] = ()
    """In the order of their numbers."""
    statements: tuple[Stated, ...] = ()
    """Their numbers follow those of the excerpts."""

    @property
    def name(self) -> "QuestionName":
        """Equal for the same question when it is built again."""
        return QuestionName(self.session, self.kind)


def excerpts_question(
    session: str,
    steps: Sequence[Step],
    excerpts: Sequence[Excerpt],
    stated: Iterable[Stated],
    voice: QuestionOptions,
) -> ModelQuestion:
    """Asks which excerpts to keep, and what they replace.

    If not all of them fit, the most worthy are shown. Of the earlier statements, those that share
    the most words with the excerpts.
    """
    said = terms.significant(" ".join(each.text for each in excerpts))
    shared = {each: len(terms.significant(each.text) & said) for each in stated}
    related = sorted(filter(shared.get, shared), key=lambda each: -shared[each])
    room = voice.most_tokens // _FOR_STATEMENTS
    listed = related[: _fitting(related, room)]
    ranked = sorted(excerpts, key=lambda each: -each.worth)
    shown = ranked[: _fitting(ranked, voice.most_tokens - room)]
    shown.sort(key=lambda each: (each.at, each.step, each.part))
    said_by = [*map(_line, shown), *map(_line, listed)]
    lines = [f"[{number}] {line}" for number, line in enumerate(said_by, 1)]
    if listed:
        lines.insert(len(shown), "\nWhat earlier sessions stated:\n")
    prompt = _prompt("excerpts").substitute(
        lines="\n".join(lines), first=1, last=len(shown), most=MOST_KEPT
    )
    ids = (*(each.step for each in shown), last_step_id(steps))
    request = _request(prompt, voice, _KEPT)
    return ModelQuestion(session, "excerpts", ids, request, tuple(shown), tuple(listed))


def _fitting(ranked: Sequence[Excerpt | Stated], most_tokens: int) -> int:
    """How many of the first ones fit into a token limit, each with its number."""
    sizes = accumulate(estimate(_line(each)) + 4 for each in ranked)
    return sum(size <= most_tokens for size in sizes)


def _line(said: Excerpt | Stated) -> str:
    return f"{said.source}: {in_one_line(said.text, LONGEST)}"


def in_one_line(text: str, longest: int) -> str:
    """A text on one line, without our markup and unprintable characters."""
    told = without_injected(without_private(text[:_LONGEST_FIELD]))
    visible = "".join(each if each.isprintable() else " " for each in told)
    return wording.shortened(visible, longest)


def summary_question(
    session: str, steps: Sequence[Step], told: Synthesis, voice: QuestionOptions
) -> ModelQuestion:
    """Asks for a summary of a session, based on what is already known about it."""
    timeline = Timeline(steps)
    parts = [
        _part("Asked for", _request_lines(timeline)),
        _part(
            "Observed",
            [f"{each.kind}: {each.title}. {each.text}" for each in told.observations],
            _LONGEST_OBSERVATION,
        ),
    ]
    if timeline.last_words:
        parts.append(_part("Said last", [timeline.last_words[-1].text], _LONGEST_CLOSING))
    parts += _summary_parts(told.summary) if told.summary else []
    prompt = _prompt("end").substitute(known=_lines_in_limit(parts, voice.most_tokens))
    last = (last_step_id(steps),)
    return ModelQuestion(session, "summary", last, _request(prompt, voice, _SUMMARY))


def repair_request(question: ModelQuestion, answer: str, problem: str) -> Request:
    """A request to repeat an answer in the required form."""
    form = question.request.schema or {}
    prompt = _prompt("mend").substitute(
        answer=f"    {_cut_answer(answer)}",
        complaint=problem,
        form=json.dumps(form, separators=(",", ":")),
    )
    return question.request._replace(parts=(prompt,))


def _cut_answer(answer: str) -> str:
    """The beginning of an answer on one line, so that it cannot imitate the prompt."""
    line = " ".join(answer[:_LONGEST_ANSWER].split())
    return line.encode("utf-8", "replace")[:_LONGEST_ANSWER].decode("utf-8", "ignore")


def most_tokens(question: ModelQuestion) -> int:
    """The maximum tokens of a question with a second try; each byte may be a token."""
    mended = repair_request(question, "", "")
    second = _size(mended) + _LONGEST_MENDED + mended.max_tokens
    return max_first_try_tokens(question) + second


def max_first_try_tokens(question: ModelQuestion) -> int:
    """The maximum tokens of the first try alone."""
    return _size(question.request) + question.request.max_tokens


def repeats_prompt(text: str) -> bool:
    """Whether a text repeats an example or instruction of our prompts."""
    return any(dedupe.is_same(text, ours) for ours in _own_phrases())


def last_step_id(steps: Sequence[Step]) -> str:
    """The id of the last step that a summary covers; empty if there is none."""
    return next((step.id for step in reversed(steps) if step.kind not in ABOUT_SESSION), "")


def _request(prompt: str, voice: QuestionOptions, schema: Mapping[str, Any]) -> Request:
    begin = _prompt("begin").substitute()
    return Request(begin, (prompt,), voice.max_tokens, voice.temperature, schema)


# Bytes that the protocol adds to a request: names, the model, the schema's wrapper.
_AROUND = 1_000
# An answer and its problem in a repair request. JSON may need two bytes for one.
_LONGEST_MENDED = 2 * _LONGEST_ANSWER + 400


def _size(request: Request) -> int:
    """The maximum size of a request in bytes."""
    said = [request.system, request.prompt, request.schema]
    return len(json.dumps(said, ensure_ascii=False).encode("utf-8", "replace")) + _AROUND


def _request_lines(timeline: Timeline) -> list[str]:
    """The first and last requests of the user."""
    texts = [said.text for said in timeline.requests]
    if len(texts) > _MOST_REQUESTS:
        texts = texts[: _MOST_REQUESTS // 2] + texts[-_MOST_REQUESTS // 2 :]
    return texts


def _summary_parts(summary: Summary) -> list[str]:
    """The sections of the summary that was made without a model."""
    return [
        _part("Looked into", summary.investigated),
        _part("Done", summary.completed),
        _part("Left", summary.next_steps),
        _part("Noted", summary.notes),
        _part("Edited", summary.files_edited[:_MOST_FILES]),
    ]


def _part(heading: str, lines: Sequence[str], longest: int = _LONGEST_REQUEST) -> str:
    told = [f"    {in_one_line(line, longest)}" for line in lines]
    return "\n".join([f"{heading}:", *told]) if told else ""


def _lines_in_limit(parts: Sequence[str], most_tokens: int) -> str:
    """The first lines that fit into the token limit."""
    lines: list[str] = []
    for line in "\n".join(filter(None, parts)).split("\n"):
        most_tokens -= estimate(line) + 1
        if most_tokens < 0:
            break
        lines.append(line)
    return "\n".join(lines)


@cache
def _own_prompt_tokens() -> int:
    """Tokens of our own prompt text in the longest question."""
    begin, *others = (estimate(_prompt(name).template) for name in ("begin", "excerpts", "end"))
    return begin + max(others)


@cache
def _own_phrases() -> tuple[str, ...]:
    """The sentences of our prompts and their parts."""
    every = wording.line(" ".join(_prompt(name).template for name in ("begin", "excerpts", "end")))
    sentences = _END_OF_SENTENCE.split(every)
    parts = [part for sentence in sentences for part in sentence.split(", ")]
    return wording.distinct(text for text in (*sentences, *parts) if dedupe.words(text))


@cache
def _prompt(name: str) -> Template:
    folder = resources.files("ctx.synthesis").joinpath("prompts")
    return Template(folder.joinpath(f"{name}.md").read_text("utf-8").strip())


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


_EXCERPT = _object(
    {
        "number": {"type": "integer"},
        "speaker": {"type": "string", "enum": list(SPEAKERS)},
        "kind": {"type": "string", "enum": list(KINDS)},
        "object": _TEXT,
        "replaces": {"type": "array", "items": {"type": "integer"}},
    }
)
_KEPT = _object({"kept": {"type": "array", "items": _EXCERPT}})
_SUMMARY = _object({"title": _TEXT, **dict.fromkeys(SECTIONS, _TEXTS)})
