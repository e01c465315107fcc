"""Reads text as the program does that it is written for, so that an encoded secret is found.

A decoder is a function from a page to pieces: decoded parts of the text, which know where each of
their characters comes from. All pieces of a page are one view, which is searched like a text, for
further encodings too. The decoders are in three modules:

* **escapes** (`escapes.py`): `\\u003d`, `&quot;`, `%3D`, `=3D`, colours of a terminal, and
  characters of no width;
* **broken lines** (`broken_lines.py`): values that were cut at the width of a terminal, mail or
  program, and joined again;
* **encoded values** (`encoded_values.py`): base64, compressed data, hexadecimal digits and dumps.

Only the parts concerned are decoded, and cheap searches find them, so ordinary text costs little.
"""

from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate

from ctx.redaction import broken_lines, encoded_values, escapes
from ctx.redaction.decoded import Piece
from ctx.redaction.scan_text import Page

# No rule matches NUL, and lines that were cut are compared with three lines before and after.
_SEPARATOR = "\n\n\n\n\0\n\n\n\n"
_DECODERS = (escapes, broken_lines, encoded_values)
_MORE = 65536
"""How many characters longer than a page all that is decoded from it may be."""


class DecodedView:
    def __init__(self, pieces: list[Piece]) -> None:
        self.text = "".join([piece.text + _SEPARATOR for piece in pieces])
        self._pieces = pieces
        sizes = (len(piece.text) + len(_SEPARATOR) for piece in pieces)
        self._starts = list(accumulate(sizes, initial=0))

    def origin(self, start: int, end: int) -> tuple[int, int, bool]:
        """Where the characters from `start` to `end` come from, and whether that is a guess."""
        number = bisect_right(self._starts, start) - 1
        piece, base = self._pieces[number], self._starts[number]
        # A secret does not reach from one piece into the next.
        first, last = piece.origin(start - base, min(end - base, len(piece.text)))
        return first, last, piece.is_guess


def view(page: Page) -> DecodedView | None:
    pieces = list(_pieces(page))
    return DecodedView(pieces) if pieces else None


def _pieces(page: Page) -> Iterator[Piece]:
    left = len(page.text) + _MORE
    for decoder in _DECODERS:
        for piece in decoder.pieces(page):
            left -= len(piece.text) + len(_SEPARATOR)
            if left < 0:
                return
            yield piece
