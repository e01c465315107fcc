"""Parses a model's answer.

Parsing never raises: it returns the usable parts, or one sentence about the problem, which is sent
to the model if it can repair the answer. Text or a fence around the JSON object is allowed.
Observations without an existing step are dropped, and so are empty ones and copies of our prompt.
"""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from ctx.capture.injected_text import without_injected
from ctx.capture.private_text import without_private
from ctx.redaction import redact
from ctx.synthesis import dedupe, wording
from ctx.synthesis.by_model import questions
from ctx.synthesis.by_model.questions import KINDS, MOST_OBSERVATIONS, SECTIONS, ModelQuestion
from ctx.synthesis.observations import (
    LONGEST_LINE,
    LONGEST_NAME,
    LONGEST_TEXT,
    LONGEST_TITLE,
    MOST_EVIDENCE,
    MOST_FILES,
)

_LONGEST_ANSWER = 200_000
_LONGEST_FIELD = 4_000
_MOST_LINES = 8
_THOUGHT = "</think>"


class ParsedAnswer(NamedTuple):
    body: dict[str, Any]
    """The usable parts of the answer: cleaned, shortened texts, and step ids."""
    problem: str = ""
    """What is wrong with the answer; then the body is empty."""
    can_be_repaired: bool = False
    """Whether the answer has the content in another form, so that the model invents nothing."""


def read(text: str, question: ModelQuestion) -> ParsedAnswer:
    """Parse the answer to a question."""
    found = _outermost_object(text)
    if found is None:
        return ParsedAnswer({}, "it is no JSON object, or not a whole one.", "{" in text)
    return _observations(found, question) if question.kind == "steps" else _summary(found)


def _outermost_object(text: str) -> dict[str, Any] | None:
    # Some models print their reasoning first.
    told = text[:_LONGEST_ANSWER].rpartition(_THOUGHT)[2]
    begin, end = told.find("{"), told.rfind("}")
    if begin < 0 or end < begin:
        return None
    try:
        found = json.loads(told[begin : end + 1])
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _observations(found: dict[str, Any], question: ModelQuestion) -> ParsedAnswer:
    told = found.get("observations")
    if not isinstance(told, list):
        return _refused_answer('there is no list "observations".')
    kept = []
    problems = []
    for number, each in enumerate(told[:MOST_OBSERVATIONS], 1):
        if problem := _problem(each):
            problems.append(f"observation {number} {problem}")
            continue
        title = _clean(each["title"], LONGEST_TITLE)
        steps = [step for step in sorted(set(each["steps"])) if 0 < step <= len(question.steps)]
        if not steps or not _is_meaningful(title):
            continue
        kept.append(
            {
                "kind": each["kind"],
                "title": title,
                "text": _clean(each.get("text", ""), LONGEST_TEXT),
                "steps": [question.steps[step - 1] for step in steps[:MOST_EVIDENCE]],
                "files": _files(each.get("files", []), question.files),
            }
        )
    if problems and not kept:
        return _refused_answer(problems[0])
    return ParsedAnswer({"observations": kept})


def _is_meaningful(title: str) -> bool:
    return not (
        dedupe.is_junk(title)
        or dedupe.is_narration(title)
        or dedupe.is_report(title)
        or questions.repeats_prompt(title)
    )


def _problem(told: object) -> str:
    """The problem with an observation; empty if there is none."""
    if not isinstance(told, dict):
        return "is no object."
    if told.get("kind") not in KINDS:
        return f'has no "kind" that is one of {", ".join(KINDS)}.'
    title = told.get("title")
    if not isinstance(title, str) or not title.strip():
        return 'has no "title".'
    if not isinstance(told.get("text", ""), str):
        return 'has a "text" that is no text.'
    steps = told.get("steps")
    if not isinstance(steps, list) or not all(type(each) is int for each in steps):
        return 'has no "steps": a list with the number of at least one step.'
    files = told.get("files", [])
    if not isinstance(files, list) or not all(isinstance(each, str) for each in files):
        return 'has "files" that are no list of paths.'
    return ""


def _files(named: Sequence[str], known: Sequence[str]) -> list[str]:
    """The named files that belong to the steps, also by the end of a path; drops invented ones."""
    found = []
    for name in named[:_LONGEST_FIELD]:
        ends = [path for path in known if path == name or path.endswith(f"/{name}")]
        if name in known or len(ends) == 1:
            found.append(name if name in known else ends[0])
    return list(dict.fromkeys(found))[:MOST_FILES]


def _summary(found: dict[str, Any]) -> ParsedAnswer:
    title = found.get("title", "")
    if not isinstance(title, str):
        return _refused_answer('"title" is no text.')
    title = _clean(title, LONGEST_NAME)
    body: dict[str, Any] = {"title": "" if questions.repeats_prompt(title) else title}
    for name in SECTIONS:
        lines = found.get(name, [])
        if not isinstance(lines, list) or not all(isinstance(each, str) for each in lines):
            return _refused_answer(f'"{name}" is no list of texts.')
        cleaned = [_clean(line, LONGEST_LINE) for line in lines[:_MOST_LINES]]
        body[name] = [
            line
            for line in dict.fromkeys(cleaned)
            if dedupe.words(line) and not questions.repeats_prompt(line)
        ]
    if not any(body[name] for name in SECTIONS):
        return ParsedAnswer({}, "all of its lists are empty.")
    return ParsedAnswer(body)


def in_one_line(text: str, longest: int) -> str:
    """A model's text on one line, without our markup and unprintable characters."""
    told = without_injected(without_private(text[:_LONGEST_FIELD]))
    visible = "".join(each if each.isprintable() else " " for each in told)
    return wording.shortened(visible, longest)


def _clean(text: str, longest: int) -> str:
    return in_one_line(redact(text[:_LONGEST_FIELD]).text, longest)


def _refused_answer(problem: str) -> ParsedAnswer:
    return ParsedAnswer({}, problem, can_be_repaired=True)
