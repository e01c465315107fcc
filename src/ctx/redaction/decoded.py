"""A decoded part of a text, which knows where each of its characters comes from."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import NamedTuple


class Substitution(NamedTuple):
    start: int
    end: int
    text: str


class Segment(NamedTuple):
    start: int  # In the piece.
    end: int
    origin: int  # In the text.
    origin_end: int


class Piece:
    def __init__(
        self,
        text: str,
        segments: Callable[[], Iterable[Segment]],  # Only needed if there is a secret in it.
        unit: tuple[int, int] = (1, 1),  # So many characters come from so many of the text.
        *,
        is_guess: bool = False,  # The text may be meant differently.
    ) -> None:
        self.text = text
        self.is_guess = is_guess
        self._find_segments = segments
        self._unit = unit

    def origin(self, start: int, end: int) -> tuple[int, int]:
        few, many = self._unit
        first, last = self._segment(start), self._segment(end - 1)
        return (
            first.origin + (start - first.start) // few * many,
            last.origin_end - (last.end - end) // few * many,
        )

    def _segment(self, at: int) -> Segment:
        return self._segments[bisect_right(self._segments, at, key=lambda s: s.start) - 1]

    @cached_property
    def _segments(self) -> list[Segment]:
        return list(self._find_segments())


def segments(start: int, end: int, substitutions: Iterable[Substitution]) -> Iterator[Segment]:
    """What is left from `start` to `end` after substitutions."""
    size = 0
    for found in substitutions:
        if found.start > start:
            yield Segment(size, size + found.start - start, start, found.start)
            size += found.start - start
        if found.text:
            yield Segment(size, size + 1, found.start, found.end)
            size += 1
        start = found.end
    yield Segment(size, size + end - start, start, end)


def without(text: str, start: int, end: int, cuts: list[Substitution], *, is_guess: bool) -> Piece:
    """The text from `start` to `end` without the parts that are cut out."""
    kept, at = [], start
    for cut in cuts:
        kept.append(text[at : cut.start])
        at = cut.end
    kept.append(text[at:end])
    return Piece("".join(kept), lambda: segments(start, end, cuts), is_guess=is_guess)


def of_tokens(tokens: list[Substitution]) -> Piece:
    """Characters that were written as tokens, without what is between these."""
    text = "".join([token.text for token in tokens])
    return Piece(text, lambda: (Segment(i, i + 1, t.start, t.end) for i, t in enumerate(tokens)))


def with_line_before(text: str, start: int) -> int:
    """Where the line before a line starts, if it is short: a key begins with a line of words."""
    floor = max(0, start - 80)
    before = text.rfind("\n", floor, max(0, start - 1))
    return before + 1 if before >= 0 or floor == 0 else start
