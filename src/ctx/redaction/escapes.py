r"""Undoes the escapes of strings, HTML, URLs, mails and terminals.

A line is decoded if it has an escape that can hide a letter or the sign beside a secret:
`\u003d`, `\x3d`, `\075`, `&#61;`, `%3D`, `=3D`, a line continuation, a colour, a character of no
width, or NUL, as every second one of UTF-16 is.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator

from ctx.redaction.decoded import Piece, Segment, Substitution, segments, with_line_before
from ctx.redaction.scan_text import Page, compiled, compiled_bytes

# Without those whose last eight bits are those of a letter: a search for them is slow.
_INVISIBLE = "\u00ad\u180e\u200b\u200c\u200d\u200e\u200f\u2060\ufe0f\ufeff"
# All levels of JSON in JSON at once.
_BACKSLASH = (
    r"\\++(?:(?:u00|x|u\{(?:00)?|U000000)(?P<x>[0-7][0-9A-Fa-f])\}?|(?P<octal>[01][0-7]{2})"
    r"|\r?\n|(?P<sign>[\"'`/])|(?P<blank>[nrte])|0)|\\(?P<backslash>\\)\\*+"
)
_ANY_BACKSLASH = (
    r"\\(?:(?P<hiding>u00[0-7]|x[0-7]|[01][0-7][0-7]|u\{|U0000|\r?\n|/|e\[)|[\"'`\\nrt])"
)
_PERCENT = r"%(?P<percent>[2-7][0-9A-Fa-f]|0[9AaDd])"
_TERMINAL = (
    r"(?:\x1b|\^\[)\[[0-9;:?]{0,40}[ -/]?[@-~]|\x1b\][^\x07\x1b\n]{0,200}(?:\x07|\x1b\\)"
    r"|\x1b[()][0-9AB]|\x1b[=>78]"
)
_ENTITY_NAMES = (
    "quot amp lt gt apos nbsp commat equals colon sol plus period lowbar UnderBar hyphen dash num "
    "dollar percnt excl ast lpar rpar comma semi quest lsqb lbrack rsqb rbrack lcub rcub bsol "
    "verbar vert NewLine Tab grave Hat"
).split()
_ENTITY_SIGNS = "\"&<>' @=:/+.__--#$%!*(),;?[[]]{}\\||\n\t`^"
_NAMED = {
    **dict(zip(_ENTITY_NAMES, _ENTITY_SIGNS, strict=True)),
    **dict.fromkeys(("shy", "zwj", "zwnj", "ZeroWidthSpace"), ""),
}
_ENTITY = (
    r"&(?:\#0{0,5}(?P<decimal>\d{1,4})|\#[xX]0{0,5}(?P<hex>[0-9A-Fa-f]{1,4})"
    rf"|(?P<name>{'|'.join(_NAMED)}));"
)
_BLANKS = {"n": "\n", "r": "\r", "t": "\t", "e": "\x1b"}
_NEAR = 256  # Lines this near are one piece: one line of a key may be without an escape.

_MAIL = r"=(?:[ \t]*\r?\n|(?P<percent>[2-7][0-9A-F]|0[9AD]))"
_IN_MAIL = r"=(?:[ \t]?\r?\n(?!\r?\n|\w+=[^3\r\n])|3D|[2-7][0-9A-F]=[2-7][0-9A-F])"
_WIDE = r"\0(?:[\t\n\r -~]\0){5,}"


def pieces(page: Page) -> Iterator[Piece]:
    text = page.text
    lines: list[tuple[int, int]] = []
    patterns = []
    if "\\" in text:
        patterns.append(_BACKSLASH)
        lines += _lines_with_backslash(page)
    if "%" in text:
        patterns.append(_PERCENT)
        lines += _lines_with(_search(_PERCENT, page), text)
    if "&" in text:
        patterns.append(_ENTITY)
        lines += _lines_with(_search(_ENTITY, page), text)
    if "\x1b" in text or "^[[" in text:
        patterns.append(_TERMINAL)
        lines += _lines_with(_search(_TERMINAL, page), text)
    if not text.isascii() and (marks := [mark for mark in _INVISIBLE if mark in text]):
        patterns.append(f"[{''.join(marks)}]")
        lines += _lines_with(compiled(patterns[-1]).finditer(text), text)
    if lines:
        yield from _decoded(text, lines, "|".join(patterns))
    if "=" in text:
        yield from _decoded(text, list(_lines_with(_search(_IN_MAIL, page), text)), _MAIL)
    if "\0" in text:
        wide = [(m.start() - 1, m.end() + 1) for m in compiled(_WIDE).finditer(text)]
        yield from _decoded(text, [(max(0, s), min(e, len(text))) for s, e in wide], r"\0")


def _decoded(text: str, lines: list[tuple[int, int]], pattern: str) -> Iterator[Piece]:
    decode = compiled(pattern)
    for line, end in _merged(lines):
        start = with_line_before(text, line)

        def find_segments(start: int = start, end: int = end) -> Iterator[Segment]:
            found = decode.finditer(text, start, end)
            return segments(start, end, (Substitution(*m.span(), _character(m)) for m in found))

        yield Piece(decode.sub(_character, text[start:end]), find_segments)


def _merged(lines: list[tuple[int, int]]) -> list[tuple[int, int]]:
    lines.sort()
    merged: list[tuple[int, int]] = []
    for start, end in lines:
        if merged and start - merged[-1][1] <= _NEAR:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def _lines_with_backslash(page: Page) -> Iterator[tuple[int, int]]:
    """Lines in which a backslash hides a letter, or stands beside a secret.

    An escaped quotation mark or line end matters only in a line with a long value or the name of a
    secret.
    """
    text, search, end = page.text, compiled_bytes(_ANY_BACKSLASH.encode()).search, 0
    while found := search(page.raw, end):
        end = found.end()
        start = text.rfind("\n", 0, found.start()) + 1
        line_end = _line_end(text, end)
        if not found["hiding"]:
            following = bisect_left(page.signs, start)
            if following == len(page.signs) or page.signs[following] > line_end:
                continue
        yield start, line_end
        end = line_end


def _search(pattern: str, page: Page) -> Iterator[re.Match[bytes]]:
    return compiled_bytes(pattern.encode()).finditer(page.raw)


def _lines_with(
    matches: Iterator[re.Match[bytes]] | Iterator[re.Match[str]], text: str
) -> Iterator[tuple[int, int]]:
    end = -1
    for found in matches:
        if found.start() >= end:
            start = text.rfind("\n", 0, found.start()) + 1
            end = _line_end(text, found.end())
            yield start, end


def _line_end(text: str, at: int) -> int:
    """Where a line ends that may continue after `\\` or `=`."""
    while (end := text.find("\n", at)) > 0 and text[end - 2 : end].rstrip("\r")[-1:] in ("\\", "="):
        at = end + 1
    return end if end >= 0 else len(text)


def _character(found: re.Match[str]) -> str:
    kind = found.lastgroup
    if kind is None:
        return "\0" if found[0][0] == "\\" and found[0][-1] == "0" else ""
    value = found[kind]
    match kind:
        case "x" | "percent":
            return chr(int(value, 16))
        case "octal":
            return chr(int(value, 8))
        case "sign" | "backslash":
            return value
        case "blank":
            return _BLANKS[value]
        case "name":
            return _NAMED[value]
        case _:
            code = int(value, 10 if kind == "decimal" else 16)
            return chr(code) if 9 <= code < 127 else ""
