"""What two texts have in common, and what only one of them has."""

import difflib
import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

_PIECE = re.compile(r"\s+|\w+|[^\w\s]")
_MOST_PIECES = 600
"""More pieces than this are compared by line instead of by word."""
_MOST_LINES = 4_000
_SHORTEST_SAME = 3
"""Fewer characters that stayed between two changes are shown as changed too."""

DiffKind = Literal["same", "added", "removed"]


class DiffPart(NamedTuple):
    kind: DiffKind
    text: str


def compare(before: str, after: str) -> Iterator[DiffPart]:
    """All parts of both texts in order, by word, or by line if they are long; some are empty."""
    old, new = _PIECE.findall(before), _PIECE.findall(after)
    if len(old) > _MOST_PIECES or len(new) > _MOST_PIECES:
        old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    if not old or not new or len(old) > _MOST_LINES or len(new) > _MOST_LINES:
        yield DiffPart("removed", before)
        yield DiffPart("added", after)
        return
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    removed = added = ""
    codes = matcher.get_opcodes()
    for place, (kind, i1, i2, j1, j2) in enumerate(codes):
        before_part, after_part = "".join(old[i1:i2]), "".join(new[j1:j2])
        is_between = 0 < place < len(codes) - 1
        # A space or a comma between two changes would only tear them apart.
        if kind != "equal" or (is_between and len(before_part.strip()) < _SHORTEST_SAME):
            removed += before_part
            added += after_part
            continue
        yield DiffPart("removed", removed)
        yield DiffPart("added", added)
        removed = added = ""
        yield DiffPart("same", before_part)
    yield DiffPart("removed", removed)
    yield DiffPart("added", added)
