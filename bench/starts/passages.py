"""The passages of past sessions that could be given at a start, and two simple orders of them.

They are read from a copy of a user store, as the product cut them.
"""

import math
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ctx import terms
from ctx.context.chooser import Passage

_SHORT = 400
_ALL = (
    "SELECT e.id, e.session, e.at, e.kind, e.source, e.text, e.terms, e.step, sum(length(text))"
    " OVER (PARTITION BY session, step) FROM excerpts AS e WHERE kind <> 'pasted' AND session <> ?"
    " ORDER BY e.at DESC, e.id"
)


def read(store: Path, running: str) -> list[Passage]:
    """All passages of a store, newest first, but those of the session that starts."""
    with closing(sqlite3.connect(f"{store.as_uri()}?mode=ro", uri=True)) as connection:
        return [Passage(*row) for row in connection.execute(_ALL, (running,))]


def bm25(passages: Sequence[Passage], prompt: str) -> list[float]:
    asked = set(terms.query(prompt)) - terms.STOP_WORDS
    every = [Counter(each.terms.split()) for each in passages]
    seen = Counter(word for words in every for word in words.keys() & asked)
    mean = sum(sum(words.values()) for words in every) / max(1, len(every)) or 1
    return [
        sum(
            math.log(1 + (len(every) - seen[word] + 0.5) / (seen[word] + 0.5))
            * (times * 2.2 / (times + 1.2 * (0.25 + 0.75 * sum(words.values()) / mean)))
            for word, times in words.items()
            if word in asked
        )
        for words in every
    ]


def short_messages(passages: Sequence[Passage]) -> list[float]:
    """Short messages of the user, newest first, then everything else, newest first."""
    return [
        (1_000_000.0 if each.source == "user" and each.message < _SHORT else 0.0) - place
        for place, each in enumerate(passages)
    ]


def as_start(given: Mapping[str, Any]) -> datetime:
    found = datetime.fromisoformat(given["start"])
    return found if found.tzinfo else found.replace(tzinfo=UTC)
