"""Which lines a write changed: how many, and the first of them."""

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from operator import eq
from typing import NamedTuple

from ctx.hosts.tool_calls import FileContents

MOST = 1_000_000
"""The most characters of a file that is compared as a whole."""

_MOST_COMPARED = 200
_MOST_SHOWN = 12
_MOST_REMOVED = 4
_LONGEST_SHOWN = 600
_LONGEST_LINE = 160


class LineChanges(NamedTuple):
    added: int
    removed: int
    excerpt: str


def lines(found: FileContents) -> LineChanges:
    """How many lines were added and removed, and the first of them."""
    old, new = (found.before or "").splitlines(), found.after.splitlines()
    first = _equal_at_start(old, new)
    old, new = old[first:], new[first:]
    last = _equal_at_start(old[::-1], new[::-1])
    old, new = old[: len(old) - last], new[: len(new) - last]
    if max(len(old), len(new)) > _MOST_COMPARED:
        # An exact diff would take too long.
        changed = [*(f"-{line}" for line in old), *(f"+{line}" for line in new)]
    else:
        changed = list(_changed_lines(old, new))
    removed = sum(line[0] == "-" for line in changed)
    return LineChanges(len(changed) - removed, removed, _excerpt(changed))


def _equal_at_start(old: Sequence[str], new: Sequence[str]) -> int:
    """How many lines at the beginning are the same."""
    equal = list(map(eq, old, new))
    return equal.index(False) if False in equal else len(equal)


def _changed_lines(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    for word, start, end, new_start, new_end in SequenceMatcher(None, old, new).get_opcodes():
        if word != "equal":
            yield from (f"-{line}" for line in old[start:end])
            yield from (f"+{line}" for line in new[new_start:new_end])


def _excerpt(changed: Sequence[str]) -> str:
    shown: list[str] = []
    left = _LONGEST_SHOWN
    added = [line for line in changed if line[0] == "+"]
    if added and len(changed) > _MOST_SHOWN:
        # Added lines are more useful than removed ones.
        removed = [line for line in changed if line[0] == "-"]
        changed = [*removed[:_MOST_REMOVED], *added]
    for line in changed:
        short = line.rstrip()[:_LONGEST_LINE]
        if len(short) < 2:
            continue
        left -= len(short) + 1
        if left < 0 or len(shown) == _MOST_SHOWN:
            break
        shown.append(short)
    return "\n".join(shown)
