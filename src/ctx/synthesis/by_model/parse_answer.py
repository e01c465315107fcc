"""Parses a model's answer.

Parsing never raises: it returns the usable parts, or one sentence about the problem, which is sent
to the model if it can repair the answer. Text or a fence around the JSON object is allowed. Entries
about excerpts and statements that were not in the question are dropped, and so are copies of our
prompt.
"""

import json
from typing import Any, NamedTuple

from ctx import terms
from ctx.redaction import redact
from ctx.synthesis import dedupe
from ctx.synthesis.by_model import questions
from ctx.synthesis.by_model.questions import (
    KINDS,
    SECTIONS,
    SPEAKERS,
    ModelQuestion,
    in_one_line,
)
from ctx.synthesis.observations import LONGEST_LINE, LONGEST_NAME, LONGEST_OBJECT
from ctx.synthesis.session_excerpts import MOST_KEPT, is_contained

_LONGEST_ANSWER = 200_000
_LONGEST_FIELD = 4_000
_MOST_LINES = 8
_THOUGHT = "</think>"
_QUOTATION_MARKS = dict.fromkeys(map(ord, '"“”„«»'))


class ParsedAnswer(NamedTuple):
    body: dict[str, Any]
    """The usable parts of the answer: cleaned, shortened texts, and ids."""
    problem: str = ""
    """What is wrong with the answer; then the body is empty."""
    can_be_repaired: bool = False
    """Whether the answer has the content in another form, so that the model invents nothing."""


def read(text: str, question: ModelQuestion) -> ParsedAnswer:
    """Parse the answer to a question."""
    found = outermost_object(text)
    if found is None:
        return ParsedAnswer({}, "it is no JSON object, or not a whole one.", "{" in text)
    return _kept(found, question) if question.kind == "excerpts" else _summary(found)


def outermost_object(text: str) -> dict[str, Any] | None:
    """The JSON object in an answer; None if there is none."""
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


def _kept(found: dict[str, Any], question: ModelQuestion) -> ParsedAnswer:
    told = found.get("kept")
    if not isinstance(told, list):
        return _refused_answer('there is no list "kept".')
    of_session = [each.text for each in question.excerpts if each.source != "pasted"]
    known = terms.significant(" ".join(of_session))
    kept: dict[tuple[str, int], dict[str, Any]] = {}
    for each in told[:MOST_KEPT]:
        number, speaker, kind = (
            each.get(name) if isinstance(each, dict) else None
            for name in ("number", "speaker", "kind")
        )
        if not (
            type(number) is int
            and 0 < number <= len(question.excerpts)
            and speaker in SPEAKERS
            and kind in KINDS
        ):
            continue
        excerpt = question.excerpts[number - 1]
        if excerpt.source == "pasted" or SPEAKERS.index(speaker) > SPEAKERS.index(excerpt.source):
            # Nobody's words become somebody's because a model says so.
            continue
        kept[excerpt.step, excerpt.part] = {
            "step": excerpt.step,
            "part": excerpt.part,
            "kind": kind,
            "object": _object(each.get("object"), excerpt.text, known),
            "replaces": _replaced(each.get("replaces"), question),
        }
    if told and not kept:
        kinds = ", ".join(KINDS)
        return _refused_answer(
            f'no entry of "kept" has a "number" from 1 to {len(question.excerpts)}, the "speaker"'
            f' of that excerpt, and a "kind" that is one of {kinds}.'
        )
    return ParsedAnswer({"kept": list(kept.values())})


def _object(said: object, text: str, known: frozenset[str]) -> str:
    """What an excerpt is about, if its own words do not say it and the session has the words."""
    if not isinstance(said, str):
        return ""
    # A quotation mark would end the quotation in which it is shown.
    told = _clean(said.translate(_QUOTATION_MARKS), LONGEST_OBJECT)
    words = terms.significant(told)
    is_about = is_contained(words, known) and not is_contained(words, terms.significant(text))
    return told if is_about and not questions.repeats_prompt(told) else ""


def _replaced(said: object, question: ModelQuestion) -> list[str]:
    first = len(question.excerpts) + 1
    numbers = [each for each in said if type(each) is int] if isinstance(said, list) else []
    places = [each - first for each in numbers if first <= each < first + len(question.statements)]
    return [question.statements[place].id for place in dict.fromkeys(places)]


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


def _clean(text: str, longest: int) -> str:
    return in_one_line(redact(text[:_LONGEST_FIELD]).text, longest)


def _refused_answer(problem: str) -> ParsedAnswer:
    return ParsedAnswer({}, problem, can_be_repaired=True)
