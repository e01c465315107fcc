"""Excerpts of files for an agent: the whole text if it is short, else the relevant lines.

Cuts avoid the inside of a statement where possible: they fall between blank lines or between lines
with the same indentation, and `…` marks them.
"""

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from heapq import nlargest
from itertools import accumulate
from sqlite3 import Connection

from ctx import disk, tokens
from ctx.code import encoding
from ctx.code.vocabulary import LARGEST_FILE

GAP = "…"

_LONGEST_LINE = 300
_LONGEST_BLOCK = 20
_LONGEST_HEAD = 5
_FEWEST_LINES, _TOKENS_A_LINE = 5, 10
_MOST_ABOVE = 12
_CLOSING = ("}", ")", "]", "else", "elif", "except", "end")
_COMMENTS = ("//", "#", "@", "/*", "*", '"""', "--", ";")


class FileText:
    """A file of the working tree with its current content. Properties are computed on demand."""

    def __init__(self, path: str, hash: str, content: str, *, is_indexed: bool) -> None:
        self.path = path
        self.hash = hash
        self.content = content
        self.is_indexed = is_indexed
        """Whether this is the content that was indexed, so the index knows its lines."""

    @property
    def size(self) -> int:
        return len(self.content)

    @cached_property
    def lines(self) -> list[str]:
        lines = self.content.split("\n")
        if not lines[-1]:
            lines.pop()
        return lines

    @cached_property
    def characters(self) -> list[int]:
        """The number of characters in all lines before each line, counting only ASCII lines and no
        line ends. The size of any range of lines is a difference of two entries."""
        lengths = list(map(len, self.lines))
        if max(lengths, default=0) > _LONGEST_LINE:
            lengths = [min(length, _LONGEST_LINE) for length in lengths]
        for place in self._foreign:
            # Its line end does not count either.
            lengths[place] = -1
        return list(accumulate(lengths, initial=0))

    @cached_property
    def foreign_tokens(self) -> list[int]:
        """The tokens of all non-ASCII lines before each line; empty if there are none."""
        if not self._foreign:
            return []
        taken = [self._foreign.get(place, 0) for place in range(len(self.lines))]
        return list(accumulate(taken, initial=0))

    @cached_property
    def _foreign(self) -> dict[int, int]:
        """The tokens of each non-ASCII line, by index."""
        if self.content.isascii():
            return {}
        return {
            place: tokens.estimate(line[:_LONGEST_LINE]) + 2
            for place, line in enumerate(self.lines)
            if not line.isascii()
        }


class FileTexts:
    """The files of a working tree. Each is read once; files that have become too large are
    skipped."""

    def __init__(self, connection: Connection, root: str) -> None:
        self._connection = connection
        self._root = os.path.realpath(root)
        self._read: dict[int, FileText | None] = {}
        self._inside: dict[str, bool] = {}

    def file_text(self, file_id: int) -> FileText | None:
        """None if the file no longer exists or is not text."""
        if file_id not in self._read:
            self._read[file_id] = self._text(file_id)
        return self._read[file_id]

    def _text(self, file_id: int) -> FileText | None:
        row = self._connection.execute(
            "SELECT path, hash, skipped FROM files WHERE id = ?", (file_id,)
        ).fetchone()
        if row is None:
            return None
        path, known, skipped = row
        if not self._is_inside(os.path.dirname(path)):
            return None
        try:
            content = disk.read_plain(os.path.join(self._root, path), LARGEST_FILE)
        except (OSError, ValueError):
            return None
        if b"\0" in content[:8192] and encoding.marked_encoding(content) is None:
            return None
        digest = blake2b(content, digest_size=16).digest()
        text = encoding.decode(content).text
        return FileText(path, digest.hex(), text, is_indexed=digest == known and skipped is None)

    def _is_inside(self, folder: str) -> bool:
        """Whether a folder is still inside the project and not a link to somewhere else."""
        if folder not in self._inside:
            path = os.path.join(self._root, folder) if folder else self._root
            self._inside[folder] = os.path.realpath(path) == path
        return self._inside[folder]


def line_of(text: FileText, number: int) -> str:
    """A line for display: no trailing blanks, and not too long."""
    if not 0 < number <= len(text.lines):
        return ""
    line = text.lines[number - 1].rstrip()
    return line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}{GAP}"


def join_lines(text: FileText, numbers: Sequence[int]) -> str:
    """Some lines of a file in order. Where lines are left out, `…` has the number of the next."""
    shown: list[str] = []
    previous = numbers[0] - 1 if numbers else 0
    for number in numbers:
        line = line_of(text, number)
        if number != previous + 1:
            # A gap of blank lines needs no mark.
            is_said = any(map(str.strip, text.lines[previous : number - 1]))
            shown.append(f"{_indentation(line)}{GAP} line {number}" if is_said else "")
        shown.append(line)
        previous = number
    return "\n".join(shown).rstrip("\n")


