"""The history of a node as differences between its versions."""

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Literal, NamedTuple

from ctx.memory.inverse_changes import ChangeSummary
from ctx.operations.show import NodeVersion

_PIECE = re.compile(r"\s+|\w+|[^\w\s]")
_MOST_PIECES = 3_000
"""More pieces than this are compared by line instead of by word."""
_MOST_LINES = 4_000
_CONTEXT = 90
"""The characters of unchanged text that stay on either side of a change."""
_SHORTEST_SAME = 3
"""Fewer characters that stayed between two changes are shown as changed too."""
_LONGEST = 4_000
"""The characters of one added or removed part that are shown."""
_FIELDS = ("content", "summary", "type")

DiffKind = Literal["same", "added", "removed"]


class DiffPart(NamedTuple):
    kind: DiffKind
    text: str


class FieldDiff(NamedTuple):
    field: str
    parts: tuple[DiffPart, ...]


class HistoryEntry(NamedTuple):
    """One change to the node, with all that it did."""

    change: str
    at: str
    action: str
    author: str
    session: str
    notes: tuple[str, ...]
    """What it did beside changing texts, in a few words each."""
    diffs: tuple[FieldDiff, ...]
    commit: str | None
    staged: str | None
    document: str | None
    is_undone: bool
    elsewhere: int
    """How many records the same change has about other nodes."""

    @property
    def can_be_undone(self) -> bool:
        return not self.is_undone and self.document is None


def entries(
    history: Sequence[NodeVersion], described: Mapping[str, ChangeSummary]
) -> list[HistoryEntry]:
    """The changes, newest first."""
    made: list[HistoryEntry] = []
    known: dict[str, str] = {}
    for change, versions in groupby(
        history, key=lambda version: (version.change, version.document)
    ):
        notes: list[str] = []
        diffs: list[FieldDiff] = []
        same_change = list(versions)
        for version in same_change:
            if version.kind != "node.put":
                notes.append(version.what)
                continue
            for name in _FIELDS:
                if name not in version.body:
                    continue
                after = str(version.body[name] or "")
                before = known.get(name, "")
                known[name] = after
                if after != before and (name != "type" or before):
                    diffs.append(FieldDiff(name, difference(before, after)))
            keys = version.body.get("metadata", {})
            # The first ones are the metadata of the node, which are shown below.
            if made and keys:
                notes.append(f"metadata: {', '.join(keys)}")
        first = same_change[0]
        about = first.at, first.action, first.author, first.session
        held = first.commit, first.staged, first.document
        whole = described.get(change[0])
        is_undone = whole.undone if whole else False
        elsewhere = max(0, whole.records - len(same_change)) if whole else 0
        made.append(
            HistoryEntry(change[0], *about, tuple(notes), tuple(diffs), *held, is_undone, elsewhere)
        )
    return made[::-1]


def difference(before: str, after: str) -> tuple[DiffPart, ...]:
    """What was added and removed, by word, or by line in long texts; the rest is shortened."""
    parts = [part for part in _parts(before, after) if part.text]
    last = len(parts) - 1
    return tuple(
        DiffPart(kind, _shortened(text, kind, is_first=place == 0, is_last=place == last))
        for place, (kind, text) in enumerate(parts)
    )


def _parts(before: str, after: str) -> Iterator[DiffPart]:
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


def _shortened(text: str, kind: DiffKind, *, is_first: bool, is_last: bool) -> str:
    if kind != "same":
        return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} …"
    if len(text) <= 2 * _CONTEXT + 20:
        return text
    head = "" if is_first else text[:_CONTEXT]
    tail = "" if is_last else text[-_CONTEXT:]
    return f"{head} … {tail}"
