"""Derive questions about days and spans of time from LoCoMo conversations.

    python -m bench.dated_questions LOCOMO_FILE OUTPUT_FILE
    python -m bench recall dated OUTPUT_FILE

The output has the conversations, and these questions with their evidence:

* `named`: the questions of LoCoMo that name a date, unchanged.
* `event`: for "When did Jon go to Rome?", answered "June 2023": "What did Jon do in June 2023?".
  The evidence is that of all answers in the span.
* `relative`: the same, asked some time later: "What did Jon do last month?".
* `day`: "What did Jon talk about on 16 June 2023?" The evidence is the turns from which LoCoMo's
  own observations of that session and speaker were made, if they are ten or fewer.
* `topic`: single-hop questions with the time of their evidence added. A date must not harm a
  question that its words answer.
* `around`: "What did Jon do right after the fair?" The evidence is that of the next answer.

Questions with a relative span have a date on which they are asked. The others are asked on the day
after the conversation ends.
"""

import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from bench.conversations import FIRST, MONTHS, session_days

_MONTH = "|".join(MONTHS)
_NAMES_A_DATE = re.compile(
    rf"\b\d{{1,2}}(?:st|nd|rd|th)?,? (?:{_MONTH})\b|\b(?:{_MONTH}),? \d"
    rf"|\b(?:in|last|this|during) (?:{_MONTH})\b"
)
_DAY = re.compile(
    rf"(?:(?P<day>\d{{1,2}}) (?P<month>{_MONTH})|(?P<month2>{_MONTH}) (?P<day2>\d{{1,2}})),?"
    r" (?P<year>\d{4})"
)
_WHOLE_MONTH = re.compile(rf"(?P<month>{_MONTH}),? (?P<year>\d{{4}})")
_WHOLE_YEAR = re.compile(r"(?:In )?(\d{4})")
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_BEFORE = re.compile(rf"the (?P<what>week|weekend|{'|'.join(_WEEKDAYS)}) before ", re.IGNORECASE)
_OCCASION = re.compile(
    r"\b(?:go to|attend|have|give|went to|take|participate in|host) ((?:a|an|the) [^?]{3,40})\?"
)
_SEASONS = ("winter", "spring", "summer", "fall")


class Event(NamedTuple):
    """An answer to "When did … ?"."""

    who: str
    start: date
    end: date
    written: str
    """The answer with its preposition: `on 7 May 2023`, `the week before 9 June 2023`."""
    question: str
    evidence: tuple[str, ...]


def events(talk: dict[str, Any]) -> list[Event]:
    found = []
    for asked in talk["qa"]:
        who = _speaker(talk, asked["question"])
        span = _span(str(asked.get("answer", "")).strip())
        if asked["category"] == 2 and asked["question"].startswith("When") and who and span:
            found.append(Event(who, *span, asked["question"], tuple(asked["evidence"])))
    return sorted(found, key=lambda event: (event.start, event.end))


def _speaker(talk: dict[str, Any], question: str) -> str:
    names = [talk["conversation"][key] for key in ("speaker_a", "speaker_b")]
    named = [(question.find(name), name) for name in names if name in question]
    return min(named)[1] if named else ""


def _span(answer: str) -> tuple[date, date, str] | None:
    """The first and last day of an answer, and how to write it in a question."""
    before = _BEFORE.match(answer)
    rest = answer[before.end() :] if before else answer
    if found := _DAY.fullmatch(rest):
        month = MONTHS.index(found["month"] or found["month2"]) + 1
        day = date(int(found["year"]), month, int(found["day"] or found["day2"]))
        if not before:
            return day, day, f"on {answer}"
        start, end = _days_before(day, before["what"].lower())
        return start, end, answer[0].lower() + answer[1:]
    if found := _WHOLE_MONTH.fullmatch(answer):
        start = date(int(found["year"]), MONTHS.index(found["month"]) + 1, 1)
        return start, _month_end(start), f"in {answer}"
    if found := _WHOLE_YEAR.fullmatch(answer):
        return date(int(found[1]), 1, 1), date(int(found[1]), 12, 31), f"in {found[1]}"
    return None


def _days_before(day: date, what: str) -> tuple[date, date]:
    if what == "week":
        return day - timedelta(7), day - timedelta(1)
    weekday = _WEEKDAYS.index("saturday" if what == "weekend" else what)
    start = day - timedelta((day.weekday() - weekday - 1) % 7 + 1)
    return start, start + timedelta(what == "weekend")


def _month_end(day: date) -> date:
    following = (day.replace(day=1) + timedelta(31)).replace(day=1)
    return following - timedelta(1)


def _question(text: str, kind: str, evidence: Sequence[str], asked: date) -> dict[str, Any]:
    return {
        "question": text,
        "category": kind,
        "evidence": sorted(set(evidence)),
        "asked": asked.isoformat(),
    }


def named(talk: dict[str, Any], last: date) -> Iterator[dict[str, Any]]:
    for asked in talk["qa"]:
        if asked.get("evidence") and _NAMES_A_DATE.search(asked["question"]):
            yield _question(asked["question"], "named", asked["evidence"], last)


