"""Joins values that were cut at the end of a line, or into several strings of a program.

A terminal cuts at its width, a mail program puts `> ` before each line, a log its time, and a
person splits a long string into `"…" + "…"`.
"""

import re
from collections.abc import Iterable, Iterator

from ctx.redaction.decoded import Piece, Substitution, with_line_before, without
from ctx.redaction.scan_text import LONG, UNBROKEN, Page, compiled_bytes, is_dense, match

_NARROWEST, _WIDEST = 20, 400
_LINES_NEAR = 3
_NEAR = 24


_VALUE = b"[%b]" % re.escape(UNBROKEN.translate(None, b".:$%~"))
_SIGNS = rb"(?:[>|+#*/-][>|+#*/ -]*+)?"
_LINE_END = b"\n(?:(?<=%b\n)(?:%b)|(?<=[\"'`+.\\\\&~]\n)(?:%b)%b)" % (
    _VALUE,
    b"|".join(
        (
            # A value alone in an indented line, one with a digit or a capital, or after such a one.
            rb"[ \t]+%b%b{4,}+[\"',]{0,2}\r?(?=\n|\Z)" % (_SIGNS, _VALUE),
            rb"%b[a-z+/=_-]{0,15}+[0-9A-Z]" % _SIGNS,
            rb"(?=\S)(?:%b)" % b"|".join(b"(?<=[0-9A-Z]%b\n)" % (b"." * n) for n in range(8)),
        )
    ),
    rb"""(?<=%b["'`]\n)|(?<=["'`][+.\\&~]\n)|(?<=["'`] [+.\\&~]\n)""" % _VALUE,
    rb"""[ \t>]*+(?:[+.&~|<>]{1,2}[ \t]*+)?[@$bfruRL]{0,3}\\{0,3}["'`]""",
)
_AT_PLUS = rb"""\+(?<=["'` ]\+)[ \t]?[bfru@$]{0,2}\\{0,3}["'`]"""
_STRING_ENDS = b"\"'`+.\\&~"


def pieces(page: Page) -> Iterator[Piece]:
    lines, strings = list[Substitution](), list[Substitution]()
    is_end, end = compiled_bytes(_LINE_END).match, -1
    for sign in page.signs:
        if sign > end:
            start, end = page.raw.rfind(b"\n", end + 1, sign), page.raw.find(b"\n", sign)
            if start >= 0 and is_end(page.raw, start):
                _add_cut(page, start, lines, strings)
            while end >= 0 and is_end(page.raw, end) and _add_cut(page, end, lines, strings):
                end = page.raw.find(b"\n", end + 1)
            if end < 0:
                break
    if b"+" in page.raw:
        for found in compiled_bytes(_AT_PLUS).finditer(page.raw):
            if cut := _between_strings(page, found.start()):
                strings.append(cut)
        strings.sort()
    yield from _grouped(page, strings, is_guess=False)
    yield from _grouped(page, lines, is_guess=True)


def _add_cut(
    page: Page, at: int, lines: list[Substitution], strings: list[Substitution]
) -> Substitution | None:
    """Add what is cut at a line end."""
    is_string = page.raw[at - 1] in _STRING_ENDS
    cut = _between_strings(page, at) if is_string else _next_part(page, at)
    if cut:
        (strings if is_string else lines).append(cut)
    return cut


def _grouped(page: Page, cuts: Iterable[Substitution], *, is_guess: bool) -> Iterator[Piece]:
    """One piece for all cuts in lines that follow each other."""
    text, end = page.text, -1
    start, group = 0, list[Substitution]()
    for cut in cuts:
        if cut.start > end:
            if group:
                yield without(text, start, end, group, is_guess=is_guess)
            start, group = with_line_before(text, text.rfind("\n", 0, cut.start) + 1), []
        elif cut.start < group[-1].end:
            continue
        group.append(cut)
        end = text.find("\n", cut.end)
        if end < 0:
            end = len(text)
    if group:
        yield without(text, start, end, group, is_guess=is_guess)


# --- strings --------------------------------------------------------------------

