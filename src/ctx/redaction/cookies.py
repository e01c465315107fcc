"""Session cookies in headers and commands."""

import re
from collections.abc import Iterator
from functools import cache

from ctx.redaction.entropy import is_placeholder, is_random
from ctx.redaction.scan_text import Page, SecretSpan

RANK = 1

_HEADER = r"""(?i)cookies?["']?(?:[ \t]*[:=,]|[ \t])[ \t]*["']?(?P<pairs>[^\s"'=;]{1,64}=[^\n"']{8,4096})"""
_PAIR = r"""(?:\A|;[ \t]*)(?P<name>[^\s=;]{1,64})=(?P<value>[^\s;]{8,4096})"""
_CURL = r"""\bcurl\b[^\n|;&]{0,200}?[ ]-b[ ]?["']?(?P<pairs>[^\s"'=;]{1,64}=[^\n"']{8,4096})"""


def find(page: Page) -> Iterator[SecretSpan]:
    done = 0
    at = page.lower.find(b"cookie")
    while at >= 0:
        if at >= done and (m := _compiled(_HEADER).match(page.text, at)):
            yield from _find_values(page, *m.span("pairs"))
            done = m.end()
        at = page.lower.find(b"cookie", at + 6)
    at = page.raw.find(b" -b")
    while at >= 0:
        if m := _compiled(_CURL).search(page.text, max(0, at - 210), at + 4300):
            yield from _find_values(page, *m.span("pairs"))
            at = max(at, m.end() - 3)
        at = page.raw.find(b" -b", at + 3)


def _find_values(page: Page, start: int, end: int) -> Iterator[SecretSpan]:
    for m in _compiled(_PAIR).finditer(page.text[start:end]):
        value = m["value"]
        if len(value) >= 16 and is_random(value) and not is_placeholder(value):
            yield SecretSpan(start + m.start("value"), start + m.end("value"), "cookie", RANK)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
