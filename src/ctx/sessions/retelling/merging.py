"""What a model said, beside what was found without one, and in its place.

What rests on hard evidence stays: bug fixes, and what a person decided. Where the model has told
the same thing, by its kind and its steps, it lends its words, and the observation keeps its key:
nothing is told twice, and nothing has to be withdrawn. What a person decided stays in their words.
Whatever else was found is replaced by what the model told of the same steps. Where it was not
asked, or told nothing, all stays as it is.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

from ctx.sessions.retelling import answers as stored
from ctx.sessions.retelling.answers import Kept
from ctx.sessions.retelling.questions import KINDS, SECTIONS, last_of
from ctx.sessions.retelling.reading import in_one_line
from ctx.sessions.steps import Step
from ctx.sessions.synthesis import junk, wording
from ctx.sessions.synthesis.observations import (
    LONGEST_LINE,
    LONGEST_NAME,
    LONGEST_TEXT,
    LONGEST_TITLE,
    MOST_EVIDENCE,
    MOST_FILES,
    MOST_SYMBOLS,
    Observation,
    Summary,
    Synthesis,
)

CONFIDENCE = 700
"""Of what only a model says: less than of what the steps show."""
DECIDED = 600
"""Of what it takes for a decision: no more than of what an agent said itself."""
MODEL = "model"

_LATE = ("feature", "refactor")
"""What was built is told when the agent rests."""
_MOST_LINES = 8


class _Stretches(NamedTuple):
    """What the model was asked about and answered, as far as its steps are still there."""

    of_step: Mapping[str, int]
    """Which stretch a step is in."""
    telling: frozenset[int]
    """The stretches of which something was told."""
    told: tuple[Observation, ...]


def merged(
    found: Synthesis, steps: Sequence[Step], answers: Sequence[Kept], *, is_whole: bool
) -> Synthesis:
    """What there is to keep of a session with what a model said of it.

    `is_whole` says that the agent rests or is gone, so that what was built is told too. The same
    steps and answers always give the same.
    """
    if not answers:
        return found
    by_id = {step.id: step for step in steps}
    stretches = _read(answers, by_id)
    told = [each for each in stretches.told if is_whole or each.kind not in _LATE]
    lent = _lent(found.observations, told)
    standing = [
        _in_words_of(each, told[lent[each.key]]) if each.key in lent else each
        for each in found.observations
        if each.key in lent or not _is_replaced(each, stretches)
    ]
    used = set(lent.values())
    for index, each in enumerate(told):
        if index not in used and not _is_told(each, standing):
            standing.append(each)
    ordered = tuple(sorted(standing, key=lambda each: each.at))
    return Synthesis(ordered, _summary(found.summary, steps, stored.summary_of(answers)))


def _read(answers: Sequence[Kept], by_id: Mapping[str, Step]) -> _Stretches:
    of_step: dict[str, int] = {}
    telling = set()
    told: list[Observation] = []
    for index, answer in enumerate(answers):
        if answer.kind != "steps" or answer.problem:
            continue
        of_step.update(dict.fromkeys(answer.steps, index))
        found = _observations(answer, by_id)
        told += found
        if found:
            telling.add(index)
    return _Stretches(of_step, frozenset(telling), tuple(told))


def _observations(answer: Kept, by_id: Mapping[str, Step]) -> list[Observation]:
    """What an answer says. What rests on steps that are forgotten was told when they were there."""
    said = answer.body.get("observations")
    found = []
    for number, each in enumerate(said if isinstance(said, list) else ()):
        evidence = _texts(each, "steps")[:MOST_EVIDENCE]
        title = _text(each, "title", LONGEST_TITLE)
        if not evidence or not title or not all(step in by_id for step in evidence):
            continue
        if each.get("kind") not in KINDS:
            continue
        shown_by = [by_id[step] for step in sorted(set(evidence))]
        found.append(
            Observation(
                f"{MODEL}:{answer.first}:{number}",
                each["kind"],
                title,
                _text(each, "text", LONGEST_TEXT),
                _files(each, shown_by),
                _symbols(shown_by),
                tuple(step.id for step in shown_by),
                shown_by[-1].at,
                DECIDED if each["kind"] == "decision" else CONFIDENCE,
                MODEL,
            )
        )
    return found


def _files(said: Mapping[str, Any], shown_by: Sequence[Step]) -> tuple[str, ...]:
    """Those that the model named; else those that its steps have written."""
    named = [path for path in _texts(said, "files") if path]
    written = [step.path for step in shown_by if step.kind == "write"]
    return wording.distinct(named or written)[:MOST_FILES]


def _symbols(shown_by: Sequence[Step]) -> tuple[str, ...]:
    return wording.distinct(each.name for step in shown_by for each in step.changes)[:MOST_SYMBOLS]


def _lent(found: Sequence[Observation], told: Sequence[Observation]) -> dict[str, int]:
    """Which observation is the same as which of the model's: by its key, the other's place."""
    places: dict[str, list[int]] = {}
    for place, other in enumerate(told):
        for step in other.evidence:
            places.setdefault(step, []).append(place)
    pairs = []
    for number, each in enumerate(found):
        shared = Counter(place for step in each.evidence for place in places.get(step, ()))
        pairs += [
            (-count, number, place)
            for place, count in shared.items()
            if told[place].kind == each.kind
        ]
    lent: dict[str, int] = {}
    used: set[int] = set()
    for _, number, place in sorted(pairs):
        if found[number].key not in lent and place not in used:
            lent[found[number].key] = place
            used.add(place)
    return lent


def _in_words_of(found: Observation, told: Observation) -> Observation:
    if found.said_by == "user":
        return found
    # What shows that something was mended is worth more than words.
    text = f"{told.text} {found.text}" if found.kind == "bugfix" else told.text or found.text
    return found._replace(
        title=told.title,
        text=wording.shortened(text, LONGEST_TEXT),
        said_by=found.said_by or MODEL,
    )


def _is_replaced(found: Observation, stretches: _Stretches) -> bool:
    """Whether the model has told something else of all that this rests on."""
    if found.kind == "bugfix" or found.said_by == "user":
        return False
    places = {stretches.of_step.get(step) for step in found.evidence}
    return places <= stretches.telling


def _is_told(told: Observation, standing: Sequence[Observation]) -> bool:
    """Whether it is said already, in almost the same words."""
    return any(
        junk.is_same(told.title, other.title)
        or (other.said_by == "user" and junk.is_told(told.title, [f"{other.title} {other.text}"]))
        for other in standing
        if other.kind == told.kind
    )


def _summary(found: Summary | None, steps: Sequence[Step], answer: Kept | None) -> Summary | None:
    """A summary in the model's words, as long as nothing was done since; its files are counted."""
    if found is None or answer is None or answer.problem or not answer.steps:
        return found
    sections = {name: _lines(answer.body, name) for name in SECTIONS}
    if last_of(steps) > answer.steps[-1] or not any(sections.values()):
        return found
    return found._replace(
        title=_text(answer.body, "title", LONGEST_NAME) or found.title,
        request=_text(answer.body, "request", LONGEST_LINE) or found.request,
        **cast("Any", sections),
    )


def _lines(said: Mapping[str, Any], name: str) -> tuple[str, ...]:
    lines = [in_one_line(line, LONGEST_LINE) for line in _texts(said, name)]
    return wording.distinct(lines)[:_MOST_LINES]


def _texts(said: object, name: str) -> list[str]:
    value = said.get(name) if isinstance(said, dict) else None
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _text(said: object, name: str, longest: int) -> str:
    value = said.get(name) if isinstance(said, dict) else None
    return in_one_line(value, longest) if isinstance(value, str) else ""
