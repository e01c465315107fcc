"""Builds the questions to a model: about a batch of steps, a whole session, or a repair.

The prompts are in `synthesis/prompts`.
"""

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from string import Template
from typing import Any, Literal, NamedTuple

from ctx.capture.steps import ABOUT_SESSION, Step
from ctx.llm.protocol import Request
from ctx.synthesis import dedupe, wording
from ctx.synthesis.by_model.step_batches import MOST_TOKENS, StepBatch, indented
from ctx.synthesis.observations import (
    LONGEST_LINE,
    Observation,
    ObservationKind,
    Summary,
    Synthesis,
)
from ctx.synthesis.timeline import Timeline
from ctx.tokens import estimate

Kind = Literal["steps", "summary"]

KINDS: tuple[ObservationKind, ...] = ("decision", "bugfix", "feature", "refactor", "discovery")
MOST_OBSERVATIONS = 12
SECTIONS = ("investigated", "learned", "completed", "next_steps", "notes")
"""The list sections of a summary that a model may fill."""

_LONGEST_REQUEST = 500
_LONGEST_CLOSING = 1_500
_LONGEST_OBSERVATION = 200
_LONGEST_ANSWER = 3_000
_MOST_REQUESTS = 6
_MOST_OBSERVATIONS = 20
_MOST_FILES = 20
_FOR_THE_ANSWER = 4
_END_OF_SENTENCE = re.compile(r"[.:;]\s|\"\s| - ")
_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}


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
    first: str


class ModelQuestion(NamedTuple):
    """A request to a model, and what its answer is checked against."""

    session: str
    kind: Kind
    steps: tuple[str, ...]
    """Ids of its steps, in the order of their numbers; for a summary, of the last step."""
    files: tuple[str, ...]
    """The files that an answer may name."""
    request: Request

    @property
    def first(self) -> str:
        """The first step, which is part of the answer's key; empty for the summary."""
        return self.steps[0] if self.kind == "steps" else ""

    @property
    def name(self) -> "QuestionName":
        """Equal for the same question when it is built again."""
        return QuestionName(self.session, self.kind, self.first)


def batch_question(
    session: str, batch: StepBatch, asked: Step | None, voice: QuestionOptions
) -> ModelQuestion:
    """Asks what is worth keeping of a batch. `asked` is the user's last request before it."""
    before = f"Asked for before:\n{indented(asked.text, _LONGEST_REQUEST)}\n" if asked else ""
    prompt = _prompt("steps").substitute(
        steps=f"{before}{batch.text}", first=1, last=len(batch.steps), most=MOST_OBSERVATIONS
    )
    ids = tuple(step.id for step in batch.steps)
    request = _request(prompt, voice, _OBSERVATIONS)
    return ModelQuestion(session, "steps", ids, batch.files, request)


def summary_question(
    session: str, steps: Sequence[Step], told: Synthesis, voice: QuestionOptions
) -> ModelQuestion:
    """Asks for a summary of a session, based on what is already known about it."""
    timeline = Timeline(steps)
    parts = [
        _part("Asked for", _request_lines(timeline)),
        _part(
            "Observed",
            [_observation_line(each) for each in told.observations[-_MOST_OBSERVATIONS:]],
        ),
    ]
    if timeline.last_words:
        parts.append(f"Said last:\n{indented(timeline.last_words[-1].text, _LONGEST_CLOSING)}")
    parts += _summary_parts(told.summary) if told.summary else []
    prompt = _prompt("end").substitute(known=_lines_in_limit(parts, voice.most_tokens))
    return ModelQuestion(
        session, "summary", (last_step_id(steps),), (), _request(prompt, voice, _SUMMARY)
    )


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


def most_more_for_summary(batches: int) -> int:
    """The additional tokens of a summary after this number of batches."""
    told = min(_MOST_OBSERVATIONS, MOST_OBSERVATIONS * batches)
    # A character takes at most three bytes, or is escaped with two.
    return told * 3 * (_LONGEST_OBSERVATION + len("    \n"))


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
    return [wording.shortened(text, _LONGEST_REQUEST) for text in texts]


def _observation_line(told: Observation) -> str:
    return wording.shortened(f"{told.kind}: {told.title}. {told.text}", _LONGEST_OBSERVATION)


def _summary_parts(summary: Summary) -> list[str]:
    """The sections of the summary that was made without a model."""
    return [
        _part("Looked into", summary.investigated),
        _part("Done", summary.completed),
        _part("Left", summary.next_steps),
        _part("Noted", summary.notes),
        _part("Edited", summary.files_edited[:_MOST_FILES]),
    ]


def _part(heading: str, lines: Sequence[str]) -> str:
    told = [indented(wording.shortened(line, _LONGEST_REQUEST), LONGEST_LINE * 3) for line in lines]
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
    begin, *others = (estimate(_prompt(name).template) for name in ("begin", "steps", "end"))
    return begin + max(others)


@cache
def _own_phrases() -> tuple[str, ...]:
    """The sentences of our prompts and their parts."""
    every = wording.line(" ".join(_prompt(name).template for name in ("begin", "steps", "end")))
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


_OBSERVATION = _object(
    {
        "kind": {"type": "string", "enum": list(KINDS)},
        "title": _TEXT,
        "text": _TEXT,
        "steps": {"type": "array", "items": {"type": "integer"}},
        "files": _TEXTS,
    }
)
_OBSERVATIONS = _object({"observations": {"type": "array", "items": _OBSERVATION}})
_SUMMARY = _object({"title": _TEXT, **dict.fromkeys(SECTIONS, _TEXTS)})
