"""Secrets in HTTP headers, and in the options of programs that send them."""

from collections.abc import Iterator

from ctx.redaction.entropy import is_placeholder, is_random
from ctx.redaction.scan_text import Page, SecretSpan, compiled, match

RANK = 1


def find(page: Page) -> Iterator[SecretSpan]:
    yield from _find_bearers(page)
    yield from _find_cookies(page)


def authorization(page: Page, start: int) -> SecretSpan | None:
    m = match(_CREDENTIALS, page.text, start)
    if m is None or is_placeholder(m["value"]):
        return None
    value = m["value"]
    if (m["scheme"] or "").lower() == "basic":
        # Base64 of user:password, which has letters of both cases.
        plausible = len(value) >= 8 and not value.islower() and not value[1:].islower()
    else:
        plausible = _is_opaque(value)
    return SecretSpan(*m.span("value"), "authorization", RANK) if plausible else None


_CREDENTIALS = (
    r"""[bfru]{0,2}\\{0,3}["'`]?(?:(?P<scheme>[A-Za-z][\w-]{2,20})[ \t]+)?"""
    r"""(?:token=)?\\{0,3}["']?(?P<value>[\w.~+/=:-]{8,4096}+)"""
)


def _find_bearers(page: Page) -> Iterator[SecretSpan]:
    for at in page.keywords[b"bearer"]:
        m = match(r"""[ \t]+["'`]?([\w.~+/-]{16,4096}+={0,2})""", page.text, at + 6)
        if m and not is_placeholder(m[1]) and _is_opaque(m[1]):
            yield SecretSpan(*m.span(1), "authorization", RANK)


def _is_opaque(value: str) -> bool:
    return len(value) >= 12 and is_random(value)


# --- cookies --------------------------------------------------------------------

_PAIRS = r"""(?P<pairs>[^\s"'=;]{1,64}=[^\n"']{8,4096})"""
_HEADER = rf"""(?i)cookies?["']?(?:[ \t]*[:=,]|[ \t])[ \t]*["']?{_PAIRS}"""
_PAIR = r"""(?:\A|;[ \t]*)(?P<name>[^\s=;]{1,64})=(?P<value>[^\s;]{8,4096})"""


def _find_cookies(page: Page) -> Iterator[SecretSpan]:
    done = 0
    for at in page.keywords[b"cookie"]:
        if at >= done and (m := match(_HEADER, page.text, at)):
            yield from _find_values(page, *m.span("pairs"))
            done = m.end()


def _find_values(page: Page, start: int, end: int) -> Iterator[SecretSpan]:
    for m in compiled(_PAIR).finditer(page.text[start:end]):
        value = m["value"]
        if len(value) >= 16 and is_random(value) and not is_placeholder(value):
            yield SecretSpan(start + m.start("value"), start + m.end("value"), "cookie", RANK)
