"""The passages of past sessions that could be given at a start, and what is known of each.

They are read from a copy of a user store: the excerpts of sessions, as the product cut them, and
what it derived from sessions. Features tell how a passage was said, how old it is, and what it has
to do with the prompt; nothing needs a model.
"""

import json
import math
import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from ctx import terms

KINDS = ("prompt", "correction", "answer", "commit", "final", "report", "recap", "plan", "remark")
OF_PROMPT = (
    *("rank", "score", "score of best", "prompt covered", "own part covered", "names shared"),
    *("likeness of session", "prompt length", "prompt words"),
)
"""The features that a start without a prompt does not have."""

_SAID = ("prompt", "correction", "answer")
_LONGEST_PROMPT = 6_000
_SHORT, _MIDDLE = 400, 1_500
_MOST_MATCHING, _MOST_SAID, _MOST_ENDS, _MOST_DERIVED, _MOST_CAUSES = 100, 200, 60, 60, 60
_RECENT, _MOST_RECENT = 4, 8
_TELLING, _NEAR, _ALIKE = 12, 25, 0.35
_NAME = re.compile(r"[A-Za-z_][\w]*(?:[./_-][\w]+)+|[a-z]+[A-Z]\w+|\b[A-Z]{2,}\w*\b")
_SIGNS = {
    "lasting": re.compile(
        r"\b(always|never|from now on|every time|must|convention|rule|remember|make sure|do not"
        r"|don'?t|prefer|only use|no need)\b|必ず|ないで|不要|必须|нельзя|всегда|toujours|jamais"
        r"|siempre|nunca|immer|luôn",
        re.IGNORECASE,
    ),
    "question": re.compile(r"\?\s*$"),
    "cause": re.compile(
        r"\b(because|root cause|caused by|turns out|due to|fails? (because|when)|cannot"
        r"|instead of|only (works|when)|the (problem|bug|reason) (is|was))\b",
        re.IGNORECASE,
    ),
    "narration": re.compile(
        r"(now|let me|i'll|i will|first,? let|good|great|perfect|ok|okay|done|next|looking)\b",
        re.IGNORECASE,
    ),
    "claim": re.compile(
        r"\b(all (\d+ )?tests? pass|successfully|completed?|is now|done|fixed)\b", re.IGNORECASE
    ),
    "heading": re.compile(r"#"),
    "ends with a colon": re.compile(r":\s*$"),
}


class Session(NamedTuple):
    id: str
    started_at: datetime
    branch: str


class Passage(NamedTuple):
    session: Session
    age: int
    """How many sessions ago, at least 1."""
    at: datetime
    kind: str
    is_by_user: bool
    text: str
    message: int
    """Characters of the whole message."""
    words: tuple[str, ...]


class Candidates(NamedTuple):
    passages: list[Passage]
    features: list[dict[str, float]]


def read(store: Path, running: str) -> list[Passage]:
    """All passages of a store but those of the session that starts."""
    connection = sqlite3.connect(f"{store.as_uri()}?mode=ro", uri=True)
    rows = connection.execute("SELECT id, started_at, branch FROM sessions ORDER BY started_at")
    sessions = [Session(row[0], _time(row[1]), row[2] or "") for row in rows]
    ages = {each.id: len(sessions) - place for place, each in enumerate(sessions)}
    by_id = {each.id: each for each in sessions if each.id != running}
    lengths: Counter[tuple[str, str]] = Counter()
    excerpts = connection.execute("SELECT session, step, at, kind, source, text FROM excerpts")
    said = excerpts.fetchall()
    for session, step, *_, text in said:
        lengths[session, step] += len(text)
    found = [
        _passage(
            by_id[session], ages, _time(at), kind, source == "user", text, lengths[session, step]
        )
        for session, step, at, kind, source, text in said
        if session in by_id and kind != "pasted"
    ]
    for content, about, created_at in connection.execute(
        "SELECT content, metadata, created_at FROM nodes WHERE type = 'observation'"
    ):
        known = json.loads(about or "{}")
        session = known.get("session", "")
        if session in by_id and not known.get("said_as"):
            text, by_user = content[:_SHORT], known.get("said_by") == "user"
            at = _time(created_at)
            found.append(_passage(by_id[session], ages, at, "derived", by_user, text, len(content)))
    return found


def _passage(
    session: Session,
    ages: Mapping[str, int],
    at: datetime,
    kind: str,
    is_by_user: bool,
    text: str,
    message: int,
) -> Passage:
    return Passage(session, ages[session.id], at, kind, is_by_user, text, message, words_of(text))


def words_of(text: str) -> tuple[str, ...]:
    return tuple(word for word in terms.query(text) if word not in terms.STOP_WORDS)


