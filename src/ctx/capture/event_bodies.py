"""The body of a new event: the part of a host's payload that is stored until it becomes a step.

Secrets and private text are never stored. The host's adapter has already removed what no step
needs, such as the content of files that were read. Other long texts lose their middle.
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
# Longer than any secret.
_BEYOND = 8_000
_MOST_DEPTH = 40
# No redaction rule matches across it.
_BREAK = "\n\0\n"
_FILES = ("before", "after")


# The keys of payloads that have no secrets. Nearly all payloads have the same keys.
_PLAIN_KEYS: set[str] = set()
_MOST_KEYS, _LONGEST_KEY = 1_000, 40


def body(payload: Mapping[str, Any]) -> str:
    texts: list[tuple[str, str]] = []
    shape = _shape("", payload, _MOST_DEPTH, texts)
    cleaned = _clean(texts)
    if len(_PLAIN_KEYS) < _MOST_KEYS:
        _PLAIN_KEYS.update(
            text
            for (name, text), clean in zip(texts, cleaned, strict=True)
            if not name and text == clean and len(text) <= _LONGEST_KEY
        )
    return json.dumps(shape(iter(cleaned).__next__))


NextText = Callable[[], str]


def _shape(
    name: str, value: Any, depth: int, texts: list[tuple[str, str]]
) -> Callable[[NextText], Any]:
    """A JSON value as a function of its texts, which are redacted all at once.

    Each text keeps its key, because the key can show that the text is a secret.
    """
    match value:
        case str():
            texts.append((name, value))
            return lambda given: given()
        case None | int():
            return lambda _: value
        case float() if not isfinite(value):
            return lambda _: str(value)
        case Mapping() if depth:
            pairs = []
            for key, each in value.items():
                plain = key if key in _PLAIN_KEYS else None
                if plain is None:
                    texts.append(("", str(key)))
                pairs.append((plain, _shape(str(key), each, depth - 1, texts)))
            return lambda given: {
                given() if plain is None else plain: shape(given) for plain, shape in pairs
            }
        case list() if depth:
            shapes = [_shape(name, each, depth - 1, texts) for each in value]
            return lambda given: [shape(given) for shape in shapes]
        case Mapping() | list():
            return lambda _: "…"
        case _:
            return lambda _: value


def _clean(texts: list[tuple[str, str]]) -> list[str]:
    """The texts without secrets and private parts. Many at once take hardly longer than one."""
    safe = [
        (name, _as_displayed(name, without_private(_without_surrogates(text))))
        for name, text in texts
    ]
    short = [_name_and_value(name, text) for name, text in safe if len(text) <= _LONGEST_TEXT]
    cleaned = redact(_BREAK.join(short)).text.split(_BREAK)
    if len(cleaned) != len(short):
        # A rule matched across a break after all.
        cleaned = [redact(each).text for each in short]
    given = iter(cleaned)
    return [
        next(given).removeprefix(_name_and_value(name, ""))
        if len(text) <= _LONGEST_TEXT
        else _shorten_text(name, text)
        for name, text in safe
    ]


def _as_displayed(name: str, text: str) -> str:
    """A text as it is displayed: an escape sequence inside a secret must not hide the secret."""
    if "\x1b" in text and name not in _FILES:
        text = STEERING.sub("", text)
    return text.replace("\0", " ")


def _name_and_value(name: str, text: str) -> str:
    return f"{name}={text}" if name else text


def _shorten_text(name: str, text: str) -> str:
    """A long text, cut to its two ends and redacted a little beyond them; a file stays whole."""
    if name in _FILES and len(text) <= written_lines.MOST:
        return redact(text).text
    half = _LONGEST_TEXT // 2
    named = _name_and_value(name, "")
    first = redact(named + text[: half + _BEYOND]).text.removeprefix(named)[:half]
    last = redact(text[-half - _BEYOND :]).text[-half:]
    return f"{first}\n… {len(text) - 2 * half:,} characters left out …\n{last}"


def _without_surrogates(text: str) -> str:
    """Without lone surrogates, which JSON allows and UTF-8 does not."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
