"""A value as YAML for people: text of several lines is written line by line.

Only JSON values are written, and only in forms that YAML 1.1 and 1.2 parse alike: text is in double
quotes or in a literal block, never bare. So no word becomes a number or a boolean by accident.
"""

import json
import math
import re
from collections.abc import Iterator
from typing import Any

from ctx.markdown import HIDDEN

_BARE_KEY = re.compile(r"[a-z]+(_[a-z]+)*")
_NOT_BARE = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
# Hidden characters, and those that no parser accepts unescaped. Line ends and tabs are no problem.
_NEEDS_QUOTES = re.compile(
    "["
    + "".join(f"{chr(first)}-{chr(last)}" for first, last in HIDDEN if first)
    + "\x00-\x08\x0b-\x1f\ud800-\udfff\ufffe\uffff]"
)
_BLANK_LINE = re.compile(r"^[ \t]+$", re.MULTILINE)


def as_yaml(value: Any) -> str:
    """A JSON value as YAML."""
    return "\n".join(_lines(value, 0)) + "\n"


def _lines(value: Any, indent: int) -> Iterator[str]:
    space = " " * indent
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _entry(f"{space}{_key(key)}:", inner, indent)
    elif isinstance(value, list) and value:
        for inner in value:
            if isinstance(inner, dict | list) and inner:
                first, *rest = _lines(inner, indent + 2)
                yield f"{space}- {first[indent + 2 :]}"
                yield from rest
            else:
                yield from _entry(f"{space}-", inner, indent)
    else:
        yield from _entry("", value, indent)


def _entry(head: str, value: Any, indent: int) -> Iterator[str]:
    """The text after a key or a dash."""
    if isinstance(value, dict | list) and value:
        yield head
        yield from _lines(value, indent + 2)
    elif isinstance(value, str) and _is_block(value) and head:
        body = value.removesuffix("\n")
        keeping = "" if value.endswith("\n") else "-"
        # The indentation is given: the first line of the text may begin with spaces.
        yield f"{head} |2{keeping}"
        for line in body.split("\n"):
            yield f"{' ' * (indent + 2)}{line}" if line else ""
    else:
        yield f"{head} {_scalar(value)}" if head else _scalar(value)


def _is_block(text: str) -> bool:
    """Whether a text can be written line by line and parsed back unchanged."""
    return (
        "\n" in text.removesuffix("\n")
        and not text.endswith("\n\n")
        and bool(text.strip())
        and _NEEDS_QUOTES.search(text) is None
        and _BLANK_LINE.search(text) is None
    )


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) and key not in _NOT_BARE else _quoted(key)


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
        mantissa, mark, exponent = repr(value).partition("e")
        # Without a point, older parsers read `1e-05` as a string.
        return f"{mantissa}.0e{exponent}" if mark and "." not in mantissa else repr(value)
    if isinstance(value, dict | list):
        return "{}" if isinstance(value, dict) else "[]"
    return json.dumps(value)


def _quoted(text: str) -> str:
    return _NEEDS_QUOTES.sub(_escaped, json.dumps(text, ensure_ascii=False))


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
