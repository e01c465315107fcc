"""A text, prepared for searching.

Python's `re` scans text without matches at about 20 MB/s, `bytes.find` at 1 GB/s. So a pattern is
tried only where a literal that it requires was found. Most of those literals are prefixes of long
unbroken values, which make up a twelfth of source code: they are extracted once, and a hundred
prefixes are searched in that twelfth.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache
from itertools import accumulate, chain
from typing import NamedTuple

from ctx.redaction.keywords import Positions, find_keywords

# The shortest value with its own format is an AWS key id.
LONG = 20


class SecretSpan(NamedTuple):
    start: int
    end: int
    rule: str
    rank: int  # Smaller is surer.


class Page(NamedTuple):
    text: str
    raw: bytes  # One byte per character, so that offsets are the same in both.
    lower: bytes
    shape: bytes  # `x` for a character of an unbroken value, or a blank for all others.
    starts: list[int]  # Where the long unbroken values start.
    long: bytes  # These values alone, one per line.
    lines: list[int]  # Where in `long` each of them starts; and where the next would.
    redacted: list[tuple[int, int, str]]  # Replacements made earlier, with their rules.
    keywords: Positions  # The positions of each in the lower-case text.
    signs: list[int]  # Where long unbroken values and keywords are, sorted.

    def find_long(self, anchor: bytes) -> Iterator[int]:
        """Yield the positions of `anchor` inside long values."""
        at = self.long.find(anchor)
        while at >= 0:
            yield self.position(at)
            at = self.long.find(anchor, at + len(anchor))

    def position(self, at: int) -> int:
        """The position in the text of a position in `long`."""
        line = bisect_right(self.lines, at) - 1
        return self.starts[line] + at - self.lines[line]

    def was_redacted(self, span: SecretSpan) -> bool:
        after = bisect_right(self.redacted, span.start, key=lambda r: r[1])
        return after < len(self.redacted) and self.redacted[after][0] < span.end


def read(text: str) -> Page:
    redacted = []
    if "[redacted:" in text:
        redacted = [(*m.span(), m[1]) for m in re.finditer(_MARKER, text)]
        # Redacted text must not match as a name (`[redacted:password]`) or as a value. No rule
        # matches NUL or across it.
        text = re.sub(_MARKER, lambda m: "\0" * len(m[0]), text)
    raw = text.encode("ascii", "replace")
    shape = raw.translate(_SHAPE) + b" "
    starts, values = _long_values(raw, shape)
    lines = list(accumulate((len(value) + 1 for value in values), initial=0))
    long, lower = b"\n".join(values), raw.lower()
    keywords = find_keywords(lower)
    signs = sorted(chain(starts, *keywords.values()))
    return Page(text, raw, lower, shape, starts, long, lines, redacted, keywords, signs)


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    # Compiled when first needed: at import this would cost more than the import.
    return re.compile(pattern, re.ASCII)


@cache
def compiled_bytes(pattern: bytes) -> re.Pattern[bytes]:
    return re.compile(pattern)


def match(pattern: str, text: str, start: int) -> re.Match[str] | None:
    return compiled(pattern).match(text, start)


def match_end(pattern: str, text: str, start: int) -> int:
    m = match(pattern, text, start)
    return m.end() if m else start


def marker(rule: str) -> str:
    return f"[redacted:{rule}]"


# Letters only: a name that could contain a secret is not one of ours.
_MARKER = r"\[redacted:([a-z]{2,16}(?:-[a-z]{2,16}){0,3})\]"

UNBROKEN = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+/.=~:%$"
_SHAPE = bytes(ord("x") if byte in UNBROKEN else ord(" ") for byte in range(256))
_PLAIN = b"abcdefghijklmnopqrstuvwxyz_-+/.=~:%$"


def is_long(value: bytes) -> bool:
    return len(value) >= LONG and is_dense(value)


def is_dense(value: bytes) -> bool:
    """Most long values are lower-case names and paths. Twenty random characters almost always have
    three digits or capitals."""
    return len(value.translate(None, _PLAIN)) > 2


def _long_values(raw: bytes, shape: bytes) -> tuple[list[int], list[bytes]]:
    starts, values = [], []
    needle = b"x" * LONG
    end = 0
    while (start := shape.find(needle, end)) >= 0:
        end = shape.find(b" ", start)
        value = raw[start:end]
        if len(value.translate(None, _PLAIN)) > 2:  # `is_dense`
            starts.append(start)
            values.append(value)
    return starts, values
