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
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain
from typing import NamedTuple

from ctx.redaction.scan_text import UNBROKEN, Page, compiled, is_dense, is_long
from ctx.redaction.secret_names import ANCHORS, find_anchors

_SEPARATOR = "\n\0\n"  # No rule matches NUL.


class _Segment(NamedTuple):
    start: int  # In the view.
    end: int
    origin: int  # In the text.
    origin_end: int


class DecodedView(NamedTuple):
    text: str
    segments: list[_Segment]
    pieces: list[int]  # Where the pieces start; a secret does not reach from one into the next.
    is_guess: bool = False  # Whether the text may be meant differently.
    unit: tuple[int, int] = (1, 1)  # So many characters of the view come from so many of the text.

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """Where the characters from `start` to `end` come from."""
        after = bisect_right(self.pieces, start)
        if after < len(self.pieces):
            end = min(end, self.pieces[after] - len(_SEPARATOR))
        few, many = self.unit
        first = self._segment(start)
        last = self._segment(end - 1)
        return (
            first.origin + (start - first.start) // few * many,
            last.origin_end - (last.end - end) // few * many,
        )

    def _segment(self, at: int) -> _Segment:
        return self.segments[bisect_right(self.segments, at, key=lambda s: s.start) - 1]


class _Substitution(NamedTuple):
    start: int
    end: int
    text: str


def views(page: Page) -> Iterator[DecodedView]:
    if lines := _lines_with_escapes(page):
        yield _substituted(page.text, [(*line, _escapes(page.text, *line)) for line in lines])
    if wrapped := list(_wrapped_lines(page)):
        yield _substituted(page.text, wrapped)._replace(is_guess=True)
    if encoded := list(_base64_values(page)):
        yield _decoded(encoded)


def _substituted(
    text: str, parts: Sequence[tuple[int, int, Iterable[_Substitution]]]
) -> DecodedView:
    strings: list[str] = []
    segments: list[_Segment] = []
    pieces: list[int] = []
    size = 0
    for start, end, substitutions in parts:
        pieces.append(size)
        for found in substitutions:
            if found.start > start:
                strings.append(text[start : found.start])
                segments.append(_Segment(size, size + found.start - start, start, found.start))
                size += found.start - start
            if found.text:
                strings.append(found.text)
                segments.append(_Segment(size, size + 1, found.start, found.end))
                size += 1
            start = found.end
        strings += (text[start:end], _SEPARATOR)
        segments.append(_Segment(size, size + end - start, start, end))
        size += end - start + len(_SEPARATOR)
    return DecodedView("".join(strings), segments, pieces)


# --- escapes --------------------------------------------------------------------

_INVISIBLE = "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
_HIDING = r"\\(?:u00(?P<u>[2-7][0-9A-Fa-f])|\r?\n|(?P<slash>/))"
_QUOTATION = r"""\\(?:(?P<sign>["'`\\])|(?P<space>[nrt]))"""
_PERCENT = r"%(?P<percent>[2-7][0-9A-Fa-f]|0[9AaDd])"
_ENTITY = (
    r"&(?:\#(?P<decimal>\d{2,3})|\#[xX](?P<hex>[2-7][0-9A-Fa-f])|(?P<name>quot|amp|lt|gt|apos));"
)
_NAMED = {"quot": '"', "amp": "&", "lt": "<", "gt": ">", "apos": "'"}
_WHITE = {"n": "\n", "r": "\r", "t": "\t"}
_NEAR = 256  # Lines this near are one piece: one line of a key may be without an escape.


def _lines_with_escapes(page: Page) -> list[tuple[int, int]]:
    text = page.text
    lines: list[tuple[int, int]] = []
    if "\\" in text:
        lines += _lines_with(compiled(_HIDING), text)
        lines += _quoting_lines(page)
    if "%" in text:
        lines += _lines_with(compiled(_PERCENT), text)
    if "&" in text:
        lines += _lines_with(compiled(_ENTITY), text)
    if not text.isascii() and any(mark in text for mark in _INVISIBLE):
        lines += _lines_with(compiled(f"[{_INVISIBLE}]"), text)
    lines.sort()
    merged: list[tuple[int, int]] = []
    for start, end in lines:
        if merged and start - merged[-1][1] <= _NEAR:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def _quoting_lines(page: Page) -> Iterator[tuple[int, int]]:
    """Lines with an escaped quotation mark or line end, and a long value or the name of a secret.

    These escapes hide no letters, so they matter only there.
    """
    text, end = page.text, -1
    signs = chain(page.starts, *(find_anchors(page, anchor) for anchor in ANCHORS))
    for at in sorted(signs):
        if at > end:
            start = text.rfind("\n", 0, at) + 1
            end = text.find("\n", at)
            if end < 0:
                end = len(text)
            escape = text.find("\\", start, end)
            if escape >= 0 and compiled(_QUOTATION).search(text, escape, end):
                yield start, end


def _lines_with(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    end = 0
    while found := pattern.search(text, end):
        start = text.rfind("\n", 0, found.start()) + 1
        end = text.find("\n", found.end())
        if end < 0:
            end = len(text)
        yield start, end


def _escapes(text: str, start: int, end: int) -> Iterator[_Substitution]:
    pattern = compiled(f"{_HIDING}|{_QUOTATION}|{_PERCENT}|{_ENTITY}|[{_INVISIBLE}]")
    for found in pattern.finditer(text, start, end):
        yield _Substitution(*found.span(), _character(found))


def _character(found: re.Match[str]) -> str:
    kind, value = found.lastgroup, found[found.lastindex or 0]
    match kind:
        case "u" | "percent" | "hex":
            return chr(int(value, 16))
        case "sign" | "slash":
            return value
        case "space":
            return _WHITE[value]
        case "name":
            return _NAMED[value]
        case "decimal":
            return chr(int(value)) if 9 <= int(value) < 127 else ""
        case _:
            return ""


# --- wrapped lines --------------------------------------------------------------

_NARROWEST, _WIDEST = 32, 400
_LINES_NEAR = 3


def _wrapped_lines(page: Page) -> Iterator[tuple[int, int, list[_Substitution]]]:
    """Lines of equal length, cut inside of a long value."""
    text = page.text
    start, joints = -1, list[_Substitution]()
    end = -1
    for line_end in _joint().finditer(page.raw):
        at = line_end.start()
        if not _is_joint(page, at):
            continue
        if at != end:
            if joints:
                yield start, end, joints
            start, joints = text.rfind("\n", 0, at) + 1, []
        joints.append(_Substitution(at, at + 1, ""))
        end = text.find("\n", at + 1)
        if end < 0:
            end = len(text)
    if joints:
        yield start, end, joints


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


def _base64_values(page: Page) -> Iterator[tuple[int, int, str]]:
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
            yield start, start + len(value), decoded.decode("ascii")


def _decoded(values: list[tuple[int, int, str]]) -> DecodedView:
    segments, pieces = [], []
    size = 0
    for start, end, text in values:
        pieces.append(size)
        segments.append(_Segment(size, size + len(text), start, end))
        size += len(text) + len(_SEPARATOR)
    text = "".join(text + _SEPARATOR for _, _, text in values)
    return DecodedView(text, segments, pieces, unit=(3, 4))
