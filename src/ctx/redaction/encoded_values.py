"""Decodes base64, compressed data, hexadecimal digits, and dumps of programs such as `xxd`."""

import binascii
import re
import zlib
from collections.abc import Callable, Iterator

from ctx.redaction.decoded import Piece, Segment, Substitution, of_tokens
from ctx.redaction.scan_text import Page, compiled, compiled_bytes, match, match_end


def pieces(page: Page) -> Iterator[Piece]:
    if page.long:
        yield from _values(page)
    yield from _bytes_apart(page)
    yield from _numbers_apart(page)
    if "0000" in page.text:
        yield from _dumps(page)


# --- values ---------------------------------------------------------------------

# What the first of four characters of base64 can be, if the bytes are of ASCII or zero: it holds
# the upper six bits of a byte. And the first of eight of base32, and of two hexadecimal digits.
_BASE64_FIRST = b"ACIJKLMNOPQRSTUVWXYZabcdef"
_BASE32_FIRST = b"ABCDEFGHIJKLMNOP"
_HEX_FIRST = b"0234567"
# The beginning of a value that can be one of these, or compressed data.
_BEGINNING = (
    rb"(?:[%b]...){4}|(?:[%b][0-9A-Fa-f]){8}|(?:[%b][A-Z2-7]{7}){2}|(?:H4sI|e[JNAF]).{12}"
) % (_BASE64_FIRST, _HEX_FIRST, _BASE32_FIRST)
_APART = bytes.maketrans(b".=~:%$\n", b"       ")
_STANDARD = bytes.maketrans(b"-_", b"+/")
_COMPRESSED = (b"H4sI", b"eJ", b"eN", b"eA", b"eF")
_LARGEST = 65536
"""How many bytes of compressed data are read."""
_HEX = b"0123456789abcdefABCDEF"
_BASE32 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_BASE32_DIGITS = bytes.maketrans(_BASE32, b"0123456789abcdefghijklmnopqrstuv")


