"""What a model answered, as far as it has the form that was asked for.

Reading never fails: it gives what can be kept, or one sentence that says what is wrong, which the
model is told if it can mend that. Words around the object and a fence are no mistake. What rests on
no step that exists is left out, as is what tells nothing, or says our own words again.
"""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from ctx.capture.injected_text import without_injected
from ctx.capture.private_text import without_private
from ctx.redaction import redact
from ctx.synthesis import junk, wording
from ctx.synthesis.by_model import questions
from ctx.synthesis.by_model.questions import KINDS, MOST_OBSERVATIONS, SECTIONS, Question
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


class Read(NamedTuple):
    body: dict[str, Any]
    """What is kept of the answer: texts that are clean and short, and steps by their ids."""
    complaint: str = ""
    """What is wrong with it; then there is nothing to keep."""
    can_be_mended: bool = False
    """Whether the answer itself has what is missing, in another form: else it would be made up."""


def read(text: str, question: Question) -> Read:
    """What an answer says to a question."""
    found = _outermost_object(text)
    if found is None:
        return Read({}, "it is no JSON object, or not a whole one.", "{" in text)
    return _observations(found, question) if question.kind == "steps" else _summary(found)


def _outermost_object(text: str) -> dict[str, Any] | None:
    # Some models think aloud first.
    told = text[:_LONGEST_ANSWER].rpartition(_THOUGHT)[2]
    begin, end = told.find("{"), told.rfind("}")
    if begin < 0 or end < begin:
        return None
    try:
        found = json.loads(told[begin : end + 1])
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _observations(found: dict[str, Any], question: Question) -> Read:
    told = found.get("observations")
    if not isinstance(told, list):
        return _refused('there is no list "observations".')
    kept = []
    complaints = []
    for number, each in enumerate(told[:MOST_OBSERVATIONS], 1):
        if complaint := _complaint(each):
            complaints.append(f"observation {number} {complaint}")
            continue
        title = _clean(each["title"], LONGEST_TITLE)
        steps = [step for step in sorted(set(each["steps"])) if 0 < step <= len(question.steps)]
        if not steps or not _is_worth_keeping(title):
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
    if complaints and not kept:
        return _refused(complaints[0])
    return Read({"observations": kept})


def _is_worth_keeping(title: str) -> bool:
    return not (
        junk.is_junk(title)
        or junk.is_narration(title)
        or junk.is_report(title)
        or questions.is_of_prompt(title)
    )


def _complaint(told: object) -> str:
    """What is wrong with an observation."""
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
    """Those of the steps, also where only the end of a path is given; others are made up."""
    found = []
    for name in named[:_LONGEST_FIELD]:
        ends = [path for path in known if path == name or path.endswith(f"/{name}")]
        if name in known or len(ends) == 1:
            found.append(name if name in known else ends[0])
    return list(dict.fromkeys(found))[:MOST_FILES]


def _summary(found: dict[str, Any]) -> Read:
    title = found.get("title", "")
    if not isinstance(title, str):
        return _refused('"title" is no text.')
    title = _clean(title, LONGEST_NAME)
    body: dict[str, Any] = {"title": "" if questions.is_of_prompt(title) else title}
    for name in SECTIONS:
        lines = found.get(name, [])
        if not isinstance(lines, list) or not all(isinstance(each, str) for each in lines):
            return _refused(f'"{name}" is no list of texts.')
        cleaned = [_clean(line, LONGEST_LINE) for line in lines[:_MOST_LINES]]
        body[name] = [
            line
            for line in dict.fromkeys(cleaned)
            if junk.words(line) and not questions.is_of_prompt(line)
        ]
    if not any(body[name] for name in SECTIONS):
        return Read({}, "all of its lists are empty.")
    return Read(body)


def in_one_line(text: str, longest: int) -> str:
    """A model's words without markup of ours, and without what cannot be seen."""
    told = without_injected(without_private(text[:_LONGEST_FIELD]))
    visible = "".join(each if each.isprintable() else " " for each in told)
    return wording.shortened(visible, longest)


def _clean(text: str, longest: int) -> str:
    return in_one_line(redact(text[:_LONGEST_FIELD]).text, longest)


def _refused(complaint: str) -> Read:
    return Read({}, complaint, can_be_mended=True)
