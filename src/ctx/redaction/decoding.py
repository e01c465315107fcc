r"""Reads text as the program does that it is written for, so that an encoded secret is found.

A view is a decoded part of a text, and knows where each character comes from. There are three:

* **escapes**: lines with an escape of JSON (`\"`, `\u003d`), HTML (`&quot;`, `&#61;`) or a URL
  (`%3D`), with a line continuation, or with a character of no width;
* **wrapped lines**: lines that a terminal cut at its width, joined again;
* **base64**: values that decode to ASCII text.

Only the lines concerned are decoded, and cheap searches find them, so ordinary text costs little.
A view is searched like a text, for further encodings too.
"""

import binascii
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import cache, cached_property
from itertools import accumulate, chain, pairwise
from typing import NamedTuple

from ctx.redaction.scan_text import UNBROKEN, Page, compiled, is_dense, is_long
from ctx.redaction.secret_names import ANCHORS

_SEPARATOR = "\n\0\n"  # No rule matches NUL.


class _Substitution(NamedTuple):
    start: int
    end: int
    text: str


class _Segment(NamedTuple):
    start: int  # In the piece.
    end: int
    origin: int  # In the text.
    origin_end: int


class _Piece:
    """A decoded part of a text."""

    def __init__(
        self,
        text: str,
        segments: Callable[[], Iterable[_Segment]],  # Only needed if there is a secret in it.
        unit: tuple[int, int] = (1, 1),  # So many characters come from so many of the text.
    ) -> None:
        self.text = text
        self._find_segments = segments
        self._unit = unit

    def origin(self, start: int, end: int) -> tuple[int, int]:
        few, many = self._unit
        first, last = self._segment(start), self._segment(end - 1)
        return (
            first.origin + (start - first.start) // few * many,
            last.origin_end - (last.end - end) // few * many,
        )

    def _segment(self, at: int) -> _Segment:
        return self._segments[bisect_right(self._segments, at, key=lambda s: s.start) - 1]

    @cached_property
    def _segments(self) -> list[_Segment]:
        return list(self._find_segments())


class DecodedView:
    def __init__(self, pieces: list[_Piece], *, is_guess: bool = False) -> None:
        self.text = "".join([piece.text + _SEPARATOR for piece in pieces])
        self.is_guess = is_guess  # The text may be meant differently.
        self._pieces = pieces
        sizes = (len(piece.text) + len(_SEPARATOR) for piece in pieces)
        self._starts = list(accumulate(sizes, initial=0))

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """Where the characters from `start` to `end` come from."""
        number = bisect_right(self._starts, start) - 1
        piece, base = self._pieces[number], self._starts[number]
        # A secret does not reach from one piece into the next.
        return piece.origin(start - base, min(end - base, len(piece.text)))


def views(page: Page) -> Iterator[DecodedView]:
    if lines := _lines_with_escapes(page):
        yield DecodedView([_unescaped(page.text, *line) for line in lines])
    if wrapped := list(_wrapped_lines(page)):
        yield DecodedView([_joined(page.text, *lines) for lines in wrapped], is_guess=True)
    if encoded := list(_base64_values(page)):
        yield DecodedView(encoded)


def _segments(start: int, end: int, substitutions: Iterable[_Substitution]) -> Iterator[_Segment]:
    size = 0
    for found in substitutions:
        if found.start > start:
            yield _Segment(size, size + found.start - start, start, found.start)
            size += found.start - start
        if found.text:
            yield _Segment(size, size + 1, found.start, found.end)
            size += 1
        start = found.end
    yield _Segment(size, size + end - start, start, end)


# --- escapes --------------------------------------------------------------------

_INVISIBLE = "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
_BACKSLASH = r"\\(?:u00(?P<u>[2-7][0-9A-Fa-f])|\r?\n|(?P<sign>[\"'`\\/])|[nrt])"
_HIDING = r"\\(?:u00[2-7]|\r?\n|/)"
_QUOTATION = r"\\[\"'`\\nrt]"
_PERCENT = r"%(?P<percent>[2-7][0-9A-Fa-f]|0[9AaDd])"
_ENTITY = (
    r"&(?:\#(?P<decimal>\d{2,3})|\#[xX](?P<hex>[2-7][0-9A-Fa-f])|(?P<name>quot|amp|lt|gt|apos));"
)
_NAMED = {"quot": '"', "amp": "&", "lt": "<", "gt": ">", "apos": "'"}
_COMMON = {r"\n": "\n", r"\r": "\r", r"\t": "\t", r"\"": '"', r"\\": "\\"}
_NEAR = 256  # Lines this near are one piece: one line of a key may be without an escape.


def _lines_with_escapes(page: Page) -> list[tuple[int, int]]:
    text = page.text
    lines: list[tuple[int, int]] = []
    if "\\" in text:
        lines += _lines_with(_HIDING, text)
        lines += _quoting_lines(page)
    if "%" in text:
        lines += _lines_with(_PERCENT, text)
    if "&" in text:
        lines += _lines_with(_ENTITY, text)
    if _has_invisible(text):
        lines += _lines_with(f"[{_INVISIBLE}]", text)
    lines.sort()
    merged: list[tuple[int, int]] = []
    for start, end in lines:
        if merged and start - merged[-1][1] <= _NEAR:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def _has_invisible(text: str) -> bool:
    return not text.isascii() and any(mark in text for mark in _INVISIBLE)


