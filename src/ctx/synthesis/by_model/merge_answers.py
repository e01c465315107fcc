"""Merges a model's answers into the synthesis that was made without it.

Memory is never worse with a model than without: all observations stay. If the model describes the
same thing (same kind, shared steps, shared words), its wording replaces ours and the observation
keeps its key, so nothing is duplicated or withdrawn. The user's decisions keep their wording. Other
observations of the model are added if their steps can support them.

The certain parts of the summary stay too: the request, remaining failures, decisions and files. The
model adds to them, and rewords what was learned and completed.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

from ctx.capture.steps import Step
from ctx.synthesis import dedupe, final_message, wording
from ctx.synthesis.by_model import model_answers as stored
from ctx.synthesis.by_model.model_answers import ModelAnswer
from ctx.synthesis.by_model.parse_answer import in_one_line
from ctx.synthesis.by_model.questions import KINDS, SECTIONS, last_step_id
from ctx.synthesis.failures import is_failing
from ctx.synthesis.observations import (
    LONGEST_LINE,
    LONGEST_NAME,
    LONGEST_TEXT,
    LONGEST_TITLE,
    MODEL,
    MOST_EVIDENCE,
    MOST_FILES,
    MOST_SYMBOLS,
    Observation,
    ObservationKind,
    Summary,
    Synthesis,
)

CONFIDENCE = 700
"""For observations that only a model made; lower than for those that the steps show."""
DECIDED = 600
"""For decisions that a model reports; the same as for decisions of an agent."""

_LATE = ("feature", "refactor")
"""Kinds that are reported only when the agent is idle."""
_MOST_LINES = 8
_LEAST_ROOM = 80
"""The least useful length of a truncated text."""


def merge_synthesis(
    found: Synthesis, steps: Sequence[Step], answers: Sequence[ModelAnswer], *, is_whole: bool
) -> Synthesis:
    """The synthesis of a session, merged with a model's answers.

    `is_whole` means that the agent is idle or the session is over, so that features and
    refactorings are included. The result depends only on the arguments.
    """
    if not answers:
        return found
    by_id = {step.id: step for step in steps}
    told = [
        each
        for answer in answers
        if answer.kind == "steps" and not answer.problem
        for each in _observations(answer, by_id)
        if is_whole or each.kind not in _LATE
    ]
    lent = _matches(found.observations, told)
    standing = [
        _reworded_observation(each, told[lent[each.key]]) if each.key in lent else each
        for each in found.observations
    ]
    used = set(lent.values())
    for index, each in enumerate(told):
        is_shown = any(_can_show(each.kind, by_id[step]) for step in each.evidence)
        if index not in used and is_shown and not _is_known(each, standing):
            standing.append(_marked_as_model(each))
    ordered = tuple(sorted(standing, key=lambda each: each.at))
    return Synthesis(ordered, _summary(found.summary, ordered, steps, stored.summary_of(answers)))


def _observations(answer: ModelAnswer, by_id: Mapping[str, Step]) -> list[Observation]:
    """The observations of an answer, without those whose steps are deleted."""
    said = answer.body.get("observations")
    found = []
    for each in said if isinstance(said, list) else ():
        evidence = _texts(each, "steps")[:MOST_EVIDENCE]
        title = _text(each, "title", LONGEST_TITLE)
        if not evidence or not title or not all(step in by_id for step in evidence):
            continue
        if each.get("kind") not in KINDS:
            continue
        shown_by = [by_id[step] for step in sorted(set(evidence))]
        found.append(
            Observation(
                _key(answer, each["kind"], title),
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


def _can_show(kind: ObservationKind, step: Step) -> bool:
    """Whether a step can support such an observation: reading or failing builds nothing."""
    match kind:
        case "discovery":
            return True
        case "decision":
            return step.kind in ("prompt", "say", "plan", "write", "agent")
        case _:
            return step.kind in ("write", "command", "agent") and step.ok and not is_failing(step)


def _key(answer: ModelAnswer, kind: str, title: str) -> str:
    """A key from kind and title, not from the position, which may change in the next answer."""
    digest = blake2b(f"{kind}\0{title}".encode("utf-8", "replace"), digest_size=8)
    return f"{MODEL}:{answer.first}:{digest.hexdigest()}"


def _files(said: Mapping[str, Any], shown_by: Sequence[Step]) -> tuple[str, ...]:
    """The files that the model named, or those that its steps wrote."""
    named = [path for path in _texts(said, "files") if path]
    written = [step.path for step in shown_by if step.kind == "write"]
    return wording.distinct(named or written)[:MOST_FILES]


def _symbols(shown_by: Sequence[Step]) -> tuple[str, ...]:
    return wording.distinct(each.name for step in shown_by for each in step.changes)[:MOST_SYMBOLS]


def _matches(found: Sequence[Observation], told: Sequence[Observation]) -> dict[str, int]:
    """Maps the key of an observation to the index of the model's matching observation."""
    places: dict[str, list[int]] = {}
    for place, other in enumerate(told):
        for step in other.evidence:
            places.setdefault(step, []).append(place)
    pairs = []
    for number, each in enumerate(found):
        shared = Counter(place for step in each.evidence for place in places.get(step, ()))
        pairs += [
            (-count, told[place].kind != each.kind, number, place)
            for place, count in shared.items()
            if _is_same_thing(told[place], each)
        ]
    lent: dict[str, int] = {}
    used: set[int] = set()
    for _, _, number, place in sorted(pairs):
        if found[number].key not in lent and place not in used:
            lent[found[number].key] = place
            used.add(place)
    return lent


def _is_same_thing(told: Observation, found: Observation) -> bool:
    """Whether two observations that share a step are about the same thing."""
    if told.kind != found.kind and not {told.kind, found.kind} <= set(_LATE):
        return False
    known = " ".join([found.title, found.text, *found.symbols, *found.files])
    return not dedupe.words(f"{told.title} {told.text}").isdisjoint(dedupe.words(known))


def _reworded_observation(found: Observation, told: Observation) -> Observation:
    if found.said_by == "user":
        return found
    # Keep our text: what the steps show counts more than the model's words.
    return found._replace(
        title=told.title,
        text=_prepend_shortened(told.text, found.text),
        said_by=found.said_by or MODEL,
    )


def _marked_as_model(told: Observation) -> Observation:
    """The observation, marked for the reader as made by a model."""
    return told._replace(text=_prepend_shortened(told.text, "Written by a model."))


def _prepend_shortened(text: str, rest: str) -> str:
    """A text, shortened to the available space, before another that is kept whole."""
    room = LONGEST_TEXT - len(rest) - 1
    shown = wording.sentence(wording.shortened(text, room - 1)) if room > _LEAST_ROOM else ""
    return f"{shown} {rest}".strip()


def _is_known(told: Observation, standing: Sequence[Observation]) -> bool:
    """Whether an existing observation says it in almost the same words."""
    return any(
        dedupe.is_same(told.title, other.title)
        or (
            other.said_by == "user"
            and dedupe.is_repeated(told.title, [f"{other.title} {other.text}"])
        )
        for other in standing
        if other.kind == told.kind
    )


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