def cost(text: FileText, numbers: Sequence[int]) -> float:
    """The tokens of some lines in order, before rounding up."""
    if not numbers:
        return 0.0
    first, last = numbers[0], min(numbers[-1], len(text.lines))
    if numbers[-1] - first + 1 == len(numbers):
        return _cost_between(text, first, last)
    return sum([_cost_between(text, number, number) for number in numbers if number <= last])


def _cost_between(text: FileText, first: int, last: int) -> float:
    """The tokens of the lines from one to another."""
    if last < first:
        return 0.0
    before, foreign = text.characters, text.foreign_tokens
    total = (before[last] - before[first - 1] + last - first + 1) * 2 / 7
    return total + foreign[last] - foreign[first - 1] if foreign else total


def first_line_with_comments(text: FileText, first: int, lowest: int = 1) -> int:
    """The first line of an item including the comments and attributes directly above it."""
    highest = max(lowest, first - _MOST_ABOVE)
    while first > highest and line_of(text, first - 1).lstrip().startswith(_COMMENTS):
        first -= 1
    return first


def fit_lines(
    text: FileText, numbers: Sequence[int], matters: Mapping[int, float], most: float
) -> list[int]:
    """The first lines and the most relevant ones, with the lines that enclose them, as far as they
    fit into the given tokens."""
    if cost(text, numbers) <= most:
        return list(numbers)
    head = _head(text, numbers)
    if cost(text, head) > most:
        head = head[:1]
    chosen = set(head)
    left = most - cost(text, head)
    blocks = _blocks(text, _near_matches(numbers[len(head) :], matters, most))
    worth = [sum([matters[line] for line in block if line in matters]) for block in blocks]
    # The most relevant blocks first, then in file order.
    for place in sorted(range(len(blocks)), key=lambda place: (-worth[place], place)):
        taken = cost(text, blocks[place]) + 2
        if taken <= left:
            left -= taken
            chosen.update(blocks[place])
        elif worth[place] > 0:
            part = _lines_around(text, blocks[place], matters, left - 4)
            left -= cost(text, part) + 4 if part else 0
            chosen.update(part)
    return sorted(chosen)


def _near_matches(
    numbers: Sequence[int], matters: Mapping[int, float], most: float
) -> Sequence[int]:
    """The first lines, and the lines around the most relevant ones: no more than may fit, because
    an item may be very long."""
    count = _FEWEST_LINES + int(most / _TOKENS_A_LINE)
    if len(numbers) <= 2 * count:
        return numbers
    # The last line shows how far the item is indented.
    near = {*numbers[:count], numbers[-1]}
    matching = [number for number in numbers if number in matters]
    for number in nlargest(count // 2, matching, key=matters.__getitem__):
        near.update(range(number - _LONGEST_BLOCK // 2, number + _LONGEST_BLOCK // 2 + 1))
    return [number for number in numbers if number in near]


def _head(text: FileText, numbers: Sequence[int]) -> list[int]:
    """The lines that declare an item."""
    for place, number in enumerate(numbers[:_LONGEST_HEAD]):
        if line_of(text, number).endswith((":", "{", ";", "=>", "=")):
            return list(numbers[: place + 1])
    return list(numbers[:1])


def _blocks(text: FileText, numbers: Sequence[int]) -> list[list[int]]:
    """Groups of lines that belong together."""
    lines = [line_of(text, number) for number in numbers]
    bare = [line.lstrip() for line in lines]
    depths = [len(line) - len(rest) for line, rest in zip(lines, bare, strict=True)]
    base = min((depth for depth, rest in zip(depths, bare, strict=True) if rest), default=0)
    blocks: list[list[int]] = []
    block: list[int] = []
    was_blank = True
    for number, rest, depth in zip(numbers, bare, depths, strict=True):
        is_apart = was_blank or number != block[-1] + 1 or len(block) >= _LONGEST_BLOCK
        if is_apart or (rest and depth <= base and not rest.startswith(_CLOSING)):
            block = []
            blocks.append(block)
        block.append(number)
        was_blank = not rest
    return blocks


def _lines_around(
    text: FileText, block: Sequence[int], matters: Mapping[int, float], most: float
) -> list[int]:
    """The lines of a block around its most relevant line, as far as they fit."""
    lowest, highest = block[0], block[-1]
    first = last = max(block, key=lambda number: matters.get(number, 0.0))
    if _cost_between(text, first, last) > most:
        return []
    while True:
        if first > lowest and _cost_between(text, first - 1, last) <= most:
            first -= 1
        elif last < highest and _cost_between(text, first, last + 1) <= most:
            last += 1
        else:
            return list(range(first, last + 1))


def _indentation(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]
