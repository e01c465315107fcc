"""What a scrub removes from stored text: a word, a pattern, or every secret that the rules find.

A word matches in any case, also as JSON escapes it, and with any of space, `-` and `_` where it has
one of these: a title has spaces where its file name has hyphens.
"""

import json
import re
from collections.abc import Callable
from typing import Any

from ctx.errors import UsageError
from ctx.redaction import redact

REPLACEMENT = "[scrubbed]"
NAME = "scrubbed"
"""The marker in a tag or a file name."""

_SHORTEST = 3
_MOST_TURNS = 10
_ID = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}|[0-9a-f]{64}")
_BETWEEN = r"(?:[\s_-]|\\[nrt])+"

Key = Callable[[str], bool]


class Needle:
    """A pattern to remove from texts. `description` describes it without revealing it."""

    def __init__(self, pattern: re.Pattern[str] | None, description: str) -> None:
        self._pattern = pattern
        self.description = description

    @property
    def is_rules(self) -> bool:
        return self._pattern is None

    def scrubbed(self, text: str) -> str:
        """The text without the matches. Ids are not changed."""
        return self._replace_matches(text, REPLACEMENT)

    def name(self, text: str) -> str:
        """The same for a tag or a path, in which brackets are not allowed."""
        return self._replace_matches(text, NAME)

    def is_in(self, text: str) -> bool:
        if _ID.fullmatch(text):
            return False
        if self._pattern is not None:
            return self._pattern.search(text) is not None
        return bool(redact(text).findings)

    def is_in_bytes(self, data: bytes) -> bool:
        """Whether a file contains it."""
        return self._pattern is not None and self.is_in(data.decode("utf-8", "surrogateescape"))

    def _replace_matches(self, text: str, replacement: str) -> str:
        if _ID.fullmatch(text):
            return text
        if self._pattern is None:
            clean = redact(text)
            # A name without its secret has no room for a marker.
            return clean.text if replacement is REPLACEMENT or not clean.findings else replacement
        # The text on its left and right may form a new match.
        for _ in range(_MOST_TURNS):
            text, count = self._pattern.subn(replacement, text)
            if not count:
                break
        return text

    def scrubbed_json(self, value: Any, *, keys: bool) -> Any:
        """A JSON value without the matches; with `keys`, also in the keys of objects."""
        return self._value(value, "", keys, 0)

    def _value(self, value: Any, key: str, keys: bool, depth: int) -> Any:
        if isinstance(value, str):
            if self._pattern is not None or not key:
                return self.scrubbed(value)
            # The key of a value determines what it may be.
            return self.scrubbed(f"{key}={value}").removeprefix(f"{key}=")
        if isinstance(value, list | tuple):
            return [self._value(nested, key, keys, depth + 1) for nested in value]
        if isinstance(value, dict):
            return {
                (self.scrubbed(name) if keys and depth else name): self._value(
                    nested, name, keys, depth + 1
                )
                for name, nested in value.items()
            }
        return value


RULES = Needle(None, "what the rules of redaction find")


def word(text: str) -> Needle:
    """A pattern for a text in any case and with any separators between its words."""
    if len(text.strip()) < _SHORTEST:
        raise UsageError(
            f"{len(text.strip())} characters are too few: they are in everything.",
            hint=f"Give at least {_SHORTEST}, or a pattern with --regex.",
        )
    forms = dict.fromkeys((text.strip(), *_in_json(text.strip())))
    pattern = "|".join(_flexible(form) for form in forms)
    return _checked_needle(re.compile(pattern, re.IGNORECASE), "a word")


def regex(text: str) -> Needle:
    try:
        pattern = re.compile(text)
    except (re.error, RecursionError) as error:
        raise UsageError(f"This is no regular expression: {error}.") from error
    if pattern.search("") is not None:
        raise UsageError("This pattern finds nothing at all, everywhere.")
    return _checked_needle(pattern, "a pattern")


def _checked_needle(pattern: re.Pattern[str], description: str) -> Needle:
    if pattern.search(REPLACEMENT):
        raise UsageError(f"It stands in {REPLACEMENT}, which is what takes its place.")
    return Needle(pattern, description)


def _in_json(text: str) -> tuple[str, str]:
    plain, ascii_only = (
        json.dumps(text, ensure_ascii=is_ascii)[1:-1] for is_ascii in (False, True)
    )
    return plain, ascii_only


def _flexible(text: str) -> str:
    parts = re.split(r"[\s_-]+", text)
    return _BETWEEN.join(map(re.escape, parts)) if all(parts) else re.escape(text)