def about_events(talk: dict[str, Any], last: date) -> Iterator[dict[str, Any]]:
    happened = events(talk)
    texts = dict.fromkeys((event.who, event.written, event.start, event.end) for event in happened)
    for who, written, start, end in texts:
        text = f"What did {who} do {written}?"
        yield _question(text, "event", _evidence(happened, who, start, end), last)


def _evidence(happened: Sequence[Event], who: str, start: date, end: date) -> list[str]:
    within = (each for each in happened if each.who == who and start <= each.start)
    return [unit for event in within if event.end <= end for unit in event.evidence]


def relative(talk: dict[str, Any], _last: date) -> Iterator[dict[str, Any]]:
    happened = events(talk)
    few = [event for event in happened if (event.end - event.start).days < 7]
    for place, event in enumerate(few):
        written, asked, start, end = _SPANS[place % len(_SPANS)](event.start)
        evidence = _evidence(happened, event.who, start, end) + list(event.evidence)
        if len(set(evidence)) <= FIRST:
            yield _question(f"What did {event.who} do {written}?", "relative", evidence, asked)


Spoken = tuple[str, date, date, date]
"""How a span is said, the day on which it is said, and its first and last day."""


def _days_ago(count: int, written: str) -> Callable[[date], Spoken]:
    return lambda day: (written, day + timedelta(count), day, day)


def _last_week(day: date) -> Spoken:
    monday = day - timedelta(day.weekday())
    return "last week", monday + timedelta(9), monday, monday + timedelta(6)


def _last_month(day: date) -> Spoken:
    end = _month_end(day)
    return "last month", end + timedelta(12), day.replace(day=1), end


def _in_month(day: date) -> Spoken:
    end = _month_end(day)
    return f"in {MONTHS[day.month - 1]}", end + timedelta(70), day.replace(day=1), end


def _last_season(day: date) -> Spoken:
    first = (day.replace(day=1) - timedelta(28 * (day.month % 3))).replace(day=1)
    end = _month_end(first + timedelta(70))
    return f"last {_SEASONS[day.month % 12 // 3]}", end + timedelta(100), first, end


def _last_weekday(day: date) -> Spoken:
    return f"last {_WEEKDAYS[day.weekday()].title()}", day + timedelta(4), day, day


_SPANS: tuple[Callable[[date], Spoken], ...] = (
    _days_ago(1, "yesterday"),
    _days_ago(3, "three days ago"),
    _last_week,
    _days_ago(14, "two weeks ago"),
    _last_month,
    _in_month,
    _last_season,
    _last_weekday,
)


def of_days(talk: dict[str, Any], last: date) -> Iterator[dict[str, Any]]:
    days = session_days(talk["conversation"])
    for key, by_speaker in talk["observation"].items():
        day = days[int(key.split("_")[1])]
        for who, facts in by_speaker.items():
            units = {unit for _, said in facts for unit in re.findall(r"D\d+:\d+", str(said))}
            if 0 < len(units) <= FIRST:
                text = f"What did {who} talk about on {_written(day)}?"
                yield _question(text, "day", sorted(units), last)


def _written(day: date) -> str:
    return f"{day.day} {MONTHS[day.month - 1]} {day.year}"


def topics(talk: dict[str, Any], last: date) -> Iterator[dict[str, Any]]:
    days = session_days(talk["conversation"])
    plain = [
        asked
        for asked in talk["qa"]
        if asked["category"] == 4 and not _NAMES_A_DATE.search(asked["question"])
    ]
    for place, asked in enumerate(plain[::3]):
        day = days[int(asked["evidence"][0][1:].partition(":")[0])]
        if place % 3 == 0:
            written, when = f"on {_written(day)}", last
        else:
            written, when, *_ = _SPANS[place % len(_SPANS)](day)
        text = f"{asked['question'].rstrip('?. ')} {written}?"
        yield _question(text, "topic", asked["evidence"], when)


def around(talk: dict[str, Any], last: date) -> Iterator[dict[str, Any]]:
    happened = events(talk)
    for event in happened:
        occasion = _OCCASION.search(event.question)
        own = [each for each in happened if each.who == event.who]
        before = [each for each in own if each.end < event.start]
        after = [each for each in own if each.start > event.end]
        if occasion and before and after:
            name = occasion[1].replace("a ", "the ", 1) if occasion[1][:2] == "a " else occasion[1]
            text = f"What did {event.who} do right {{}} {name}?"
            yield _question(text.format("before"), "around", before[-1].evidence, last)
            yield _question(text.format("after"), "around", after[0].evidence, last)


KINDS = (named, about_events, relative, of_days, topics, around)


def derive(talk: dict[str, Any]) -> dict[str, Any]:
    """A conversation with the derived questions instead of its own."""
    last = max(session_days(talk["conversation"]).values()) + timedelta(1)
    questions = [question for kind in KINDS for question in kind(talk, last)]
    kept = {key: talk[key] for key in ("sample_id", "conversation")}
    return {**kept, "qa": questions}


def main() -> None:
    source, output = sys.argv[1:]
    talks = json.loads(Path(source).read_text(encoding="utf-8"))
    derived = [derive(talk) for talk in talks]
    Path(output).write_text(json.dumps(derived, ensure_ascii=False), encoding="utf-8")
    print(f"{sum(len(talk['qa']) for talk in derived)} questions")


if __name__ == "__main__":
    main()