def _values(page: Page) -> Iterator[Piece]:
    values, at = b" %b " % page.long.translate(_APART), 0
    for value in filter(compiled_bytes(_BEGINNING).match, values.split()):
        at = values.index(b" %b " % value, at)
        unit, decoded = (3, 4), b""
        if not value[::2].translate(None, _HEX_FIRST) and not value.translate(None, _HEX):
            unit, decoded = (1, 2), binascii.a2b_hex(value[: len(value) // 2 * 2])
        elif not value[::4].translate(None, _BASE64_FIRST):
            decoded = _from_base64(value)
        if not decoded.isascii() or not decoded:
            if not value[::8].translate(None, _BASE32_FIRST) and not value.translate(None, _BASE32):
                unit, decoded = (5, 8), _from_base32(value)
            elif value.startswith(_COMPRESSED) and (text := _decompressed(_from_base64(value))):
                start = page.position(at)
                yield of_whole(text, start, start + len(value))
        if decoded and decoded.isascii():
            start = page.position(at)
            segments = [Segment(0, len(decoded), start, start + len(value))]
            yield Piece(decoded.decode("ascii"), segments.copy, unit)


def _from_base64(value: bytes) -> bytes:
    rest = len(value) % 4
    whole = value[:-1] if rest == 1 else value
    return binascii.a2b_base64(whole.translate(_STANDARD) + b"=" * (-len(whole) % 4))


def _from_base32(value: bytes) -> bytes:
    size, rest = divmod(len(value) * 5, 8)
    return (int(value.translate(_BASE32_DIGITS), 32) >> rest).to_bytes(size, "big")


def _decompressed(data: bytes) -> str:
    try:
        return zlib.decompressobj(47).decompress(data, _LARGEST).decode("ascii", "replace")
    except zlib.error:
        return ""


def of_whole(text: str, start: int, end: int) -> Piece:
    """A text each character of which comes from everywhere between `start` and `end`."""
    return Piece(text, lambda: [Segment(0, len(text), start, end)], (len(text), 0))


# --- bytes apart ----------------------------------------------------------------

# `67 68 70`, `67:68:70`, `0x67, 0x68, 0x70`.
_BYTE_APART = r"(?:0[xX])?([2-7][0-9A-Fa-f]|0[aAdD9]|00)(?:[ ,:;\r\n\t-]{1,12}|(?![\w.]))"
_FIRST_DIGIT = rb"%b[0-9a-fA-F][ :,][ 0-9](?<=[ :,\nx]%b...)"
_BEFORE = 96


def _bytes_apart(page: Page) -> Iterator[Piece]:
    """Bytes one by one. Among the first of them is a letter, the first digit of which is 4 or 6."""
    places = [
        m.start()
        for digit in (b"4", b"6")
        for m in compiled_bytes(_FIRST_DIGIT % (digit, digit)).finditer(page.raw)
    ]
    yield from _apart(page, sorted(places), _BYTE_APART, lambda byte: chr(int(byte, 16)))


def _apart(
    page: Page, places: list[int], pattern: str, character: Callable[[str], str]
) -> Iterator[Piece]:
    end = 0
    for at in places:
        if at >= end and match(rf"(?:{pattern}){{5}}", page.text, at):
            floor = max(end, at - _BEFORE)
            before = compiled(rf"(?<![\w.])(?:{pattern})*(?:0[xX])?\Z").search(page.text[floor:at])
            start = floor + before.start() if before else at
            end = match_end(rf"(?:{pattern})+", page.text, start)
            found = compiled(pattern).finditer(page.text, start, end)
            yield of_tokens([Substitution(*m.span(1), character(m[1])) for m in found])


# `103, 104, 112`. Among the first of them is a small letter after `c`.
_NUMBER_APART = r"(1[01]\d|12[0-6]|[3-9]\d|1[03]|9)(?:[ ,;\r\n\t]{1,12}|(?![\w.]))"


_FIRST_NUMBER = rb"1[012]\d(?<=[^\w.]1..), ?\d"


def _numbers_apart(page: Page) -> Iterator[Piece]:
    places = [m.start() for m in compiled_bytes(_FIRST_NUMBER).finditer(page.raw)]
    yield from _apart(page, places, _NUMBER_APART, lambda number: chr(int(number)))


# --- dumps ----------------------------------------------------------------------

# `00000010: 6768 705f  ghp_` of xxd, `00000010  67 68 |gh|` of hexdump, `0000020 6867` of od.
_LINE = (
    r"(?P<lead>[ \t>|+#]{0,8})[0-9a-fA-F]{6,8}(?P<colon>:?)(?=[ \t])(?P<rest>[^\n]{1,160})(?:\n|\Z)"
)
_SHOWN = r"(?:[ \t]{2,}|[ \t]+(?=[|>]))[|>]?(?P<shown>[^\n]{1,32}?)[|<]?\s*\Z"
_HEX_WORDS = rf"(?P<words>(?:[ \t]{{1,2}}(?:[0-9a-fA-F]{{2}}){{1,2}})+)[ \t]*(?:{_SHOWN}|\r?\Z)"
_OCTAL_WORDS = r"(?P<words>(?:[ \t]{1,2}(?:[0-7]{6}|[0-7]{3}))+)(?P<shown>)\s*\Z"
_CHARACTER = (
    r"[ ]{3}(?P<plain>[!-~])|[ ]{2}(?P<escape>\\[0nrt])|[ ](?P<code>[0-7]{3})|(?P<blank>[ ]{4})"
)
_ESCAPES = {r"\0": "\0", r"\n": "\n", r"\r": "\r", r"\t": "\t"}


def _dumps(page: Page) -> Iterator[Piece]:
    end = -1
    for trigger in re.finditer(b"0000", page.raw):
        start = page.raw.rfind(b"\n", max(0, trigger.start() - 16), trigger.start()) + 1
        if start < end or trigger.start() - start > 16:
            continue
        written, shown = list[Substitution](), list[Substitution]()
        while line := match(_LINE, page.text, start):
            if not _read_line(line, written, shown):
                break
            start = end = line.end()
        if len(written) > 7:
            yield of_tokens(written)
        if len(shown) > 7:
            yield of_tokens(shown)


def _read_line(line: re.Match[str], written: list[Substitution], shown: list[Substitution]) -> bool:
    """Add the characters of a line of a dump."""
    rest, at = line["rest"], line.start("rest")
    for pattern, base in ((_HEX_WORDS, 16), (_OCTAL_WORDS, 8)):
        if found := match(pattern, rest, 0):
            for word in re.finditer(r"\w+", found["words"]):
                size = 1 if len(word[0]) < 4 else 2
                number = int(word[0], base) % 256**size
                data = number.to_bytes(size, "big" if line["colon"] else "little")
                span = at + word.start(), at + word.end()
                written += [Substitution(*span, chr(byte)) for byte in data]
            start = at + found.start("shown")
            seen = enumerate(found["shown"] or "", start)
            shown += [Substitution(place, place + 1, sign) for place, sign in seen]
            return True
    characters = list(compiled(_CHARACTER).finditer(rest))
    if sum(len(m[0]) for m in characters) < len(rest.rstrip()):
        return False
    for m in characters:
        sign = m["plain"] or _ESCAPES.get(m["escape"]) or " "
        if m["code"]:
            sign = chr(int(m["code"], 8) % 256)
        written.append(Substitution(at + m.start(), at + m.end(), sign))
    return True