_MARK = r"""\\{0,3}["'`]"""
_OPERATOR = r"(?:[+.&~]|\|\||\.\.|<>)"
# From the end of a string to the beginning of the next.
_BETWEEN = (
    rf"{_MARK}[ \t]*(?:{_OPERATOR}|\\)?[ \t]*(?:\r?\n[ \t>]{{0,60}})?(?:{_OPERATOR}[ \t]*)?"
    rf"[@$]?[bfruRL]{{0,2}}{_MARK}(?=[\w+/=.~-])(?!--?[a-z][\w.-]*+(?:\[|=[\w:]))"
)


def _between_strings(page: Page, at: int) -> Substitution | None:
    floor = max(0, at - 8)
    quote = floor + len(page.raw[floor:at].rstrip(b" \t\r\n+.&~|<>\\")) - 1
    while page.raw[quote - 1 : quote] == b"\\":
        quote -= 1
    if page.shape[quote - 1 : quote] == b"x" and (found := match(_BETWEEN, page.text, quote)):
        return Substitution(*found.span(), "")
    return None


# --- lines ----------------------------------------------------------------------

_PREFIX_ENDS = (b" ", b"\t", b">", b"|", b"#", b"*")
_DIGITS = bytes.maketrans(b"0123456789", b"0000000000")


def _next_part(page: Page, at: int) -> Substitution | None:
    """What is between the parts of a value that is cut at a line end."""
    raw, shape = page.raw, page.shape
    before = max(shape.rfind(b" ", max(0, at - _WIDEST), at) + 1, at - _NEAR)
    end = raw.find(b"\n", at + 1, at + _WIDEST)
    end = len(raw) if end < 0 else end
    start = raw.rfind(b"\n", max(0, at - _WIDEST), at) + 1
    # A value alone in its line, but for what is before each line: `> `, `+`, or the time of a log.
    after = max(at + 1, shape.rfind(b" ", at + 1, end - 2) + 1)
    if _is_cut(page, before, at, after):
        size = after - at - 1
        prefix = raw[start : start + size]
        if prefix.translate(_DIGITS) == raw[at + 1 : after].translate(_DIGITS):
            is_added = raw[start : start + 1] == raw[after : after + 1] == b"+"
            if _is_new(raw[start + size : at], raw[after:end]):
                return None
            return Substitution(at, after + is_added, "")
    if end - at - 1 <= at - start >= _NARROWEST:
        size = _common_prefix(raw[start:at], raw[at + 1 : end])
        after = at + 1 + size
        if (
            _is_cut(page, before, at, after)
            and _is_widest(page.text, start, at)
            and not _is_new(raw[start + size : at], raw[after:end])
        ):
            return Substitution(at, after, "")
    return None


def _is_new(line: bytes, following: bytes) -> bool:
    """Whether a line is the next row of a table, the next setting, or prose."""
    column = line.find(b" ")
    return (
        (column > 0 and column == following.find(b" "))
        or re.match(rb"[a-z_]{9,}+(?![0-9A-Z])|\.[A-Z]{2}", following) is not None
        or (
            re.match(rb"\w+=[^=\s]", following) is not None
            and re.search(rb"[=:] ?\S+\Z", line) is not None
        )
    )


def _common_prefix(line: bytes, following: bytes) -> int:
    """The size of what is before each line, which ends in a blank or a sign."""
    if line[:1] in b" \t" or line[:1].translate(_DIGITS) != following[:1].translate(_DIGITS):
        return 0
    pairs = enumerate(zip(line.translate(_DIGITS), following.translate(_DIGITS), strict=False))
    common = line[: next((at for at, (left, right) in pairs if left != right), len(line))]
    return max(common.rfind(mark) for mark in _PREFIX_ENDS) + 1 or int(common[:1] == b"+")


def _is_cut(page: Page, start: int, end: int, next_start: int) -> bool:
    """Whether a long value may be cut at `end` and go on at `next_start`."""
    next_end = page.shape.find(b" ", next_start, next_start + _NEAR)
    if next_end < 0:
        next_end = next_start + _NEAR
    size = end - start + next_end - next_start
    is_long = size >= LONG and next_end > next_start
    return is_long and is_dense(page.raw[start:end] + page.raw[next_start:next_end])


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
