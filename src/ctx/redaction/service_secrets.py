"""Values without a form of their own that stand beside the name of the service they are for.

`formats.txt` has the length and the characters of these values for each service. `ACME=`, `acme:`
and `new Acme("…")` say too little for the other rules, which look for words such as "key".
"""

import re
from collections.abc import Iterator
from functools import cache

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
# Parts of paths are mostly commits.
_VALUE = rb"(?<![\w/+.-])[\w-]{16,200}={0,2}(?![\w/+.-])"


@cache
def _services() -> dict[int, list[tuple[bytes, str]]]:
    """The services with values of a length, and the characters of these values."""
    found: dict[int, list[tuple[bytes, str]]] = {}
    for line in read_lines():
        if line.startswith("near "):
            _, length, characters, *names = line.split()
            low, _, high = length.partition("-")
            for each in range(int(low), int(high or low) + 1):
                services = ((name.encode(), characters) for name in names)
                found.setdefault(each, []).extend(services)
    return found


def find(page: Page) -> Iterator[SecretSpan]:
    if not page.long:
        return
    services = _services()
    for m in re.finditer(_VALUE, page.long):
        named = services.get(len(m[0]))
        if named and is_dense(m[0]):
            at = page.position(m.start())
            if _is_of_service(page, at, m[0].decode(), named):
                yield SecretSpan(at, at + len(m[0]), "service-secret", RANK)


def _is_of_service(page: Page, at: int, value: str, named: list[tuple[bytes, str]]) -> bool:
    end = at + len(value)
    line = page.lower.rfind(b"\n", max(0, at - _BEFORE), at) + 1
    before = page.lower[line or max(0, at - _BEFORE) : at]
    after = page.lower[end : end + _AFTER].partition(b"\n")[0]
    beside = (before + b" " + after).translate(None, b"-_")
    for name, characters in named:
        if name in beside and compiled(_CHARACTERS[characters]).fullmatch(value):
            return is_random(value)
    return False
