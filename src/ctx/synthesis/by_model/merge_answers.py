"""Merges a model's answers into the synthesis that was made without it.

The model chooses among the excerpts. What ctx itself found stays, and so does everything that the
user said: the model can add excerpts, say their kind, and leave out other statements of the agent
that it was shown. An answer that keeps nothing changes nothing.

The certain parts of the summary stay too: the request, remaining failures, decisions and files. The
model adds to them, and rewords what was learned and completed.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ctx.capture.steps import Step
from ctx.ids import NodeId, Ulid
from ctx.synthesis import dedupe, final_message, wording
from ctx.synthesis.by_model.model_answers import ModelAnswer
from ctx.synthesis.by_model.questions import KINDS, SECTIONS, in_one_line, last_step_id
from ctx.synthesis.observations import (
    LONGEST_LINE,
    LONGEST_NAME,
    LONGEST_OBJECT,
    Observation,
    Summary,
    Synthesis,
)
from ctx.synthesis.statements import NO_CHOICES, Choice, Choices

_MOST_LINES = 8


def choices(answers: Mapping[str, ModelAnswer]) -> Choices:
    """What a model chose among the excerpts of a session; a damaged answer chooses nothing."""
    answer = answers.get("excerpts")
    told = answer.body.get("kept") if answer and not answer.problem else None
    kept = {
        (each["step"], each["part"]): Choice(
            each["kind"],
            _text(each, "object", LONGEST_OBJECT),
            tuple(NodeId(Ulid(each)) for each in _texts(each, "replaces")),
        )
        for each in (told if isinstance(told, list) else ())
        if isinstance(each, dict)
        and isinstance(each.get("step"), str)
        and type(each.get("part")) is int
        and each.get("kind") in KINDS
    }
    return Choices(kept, frozenset(answer.steps)) if answer and kept else NO_CHOICES


def merge_summary(
    found: Synthesis, steps: Sequence[Step], answers: Mapping[str, ModelAnswer]
) -> Synthesis:
    """The synthesis of a session, with a summary that is merged with a model's answer."""
    summary = _summary(found.summary, found.observations, steps, answers.get("summary"))
    return found._replace(summary=summary)


def _summary(
    found: Summary | None,
    told: Sequence[Observation],
    steps: Sequence[Step],
    answer: ModelAnswer | None,
) -> Summary | None:
    """The summary with its certain parts, and the rest in the model's words.

    The model cannot contradict a remaining failure. Its answer is ignored if later steps exist.
    """
    if found is None or answer is None or answer.problem or not answer.steps:
        return found
    said = {name: _lines(answer.body, name) for name in SECTIONS}
    if last_step_id(steps) > answer.steps[-1] or not any(said.values()):
        return found
    title = _text(answer.body, "title", LONGEST_NAME)
    done = tuple(line for line in said["completed"] if not final_message.is_all_well(line))
    if any(map(final_message.fails_still, found.next_steps)):
        title = ""
        done = done if any(step.kind == "write" and step.ok for step in steps) else ()
    known = [found.request, *(f"{each.title} {each.text}" for each in told)]
    is_about_it = any(_shared_words(title, each) for each in known)
    return found._replace(
        title=title if is_about_it else found.title,
        investigated=said["investigated"] or found.investigated,
        learned=_reworded_lines(found.learned, said["learned"]),
        completed=_reworded_lines(found.completed, done),
        next_steps=_add_new_lines(found.next_steps, said["next_steps"]),
        notes=_add_new_lines(found.notes, said["notes"]),
    )


def _reworded_lines(found: Sequence[str], said: Sequence[str]) -> tuple[str, ...]:
    """The model's lines, and our lines that they do not cover."""
    missing = [line for line in found if not any(_shared_words(line, each) > 1 for each in said)]
    kept = said[: max(0, _MOST_LINES - len(missing))]
    return (*kept, *missing)


def _add_new_lines(found: Sequence[str], said: Sequence[str]) -> tuple[str, ...]:
    """Our lines, and the model's lines that add something."""
    more = [line for line in said if not dedupe.is_repeated(line, found)]
    return wording.distinct((*found, *more))[: max(_MOST_LINES, len(found))]


def _shared_words(one: str, other: str) -> int:
    return len(dedupe.words(one) & dedupe.words(other))


def _lines(said: Mapping[str, Any], name: str) -> tuple[str, ...]:
    lines = [in_one_line(line, LONGEST_LINE) for line in _texts(said, name)]
    return wording.distinct(lines)[:_MOST_LINES]


def _texts(said: object, name: str) -> list[str]:
    value = said.get(name) if isinstance(said, dict) else None
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _text(said: object, name: str, longest: int) -> str:
    value = said.get(name) if isinstance(said, dict) else None
    return in_one_line(value, longest) if isinstance(value, str) else ""
