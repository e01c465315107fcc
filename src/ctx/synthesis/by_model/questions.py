"""The questions that a model is asked: of a stretch of steps, of the whole session, and to mend.

Their words are in `synthesis/prompts`.
"""

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from string import Template
from typing import Any, Literal, NamedTuple

from ctx.capture.steps import Step
from ctx.llm.protocol import Request
from ctx.synthesis import dedupe, one_line_text
from ctx.synthesis.by_model.step_batches import MOST_TOKENS, StepBatch
from ctx.synthesis.by_model.step_text import indented
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
"""Of a summary: those that are lists, and that a model may fill."""

_LONGEST_ASKED = 500
_LONGEST_CLOSING = 1_500
_LONGEST_TOLD = 200
_LONGEST_ANSWER = 3_000
_MOST_ASKED = 6
_MOST_TOLD = 20
_MOST_FILES = 20
_FOR_THE_ANSWER = 4
_END_OF_SENTENCE = re.compile(r"[.:;]\s|\"\s| - ")
_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}


class QuestionOptions(NamedTuple):
    """How much a model is told, and how it is to answer, whatever it is asked."""

    max_tokens: int
    """Of an answer."""
    temperature: float | None = None
    most_tokens: int = MOST_TOKENS
    """Of what it is told of a session in one question."""

    def within(self, context_tokens: int) -> "QuestionOptions":
        """For a model that takes so much in one request, with its answer."""
        longest = min(self.max_tokens, context_tokens // _FOR_THE_ANSWER)
        # Our estimate is one.
        room = (context_tokens - longest) * 8 // 10 - _own_prompt_tokens()
        return self._replace(max_tokens=longest, most_tokens=min(self.most_tokens, room))


class QuestionName(NamedTuple):
    """Which question it is, whatever it says."""

    session: str
    kind: Kind
    first: str


class ModelQuestion(NamedTuple):
    """Something to ask a model, and what its answer is held against."""

    session: str
    kind: Kind
    steps: tuple[str, ...]
    """Ids of the steps that it is about, in the order of their numbers; of a summary, the last."""
    files: tuple[str, ...]
    """Those that an answer can name."""
    request: Request

    @property
    def first(self) -> str:
        """By which the answer is kept. There is one summary."""
        return self.steps[0] if self.kind == "steps" else ""

    @property
    def name(self) -> "QuestionName":
        """The same for the same question, when it is made again."""
        return QuestionName(self.session, self.kind, self.first)


def batch_question(
    session: str, batch: StepBatch, asked: Step | None, voice: QuestionOptions
) -> ModelQuestion:
    """What of some steps is worth keeping. `asked` is what a person had asked for before them."""
    before = f"Asked for before:\n{indented(asked.text, _LONGEST_ASKED)}\n" if asked else ""
    prompt = _prompt("steps").substitute(
        steps=f"{before}{batch.text}",
        first=1,
        last=len(batch.steps),
        most=MOST_OBSERVATIONS,
    )
    ids = tuple(step.id for step in batch.steps)
    request = _request(prompt, voice, _OBSERVATIONS)
    return ModelQuestion(session, "steps", ids, batch.files, request)


def summary_question(
    session: str, steps: Sequence[Step], told: Synthesis, voice: QuestionOptions
) -> ModelQuestion:
    """How a whole session is summed up, from what is known of it already."""
    timeline = Timeline(steps)
    parts = [
        _part("Asked for", _request_lines(timeline)),
        _part("Observed", [_observation_line(each) for each in told.observations[-_MOST_TOLD:]]),
    ]
    if timeline.last_words:
        parts.append(f"Said last:\n{indented(timeline.last_words[-1].text, _LONGEST_CLOSING)}")
    parts += _summary_parts(told.summary) if told.summary else []
    prompt = _prompt("end").substitute(known=_fitting(parts, voice.most_tokens))
    return ModelQuestion(
        session, "summary", (last_step_id(steps),), (), _request(prompt, voice, _SUMMARY)
    )


def repair_request(question: ModelQuestion, answer: str, problem: str) -> Request:
    """The same once more, in the form that was asked for."""
    form = question.request.schema or {}
    prompt = _prompt("mend").substitute(
        answer=f"    {_cut(answer)}",
        complaint=problem,
        form=json.dumps(form, separators=(",", ":")),
    )
    return question.request._replace(parts=(prompt,))


def _cut(answer: str) -> str:
    """The beginning of an answer, in one line: no line of it looks like words of ours."""
    line = " ".join(answer[:_LONGEST_ANSWER].split())
    return line.encode("utf-8", "replace")[:_LONGEST_ANSWER].decode("utf-8", "ignore")


def most_tokens(question: ModelQuestion) -> int:
    """What asking it can take at most, with a second try; each byte may be a token."""
    mended = repair_request(question, "", "")
    second = _size(mended) + _LONGEST_MENDED + mended.max_tokens
    return most_at_once(question) + second


def most_at_once(question: ModelQuestion) -> int:
    """The same for the first try alone."""
    return _size(question.request) + question.request.max_tokens


def most_more_for_summary(batches: int) -> int:
    """What a summary can take more, when so many stretches of steps will have been told."""
    told = min(_MOST_TOLD, MOST_OBSERVATIONS * batches)
    # A character has three bytes at most, or is written as two.
    return told * 3 * (_LONGEST_TOLD + len("    \n"))


def repeats_prompt(text: str) -> bool:
    """Whether a model says again what we said to it, as an example or of its form."""
    return any(dedupe.is_same(text, ours) for ours in _own_phrases())


def last_step_id(steps: Sequence[Step]) -> str:
    """The id of the last step that a summary tells of; empty where there is none."""
    return next((step.id for step in reversed(steps) if step.kind != "mark"), "")


def _request(prompt: str, voice: QuestionOptions, schema: Mapping[str, Any]) -> Request:
    begin = _prompt("begin").substitute()
    return Request(begin, (prompt,), voice.max_tokens, voice.temperature, schema)


# What a server's protocol adds to a request: names, the model, what the schema is wrapped in.
_AROUND = 1_000
# An answer and a complaint in a second question. JSON may need two bytes for one.
_LONGEST_MENDED = 2 * _LONGEST_ANSWER + 400


def _size(request: Request) -> int:
    """Bytes of a request as it is sent, at most."""
    said = [request.system, request.prompt, request.schema]
    return len(json.dumps(said, ensure_ascii=False).encode("utf-8", "replace")) + _AROUND


def _request_lines(timeline: Timeline) -> list[str]:
    """The first and the last things that were asked for."""
    texts = [said.text for said in timeline.requests]
    if len(texts) > _MOST_ASKED:
        texts = texts[: _MOST_ASKED // 2] + texts[-_MOST_ASKED // 2 :]
    return [one_line_text.shortened(text, _LONGEST_ASKED) for text in texts]


def _observation_line(told: Observation) -> str:
    return one_line_text.shortened(f"{told.kind}: {told.title}. {told.text}", _LONGEST_TOLD)


def _summary_parts(summary: Summary) -> list[str]:
    """What is known without a model. It is no question of words which files were edited."""
    return [
        _part("Looked into", summary.investigated),
        _part("Done", summary.completed),
        _part("Left", summary.next_steps),
        _part("Noted", summary.notes),
        _part("Edited", summary.files_edited[:_MOST_FILES]),
    ]


def _part(heading: str, lines: Sequence[str]) -> str:
    told = [
        indented(one_line_text.shortened(line, _LONGEST_ASKED), LONGEST_LINE * 3) for line in lines
    ]
    return "\n".join([f"{heading}:", *told]) if told else ""


def _fitting(parts: Sequence[str], most_tokens: int) -> str:
    """As many of the lines as there is room for, from the beginning."""
    lines: list[str] = []
    for line in "\n".join(filter(None, parts)).split("\n"):
        most_tokens -= estimate(line) + 1
        if most_tokens < 0:
            break
        lines.append(line)
    return "\n".join(lines)


@cache
def _own_prompt_tokens() -> int:
    """Tokens of what is said to a model beside the session, in the longest question."""
    begin, *others = (estimate(_prompt(name).template) for name in ("begin", "steps", "end"))
    return begin + max(others)


@cache
def _own_phrases() -> tuple[str, ...]:
    """What we say ourselves, in sentences and in the parts of them."""
    every = one_line_text.line(
        " ".join(_prompt(name).template for name in ("begin", "steps", "end"))
    )
    sentences = _END_OF_SENTENCE.split(every)
    parts = [part for sentence in sentences for part in sentence.split(", ")]
    return one_line_text.distinct(text for text in (*sentences, *parts) if dedupe.words(text))


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
