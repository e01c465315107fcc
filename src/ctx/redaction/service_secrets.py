"""Values without a form of their own that stand beside the name of the service they are for.

`formats.txt` has the length and the characters of these values for each service. `ACME=`, `acme:`
and `new Acme("…")` say too little for the other rules, which look for words such as "key".
"""

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import chain

from ctx.redaction.entropy import is_random
from ctx.redaction.scan_text import Page, SecretSpan, compiled, is_dense
from ctx.redaction.secret_formats import read_lines

RANK = 2

_BEFORE, _AFTER = 64, 32
_CHARACTERS = {
    "hex": "[0-9a-f]+",
    "lower": "[a-z0-9]+",
    "upper": "[A-Z0-9]+",
    "word": "[A-Za-z0-9]+",
    "wide": r"[\w=-]+",
    "uuid": "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
}
# A value with a digit, as nearly all have. Parts of paths are mostly commits.
_VALUE = rb"((?=[A-Za-z_-]{0,99}\d)[\w-]{16,200}+={0,2})(?![\w/+.-])|[\w/+.-]++"


@cache
def _services() -> dict[int, dict[bytes, list[str]]]:
    """The services with values of a length, and the characters of these values."""
    found: dict[int, dict[bytes, list[str]]] = {}
    for line in read_lines():
        if line.startswith("near "):
            _, length, characters, *names = line.split()
            low, _, high = length.partition("-")
            for each in range(int(low), int(high or low) + 1):
                services = found.setdefault(each, {})
                for name in names:
                    services.setdefault(name.encode(), []).append(_CHARACTERS[characters])
    return found


def find(page: Page) -> Iterator[SecretSpan]:
    services = _services() if page.long else {}
    for m in re.finditer(_VALUE, page.long):
        value = m[1] or b""
        if (named := services.get(len(value))) and is_dense(value):
            at = page.position(m.start())
            if _is_checksum(page.lower, at, at + len(value)):
                continue
            for name in _names_beside(page, at, at + len(value)):
                text = value.decode()
                if any(compiled(each).fullmatch(text) for each in named.get(name, ())):
                    if is_random(text):
                        yield SecretSpan(at, at + len(value), "service-secret", RANK)
                    break


def _is_checksum(text: bytes, start: int, end: int) -> bool:
    """Whether a value is labelled as a checksum, or stands in front of a path in a list of them."""
    before = text[max(0, start - 10) : start]
    if not before or before.endswith(b"\n"):
        return text[end : end + 2] in (b"  ", b" *")
    return re.search(_CHECKSUM, before) is not None


def _names_beside(page: Page, start: int, end: int) -> Iterator[bytes]:
    lines = page.lower[max(0, start - _BEFORE) : start].split(b"\n")
    before = lines[-1]
    if lines[1:] and (lines[2:] or start < _BEFORE) and re.fullmatch(_HEAD, lines[-2]):
        before = lines[-2] + b" " + before
    after = page.lower[end : end + _AFTER].partition(b"\n")[0]
    for word in re.findall(b"[a-z0-9]+", (before + b" " + after).translate(None, b"-_")):
        yield from _names_in(word)


_CHECKSUM = rb"\b(?:sha\d{1,3}|md5|blake\w{1,3})[=:-]\Z"
# `# acme` or `[acme]`, above `key = …`.
_HEAD = rb"[ \t]*[#/\[{\"'-]*[ \t]*[a-z0-9_-]+[\]\"': {]*"


@lru_cache(maxsize=8192)
def _names_in(word: bytes) -> list[bytes]:
    known = _names()
    return [
        name
        for at in range(len(word) - 2)
        for name in known.get(word[at : at + 3], ())
        if word.startswith(name, at)
    ]


@cache
def _names() -> dict[bytes, set[bytes]]:
    """The names of services by their first three characters."""
    names: dict[bytes, set[bytes]] = {}
    for name in chain(*_services().values()):
        names.setdefault(name[:3], set()).add(name)
    return names