def _time(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


class Chances:
    """The passages of a store, compared with one prompt."""

    def __init__(self, passages: Sequence[Passage], prompt: str, start: datetime, branch: str):
        self._all, self._prompt, self._start, self._branch = passages, prompt, start, branch
        self._asked = set(words_of(prompt[:_LONGEST_PROMPT]))
        self._seen = Counter(word for each in passages for word in set(each.words))
        self._names = {name.lower() for name in _NAME.findall(prompt)}
        self._scores = self._bm25()
        ranked = sorted(self._scores, key=lambda place: -self._scores[place])
        self._ranks = {place: rank for rank, place in enumerate(ranked)}
        self._weight = sum(self._rareness(word) for word in self._asked if self._seen[word]) or 1
        spoken: dict[str, set[str]] = defaultdict(set)
        for each in passages:
            spoken[each.session.id] |= self._asked.intersection(each.words)
        self._likeness = {
            session: sum(map(self._rareness, words)) / self._weight
            for session, words in spoken.items()
        }

    def bm25(self, passage: Passage) -> float:
        return self._by_identity.get(id(passage), 0.0)

    def candidates(self) -> Candidates:
        chosen = self._chosen()
        return Candidates(chosen, list(self._features(chosen)))

    def _rareness(self, word: str) -> float:
        return math.log((len(self._all) + 1) / (self._seen[word] + 0.5))

    def _bm25(self) -> dict[int, float]:
        mean = sum(len(each.words) for each in self._all) / max(1, len(self._all)) or 1
        count, scores = len(self._all), {}
        for place, each in enumerate(self._all):
            uses = Counter(word for word in each.words if word in self._asked)
            longer = 1.2 * (0.25 + 0.75 * len(each.words) / mean)
            if uses:
                scores[place] = sum(
                    math.log(1 + (count - self._seen[word] + 0.5) / (self._seen[word] + 0.5))
                    * (times * 2.2 / (times + longer))
                    for word, times in uses.items()
                )
        self._by_identity = {id(self._all[place]): score for place, score in scores.items()}
        return scores

    def _chosen(self) -> list[Passage]:
        """By words, by the user, by the ends of sessions, by what was derived, by causes."""
        newest = sorted(range(len(self._all)), key=lambda place: self._order(self._all[place]))
        chosen: dict[int, None] = dict.fromkeys(list(self._ranks)[:_MOST_MATCHING])

        def take(most: int, kinds: Sequence[str], oldest: int, longest: int = 0) -> None:
            fitting = (
                place
                for place in newest
                for each in (self._all[place],)
                if each.kind in kinds
                and each.age <= oldest
                and (not longest or each.message < longest)
                and (kinds != ("remark",) or _SIGNS["cause"].search(each.text))
            )
            chosen.update(dict.fromkeys(islice(fitting, most)))

        ever = len(self._all)
        take(_MOST_SAID, _SAID, ever, _MIDDLE)
        take(_MOST_ENDS, ("final", "report"), _MOST_RECENT)
        take(_MOST_DERIVED, ("derived",), ever)
        take(_MOST_CAUSES, ("remark",), _RECENT)
        return [self._all[place] for place in chosen]

    @staticmethod
    def _order(each: Passage) -> tuple[int, float]:
        return each.age, -each.at.timestamp()

    def _features(self, chosen: Sequence[Passage]) -> Iterator[dict[str, float]]:
        places = {id(each): place for place, each in enumerate(self._all)}
        best = max(self._scores.values(), default=1)
        sets = [frozenset(each.words) for each in chosen]
        holders: dict[str, list[int]] = defaultdict(list)
        telling = [self._telling(words) for words in sets]
        for number, words in enumerate(telling):
            for word in words:
                holders[word].append(number)
        for number, each in enumerate(chosen):
            near = Counter(
                other for word in telling[number] for other in holders[word] if other != number
            )
            alike, later = set(), 0.0
            for other, _ in near.most_common(_NEAR):
                union = len(sets[number] | sets[other]) or 1
                share = len(sets[number] & sets[other]) / union
                if share > _ALIKE:
                    alike.add(chosen[other].session.id)
                if chosen[other].age < each.age:
                    later = max(later, share)
            place = places[id(each)]
            own = sum(map(self._rareness, sets[number])) or 1
            shared = sum(map(self._rareness, sets[number] & self._asked))
            names = {name.lower() for name in _NAME.findall(each.text)}
            hours = max(0.0, (self._start - each.at).total_seconds() / 3600)
            yield {
                **{kind: each.kind == kind for kind in (*KINDS, "derived")},
                **{name: sign.search(each.text) is not None for name, sign in _SIGNS.items()},
                "by the user": each.is_by_user,
                "short message of the user": each.is_by_user and each.message < _SHORT,
                "message of the user": each.is_by_user and each.message < _MIDDLE,
                "sessions ago": math.log(each.age),
                "hours ago": math.log(1 + hours),
                "length": len(each.text),
                "words": len(sets[number]),
                "length of the message": math.log(1 + each.message),
                "same branch": each.session.branch == self._branch,
                "sessions that say it": len(alike),
                "said again later": later,
                "names": min(len(names), 8),
                "rareness": own / max(1, len(sets[number])),
                "rank": math.log(1 + self._ranks.get(place, len(self._all))),
                "score": self._scores.get(place, 0.0),
                "score of best": self._scores.get(place, 0.0) / best,
                "prompt covered": shared / self._weight,
                "own part covered": shared / own,
                "names shared": len(names & self._names),
                "likeness of session": self._likeness[each.session.id],
                "prompt length": min(len(self._prompt), 3_000),
                "prompt words": min(len(self._asked), 200),
            }

    def _telling(self, words: frozenset[str]) -> list[str]:
        return sorted(
            (word for word in words if self._rareness(word) > 1.5),
            key=lambda word: (-self._rareness(word), word),
        )[:_TELLING]


def as_start(given: Mapping[str, Any]) -> datetime:
    return _time(given["start"])