def _quoting_lines(page: Page) -> Iterator[tuple[int, int]]:
    """Lines with an escaped quotation mark or line end, and a long value or the name of a secret.

    These escapes hide no letters, so they matter only there.
    """
    signs = sorted(chain(page.starts, *(page.keywords[anchor] for anchor in ANCHORS)))
    for start, end in _lines_with(_QUOTATION, page.text):
        following = bisect_left(signs, start)
        if following < len(signs) and signs[following] <= end:
            yield start, end


def _lines_with(pattern: str, text: str) -> Iterator[tuple[int, int]]:
    search, end = compiled(pattern).search, 0
    while found := search(text, end):
        start = text.rfind("\n", 0, found.start()) + 1
        end = text.find("\n", found.end())
        if end < 0:
            end = len(text)
        yield start, end


def _unescaped(text: str, start: int, end: int) -> _Piece:
    part = text[start:end]
    signs = (("\\", _BACKSLASH), ("%", _PERCENT), ("&", _ENTITY))
    patterns = [pattern for sign, pattern in signs if sign in part]
    if _has_invisible(part):
        patterns.append(f"[{_INVISIBLE}]")
    pattern = compiled("|".join(patterns))

    def segments() -> Iterator[_Segment]:
        found = pattern.finditer(text, start, end)
        return _segments(start, end, (_Substitution(*m.span(), _character(m)) for m in found))

    return _Piece(pattern.sub(_character, part), segments)


def _character(found: re.Match[str]) -> str:
    if character := _COMMON.get(found[0]):
        return character
    kind, value = found.lastgroup, found[found.lastindex or 0]
    match kind:
        case "u" | "percent" | "hex":
            return chr(int(value, 16))
        case "sign":
            return value
        case "name":
            return _NAMED[value]
        case "decimal":
            return chr(int(value)) if 9 <= int(value) < 127 else ""
        case _:
            return ""


# --- wrapped lines --------------------------------------------------------------

_NARROWEST, _WIDEST = 32, 400
_LINES_NEAR = 3


def _wrapped_lines(page: Page) -> Iterator[tuple[int, int, list[int]]]:
    """Lines of equal length, cut inside of a long value, and the line ends that cut them."""
    text = page.text
    start, joints = -1, list[int]()
    end = -1
    for line_end in _joint().finditer(page.raw):
        at = line_end.start()
        if not _is_joint(page, at):
            continue
        if at != end:
            if joints:
                yield start, end, joints
            start, joints = text.rfind("\n", 0, at) + 1, []
        joints.append(at)
        end = text.find("\n", at + 1)
        if end < 0:
            end = len(text)
    if joints:
        yield start, end, joints


def _joined(text: str, start: int, end: int, joints: list[int]) -> _Piece:
    bounds = pairwise([start - 1, *joints, end])
    joined = "".join([text[before + 1 : after] for before, after in bounds])
    cuts = [_Substitution(at, at + 1, "") for at in joints]
    return _Piece(joined, lambda: _segments(start, end, cuts))


@cache
def _joint() -> re.Pattern[bytes]:
    """A line end inside of a value, after a line that is wide enough."""
    x = b"[%b]" % re.escape(UNBROKEN)
    return re.compile(rb"\n%b(?<=[^\n]{%d}%b\n%b)" % (x, _NARROWEST - 1, x, x))


def _is_joint(page: Page, at: int) -> bool:
    start = page.raw.rfind(b"\n", max(0, at - _WIDEST - 1), at) + 1
    # Most lines of a text are next to a longer one.
    if at - start > _WIDEST or not _is_widest(page.text, start, at):
        return False
    before = max(page.shape.rfind(b" ", start, at) + 1, start)
    value = page.raw[before:at] + page.raw[at + 1 : page.shape.find(b" ", at + 1)]
    return is_long(value) and is_dense(page.raw[at - 24 : at + 24])


def _is_widest(text: str, start: int, end: int) -> bool:
    """Whether no line near is longer, as none is in a terminal."""
    width = end - start
    for _ in range(_LINES_NEAR):
        next_end = text.find("\n", end + 1, end + width + 2)
        if next_end < 0:
            if len(text) - end - 1 > width:
                return False
            break
        end = next_end
    for _ in range(_LINES_NEAR):
        if start == 0:
            break
        previous = text.rfind("\n", max(0, start - width - 2), start - 1) + 1
        if previous == 0 and start - 1 > width:
            return False
        start = previous
    return True


# --- base64 ---------------------------------------------------------------------

_BASE64 = rb"[A-Za-z0-9+/_-]{16,}"
# The first of four characters holds the upper six bits of a byte. These are the ones of ASCII.
_ASCII_FIRST = b"CIJKLMNOPQRSTUVWXYZabcdef"
_STANDARD = bytes.maketrans(b"-_", b"+/")


def _base64_values(page: Page) -> Iterator[_Piece]:
    for found in re.finditer(_BASE64, page.long):
        value = found[0]
        if value[::4].translate(None, _ASCII_FIRST):
            continue
        whole = value[: len(value) // 4 * 4]
        rest = value[len(whole) :]
        padded = value.translate(_STANDARD) + b"=" * (-len(rest) % 4)
        if len(rest) == 1:
            padded = whole.translate(_STANDARD)
        decoded = binascii.a2b_base64(padded)
        if decoded.isascii():
            start = page.position(found.start())
            yield _encoded(decoded, start, start + len(value), (3, 4))


def _encoded(decoded: bytes, start: int, end: int, unit: tuple[int, int]) -> _Piece:
    segment = _Segment(0, len(decoded), start, end)
    return _Piece(decoded.decode("ascii"), lambda: [segment], unit)
