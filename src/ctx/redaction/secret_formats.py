"""Secrets that are recognised by a prefix, a frame, or their place in a URL.

`formats.txt` has the facts: extend it. It is read when a text is searched for the first time.

Most literals begin a word. So the beginnings of all words in long values are looked up, which takes
as long for a thousand literals as for ten.
"""

import re
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from ctx.redaction.entropy import is_placeholder, is_random, is_varied, wordiness
from ctx.redaction.scan_text import Page, SecretSpan, compiled, match

RANK = 0
_AWS_KEY = "aws-access-key"


class Format(NamedTuple):
    rule: str
    literal: bytes
    """Part of an unbroken value: see scan_text.py."""
    lead: int
    """How many characters of the value precede the literal."""
    pattern: str


class _Formats(NamedTuple):
    words: dict[bytes, list[Format]]
    """By the first three letters and digits of the literal, for those that begin a word."""
    others: dict[bytes, list[Format]]
    """By a sign in the literal, or nothing."""


@cache
def _formats() -> _Formats:
    found = _Formats({}, {})
    for format_ in read_formats():
        if format_.lead == 0 and format_.literal[:1].isalnum():
            start = re.split(b"[^A-Za-z0-9]", format_.literal)[0][:3]
            found.words.setdefault(start, []).append(format_)
        else:
            sign = format_.literal.translate(None, _ALPHANUMERIC)[:1]
            found.others.setdefault(sign, []).append(format_)
    return found


def read_formats() -> Iterator[Format]:
    for line in read_lines():
        if not line.startswith("near "):
            rule, literals, pattern = line.split(None, 2)
            if place := re.search(r":(-?\d+)$", literals):
                literals = literals[: place.start()]
            for literal in literals.split("|"):
                yield Format(rule, literal.encode(), int(place[1]) if place else 0, pattern)


@cache
def read_lines() -> list[str]:
    text = Path(__file__).with_name("formats.txt").read_text("ascii")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


# A value may follow an escaped line end (`\nghp_…`) or a percent-encoded sign (`%3Dghp_…`).
_START = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f]{2}))"
_STOP = r"(?![A-Za-z0-9])"
_ALPHANUMERIC = bytes(byte for byte in range(128) if chr(byte).isalnum())
_WORDS = bytes(byte if byte in _ALPHANUMERIC else ord(" ") for byte in range(256))


def find(page: Page) -> Iterator[SecretSpan]:
    if page.long:
        formats = _formats()
        starts = {word[:3] for word in set(page.long.translate(_WORDS).split())}
        if "\\" in page.text:
            starts.update(re.findall(rb"\n[nrt]([A-Za-z0-9]{1,3})", page.long))
        if b"%" in page.long:
            starts.update(re.findall(b"%[0-9A-Fa-f]{2}([A-Za-z0-9]{1,3})", page.long))
        starts.update([start[:2] for start in starts])
        possible = [formats.words[start] for start in starts & formats.words.keys()]
        possible += [found for sign, found in formats.others.items() if sign in page.long]
        for format_ in chain(*possible):
            if format_.literal in page.long:
                yield from _find_format(page, format_)
    for start, _, rule in page.redacted:
        if rule == _AWS_KEY:
            # A hook may have removed the id before the event was stored.
            yield from _find_aws_secrets(page, start)
    yield from _find_private_keys(page)
    yield from _find_url_passwords(page)


def _find_format(page: Page, format_: Format) -> Iterator[SecretSpan]:
    match = compiled(_START + format_.pattern + _STOP).match
    done = 0
    for at in page.find_long(format_.literal):
        if at >= max(format_.lead, done) and (m := match(page.text, at - format_.lead)):
            start, end = m.span(m.lastindex or 0)
            value = page.text[start:end]
            if is_varied(value) and "EXAMPLE" not in value:
                yield SecretSpan(start, end, format_.rule, RANK)
                if format_.rule == _AWS_KEY:
                    yield from _find_aws_secrets(page, at)
            done = m.end()


def _find_aws_secrets(page: Page, at: int) -> Iterator[SecretSpan]:
    """Find secrets without a name, beside their key id."""
    for m in re.compile(_AWS_SECRET).finditer(page.text, max(0, at - _BESIDE), at + _BESIDE):
        if is_random(m[0]) and not re.fullmatch("[0-9a-f]+", m[0]):
            yield SecretSpan(*m.span(), "aws-secret-key", RANK)


_BESIDE = 200
_AWS_SECRET = r"(?<![\w+/=.-])[A-Za-z0-9+/]{40}(?![\w+/=-])"


def _find_private_keys(page: Page) -> Iterator[SecretSpan]:
    """Find PEM blocks, also truncated ones, and ones with escaped line ends.

    Programs also mention keys: `"-----BEGIN PRIVATE KEY-----" in text`. So there is a key only if
    something that could be one follows.
    """
    text, end = page.text, 0
    for place in page.keywords[b"key"]:
        at = page.raw.rfind(b"-----BEGIN", max(end, place - 60), place)
        if at >= 0 and (begin := match(_BEGIN, text, at)):
            end = begin.end()
            stop = text.find("-----END ", end, end + _LONGEST_KEY)
            if stop >= 0 and text.find("-----BEGIN", end, stop) < 0:
                foot = match(_END, text, stop)
                body_end, key_end = stop, foot.end() if foot else stop
            elif body := match(_CUT_SHORT, text, end):
                body_end = key_end = body.end()
            else:
                body_end = key_end = end
            if _holds_key(text, end, body_end):
                yield SecretSpan(at, key_end, "private-key", RANK)
                end = key_end


_LONGEST_KEY = 20_000
_BEGIN = r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
_END = r"-----END [A-Z0-9 ]{0,40}-----"
# What can be between the lines of a key: in a file, a string of a program, a quotation, a diff.
_BETWEEN = r"""(?>(?:\\+[nrt]|[\s"'+,>|#*-])*)"""
_CUT_SHORT = (
    rf"(?>(?:{_BETWEEN}(?:(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset): [^\n\\]{{0,100}}"
    rf"|[A-Za-z0-9+/=]{{16,}}+))+)(?:{_BETWEEN}[A-Za-z0-9+/=]{{1,15}}+(?=\s*+(?:\Z|[\"'\\])))?"
)


def _holds_key(text: str, start: int, end: int) -> bool:
    return any(
        wordiness(m[0]) < 0 and is_varied(m[0])
        for m in re.compile(r"[A-Za-z0-9+/=]{32,}").finditer(text, start, end)
    )


def _find_url_passwords(page: Page) -> Iterator[SecretSpan]:
    done = 0
    for sign in page.keywords[b"@"]:
        at = page.raw.rfind(b"://", max(done, sign - _LONGEST_USER), sign)
        if at >= 0 and (m := match(_URL_PASSWORD, page.text, at)):
            done = m.end()
            user, password = m.groups()
            if password != user and len(password) > 2 and not is_placeholder(password):
                yield SecretSpan(*m.span(2), "url-password", RANK)


_LONGEST_USER = 200
_URL_PASSWORD = r"""://([^\s:/?#@"'`<>\\]{0,64}):([^\s/?#"'`<>\\]{1,128})@(?=[\w.\[%$-])"""
