"""What two texts have in common, and what only one of them has."""

import difflib
import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

_PIECE = re.compile(r"\s+|\w+|[^\w\s]")
_MOST_PIECES = 3_000
"""More pieces than this are compared by line instead of by word."""
_MOST_LINES = 4_000

DiffKind = Literal["same", "added", "removed"]


class DiffPart(NamedTuple):
    kind: DiffKind
    text: str


def compare(before: str, after: str) -> Iterator[DiffPart]:
    """All parts of both texts in order, by word, or by line if they are long."""
    old, new = _PIECE.findall(before), _PIECE.findall(after)
    if len(old) > _MOST_PIECES or len(new) > _MOST_PIECES:
        old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    if not old or not new or len(old) > _MOST_LINES or len(new) > _MOST_LINES:
        yield DiffPart("removed", before)
        yield DiffPart("added", after)
        return
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for kind, i1, i2, j1, j2 in matcher.get_opcodes():
        if kind == "equal":
            yield DiffPart("same", "".join(old[i1:i2]))
            continue
        if i2 > i1:
            yield DiffPart("removed", "".join(old[i1:i2]))
        if j2 > j1:
            yield DiffPart("added", "".join(new[j1:j2]))
