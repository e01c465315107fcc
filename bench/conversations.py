"""Conversations and beliefs with labelled questions, as entries for `ctx import`."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, NamedTuple

from ctx import clock

FIRST = 10
MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August"),
    *("September", "October", "November", "December"),
)
_START = 1_700_000_000
_DAY = 86_400


class Case(NamedTuple):
    ability: str
    question: str
    wanted: frozenset[str]
    """Empty if the question has no answer."""
    beside: tuple[str, ...] = ()
    """Filters that must hold."""
    asked_ms: int | None = None
    """When it is asked; None is now."""


class History(NamedTuple):
    name: str
    entries: list[dict[str, Any]]
    """Input lines for `ctx import`; `unit` is the name of the turn."""
    cases: list[Case]


def locomo(path: str) -> Iterator[History]:
    """LoCoMo, or questions that `bench.dated_questions` derived from it.

    Each question is asked on its own date, or on the day after the conversation ends.
    """
    names = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
    for talk in _json(path):
        entries: list[dict[str, Any]] = []
        said = talk["conversation"]
        began = 0
        for number in _sessions(said):
            began = _time(said.get(f"session_{number}_date_time", ""))
            for turn in said[f"session_{number}"]:
                caption = turn.get("blip_caption")
                text = f"{turn['speaker']}: {turn['text']}" + (f" [{caption}]" if caption else "")
                entries.append(_entry(turn["dia_id"], text, number, began + len(entries)))
        units = {entry["unit"] for entry in entries}
        cases = []
        for asked in talk["qa"]:
            evidence = re.findall(r"D\d+:\d+", " ".join(asked.get("evidence", [])))
            if wanted := units.intersection(evidence):
                ability = names.get(asked["category"], asked["category"])
                day = asked.get("asked")
                asked_ms = clock.parse_iso(f"{day}T12:00:00Z") if day else 1000 * (began + _DAY)
                cases.append(Case(ability, asked["question"], frozenset(wanted), (), asked_ms))
        yield History(str(talk["sample_id"]), entries, cases)


def _sessions(said: Mapping[str, Any]) -> list[int]:
    return sorted(int(key[8:]) for key in said if re.fullmatch(r"session_\d+", key))


def session_days(said: Mapping[str, Any]) -> dict[int, date]:
    """The day of each session of a LoCoMo conversation."""
    return {
        number: datetime.fromtimestamp(_time(said[f"session_{number}_date_time"]), UTC).date()
        for number in _sessions(said)
    }


def beam(path: str) -> Iterator[History]:
    """BEAM. The abstention questions have no answer: nothing is wanted."""
    for talk in _json(path):
        entries: list[dict[str, Any]] = []
        unit_of: dict[int, str] = {}
        began = 0
        for number, batch in enumerate(talk["chat"]):
            began = _time(batch["turns"][0][0].get("time_anchor") or "") + number
            for exchange in _exchanges(batch["turns"]):
                unit = str(len(entries))
                unit_of.update((message["id"], unit) for message in exchange)
                said = (re.sub(r"->->.*", "", each.get("content") or "") for each in exchange)
                entries.append(_entry(unit, "\n".join(said), number, began + len(entries)))
        cases = []
        for ability, questions in talk["probing_questions"].items():
            for asked in questions:
                numbers = _numbers(asked.get("source_chat_ids"))
                wanted = frozenset(unit_of[each] for each in numbers if each in unit_of)
                asked_ms = 1000 * (began + _DAY)
                if ability == "abstention":
                    cases.append(Case(ability, asked["question"], frozenset(), (), asked_ms))
                elif wanted:
                    cases.append(Case(ability, asked["question"], wanted, (), asked_ms))
        yield History(str(talk["chat_id"]), entries, cases)


def _exchanges(turns: Sequence[Sequence[dict[str, Any]]]) -> Iterator[list[dict[str, Any]]]:
    """The user's messages with their answers."""
    for turn in turns:
        exchange: list[dict[str, Any]] = []
        for message in turn:
            if message["role"] == "user" and exchange:
                yield exchange
                exchange = []
            exchange.append(message)
        if exchange:
            yield exchange


def _numbers(value: object) -> list[int]:
    if isinstance(value, dict):
        return [number for each in value.values() for number in _numbers(each)]
    if isinstance(value, list):
        return [number for each in value for number in _numbers(each)]
    return [value] if isinstance(value, int) else []


def _entry(unit: str, text: str, session: int, at: int) -> dict[str, Any]:
    return {
        "content": text.strip() or "-",
        "type": "observation",
        "tags": [f"session:{session}"],
        "created_at": clock.iso(1000 * at),
        "unit": unit,
    }


def _time(written: str) -> int:
    """The day of `1:56 pm on 8 May, 2023` or of `March-15-2024`, in seconds."""
    for pattern, form in ((r"\d+ \w+, \d{4}", "%d %B, %Y"), (r"\w+-\d+-\d{4}", "%B-%d-%Y")):
        if found := re.search(pattern, written):
            day = datetime.strptime(found[0], form).replace(tzinfo=UTC)
            return int(day.timestamp()) + 12 * 3600
    return _START


def beliefs(seed: str, *paths: str) -> Iterator[History]:
    """A separate history for each user."""
    known = _json(seed)
    cases: dict[str, list[Case]] = {}
    for path in paths:
        for case in _json(path):
            for turn in case.get("turns", [case]):
                expected = turn["expect"].get("relevantBeliefs", {}).get("shouldOnlyInclude")
                question = turn.get("query", turn.get("userMessage", ""))
                if expected is None or not question.strip():
                    continue
                scopes = " OR ".join(f"tag:{scope}" for scope in turn["scope"])
                beside = (f"({scopes})", "NOT tag:tier:pinned", "NOT type:open-question")
                # Skip cases that limit the answer and expect an empty one.
                budget = case.get("budget", {}).get("maxBeliefs", FIRST)
                if budget >= FIRST or expected:
                    named, wanted = case.get("category", "Sessions"), frozenset(expected)
                    made = Case(named, question, wanted, beside)
                    cases.setdefault(case.get("userId", "test-user"), []).append(made)
    for user, asked in cases.items():
        entries = [_belief(belief) for belief in known if belief["user_id"] == user]
        yield History(user, entries, asked)


def _belief(belief: Mapping[str, Any]) -> dict[str, Any]:
    types = {"open_question": "open-question", "decision": "decision"}
    names = [belief["canonical_name"].replace("_", " "), *belief["aliases"]]
    tags = list(belief["scope"])
    tags += ["tier:pinned"] if belief["pinned"] else []
    return {
        "content": f"{belief['content']}\n({', '.join(names)})",
        "type": types.get(belief["type"], "fact"),
        "tags": tags,
        "created_at": belief["created_at"],
        "updated_at": belief["updated_at"],
        "rationale": belief["why_it_matters"],
        "superseded_by_unit": belief["superseded_by"],
        "participants": belief.get("participants", []),
        "unit": belief["_id"],
    }


def _json(path: str) -> Any:
    return json.loads(Path(path).read_text(encoding="utf-8"))
