"""The body of a new event: what is kept of a host's payload, until a step is made of it.

Nothing secret and nothing private is ever written down. What no step is made of, such as files that
were read, the host's adapter has left out already. Of other long texts the middle is left out: a
session is about what was done, and files and outputs have other places.
"""

import json
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

from ctx.capture import written_lines
from ctx.capture.command_steps import STEERING
from ctx.capture.private_text import without_private
from ctx.redaction import redact

_LONGEST_TEXT = 16_000
# No secret is longer.
_BEYOND = 8_000
_MOST_DEPTH = 40
# No rule of redaction looks across it.
_BREAK = "\n\0\n"
_FILES = ("before", "after")


def body(payload: Mapping[str, Any]) -> str:
    texts: list[tuple[str, str]] = []
    shape = _shape("", payload, _MOST_DEPTH, texts)
    return json.dumps(shape(iter(_clean(texts)).__next__))


Given = Callable[[], str]


def _shape(
    name: str, value: Any, depth: int, texts: list[tuple[str, str]]
) -> Callable[[Given], Any]:
    """A value of JSON as a function of its texts, which are looked at all at once.

    What a text is called may say what it is.
    """
    match value:
        case str():
            texts.append((name, value))
            return lambda given: given()
        case float() if not isfinite(value):
            return lambda _: str(value)
        case Mapping() if depth:
            pairs = []
            for key, each in value.items():
                texts.append(("", str(key)))
                pairs.append(_shape(str(key), each, depth - 1, texts))
            return lambda given: {given(): shape(given) for shape in pairs}
        case list() if depth:
            shapes = [_shape(name, each, depth - 1, texts) for each in value]
            return lambda given: [shape(given) for shape in shapes]
        case Mapping() | list():
            return lambda _: "…"
        case _:
            return lambda _: value


def _clean(texts: list[tuple[str, str]]) -> list[str]:
    """The texts without what nobody may read. A look at many takes hardly longer than at one."""
    safe = [(name, _seen(name, without_private(_safe(text)))) for name, text in texts]
    short = [_named(name, text) for name, text in safe if len(text) <= _LONGEST_TEXT]
    cleaned = redact(_BREAK.join(short)).text.split(_BREAK)
    if len(cleaned) != len(short):
        # Something was found across a break after all.
        cleaned = [redact(each).text for each in short]
    given = iter(cleaned)
    return [
        next(given).removeprefix(_named(name, ""))
        if len(text) <= _LONGEST_TEXT
        else _shortened(name, text)
        for name, text in safe
    ]


def _seen(name: str, text: str) -> str:
    """A text as somebody saw it: a colour in the middle of a secret hides it from nobody."""
    if "\x1b" in text and name not in _FILES:
        text = STEERING.sub("", text)
    return text.replace("\0", " ")


def _named(name: str, text: str) -> str:
    return f"{name}={text}" if name else text


def _shortened(name: str, text: str) -> str:
    """Of a long text only the ends are looked at, and a little beyond; a file is kept whole."""
    if name in _FILES and len(text) <= written_lines.MOST:
        return redact(text).text
    half = _LONGEST_TEXT // 2
    named = _named(name, "")
    first = redact(named + text[: half + _BEYOND]).text.removeprefix(named)[:half]
    last = redact(text[-half - _BEYOND :]).text[-half:]
    return f"{first}\n… {len(text) - 2 * half:,} characters left out …\n{last}"


def _safe(text: str) -> str:
    """JSON can say what no file can hold: half of a character that is written with two."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
