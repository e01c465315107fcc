"""What a scrub removes from stored text: a word, a pattern, or every secret that the rules find.

A word matches in any case, also as JSON escapes it, and with any of space, `-` and `_` where it has
one of these: a title has spaces where its file name has hyphens. Accents match composed and
decomposed.

An id connects the parts of a store. A match in a part of an id does not count: three letters are in
some id by chance. A match of a whole id does.

Each use of a pattern that a user wrote has a time limit, because some patterns take years.
"""

import json
import re
import unicodedata
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from ctx import interrupts
from ctx.errors import UsageError
from ctx.redaction import redact

REPLACEMENT = "[scrubbed]"
NAME = "scrubbed"
"""The marker in a tag or a file name."""

_SHORTEST = 3
_MOST_TURNS = 10
_MOST_SECONDS = 10.0
"""For one text. A stored text has at most a few megabytes, which takes well under a second."""
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_ID = re.compile(rf"(?:session:)?(?:[0-9A-HJKMNP-TV-Z]{{26}}|[0-9a-f]{{64}}|{_UUID})")
_BETWEEN = r"(?:[\s_-]|\\[nrt])+"

_Result = TypeVar("_Result")


class Needle:
    """A pattern to remove from texts. `description` describes it without revealing it."""

    def __init__(
        self, pattern: re.Pattern[str] | None, description: str, *, most_seconds: float = 0
    ) -> None:
        self._pattern = pattern
        self.description = description
        self._most_seconds = most_seconds

    @property
    def is_rules(self) -> bool:
        return self._pattern is None

    @property
    def is_word(self) -> bool:
        """Whether the bytes of a file show that the text is not in it.

        A pattern may begin at the start of a text, or match a character that JSON escapes.
        """
        return self._pattern is not None and not self._most_seconds

    def scrubbed(self, text: str) -> str:
        """The text without the matches. Ids are not changed."""
        return self._replace_matches(text, REPLACEMENT)

    def name(self, text: str) -> str:
        """The same for a tag or a path, in which brackets are not allowed."""
        return self._replace_matches(text, NAME)

    def is_in(self, text: str) -> bool:
        if self._pattern is None:
            return not _ID.fullmatch(text) and bool(redact(text).findings)
        pattern = self._pattern
        if _ID.fullmatch(text):
            return self._limited(lambda: _matches_id(pattern, text))
        return self._limited(lambda: pattern.search(text)) is not None

    def is_in_bytes(self, data: bytes) -> bool:
        """Whether a file contains it."""
        return self._pattern is not None and self.is_in(data.decode("utf-8", "surrogateescape"))

    def _replace_matches(self, text: str, replacement: str) -> str:
        if self._pattern is None:
            clean = redact(text)
            if _ID.fullmatch(text) or not clean.findings:
                return text
            # A name without its secret has no room for a marker.
            return clean.text if replacement is REPLACEMENT else replacement
        pattern = self._pattern
        if _ID.fullmatch(text) and not self._limited(lambda: _matches_id(pattern, text)):
            return text
        # The text on its left and right may form a new match.
        for _ in range(_MOST_TURNS):
            text, count = self._limited(partial(pattern.subn, replacement, text))
            if not count:
                break
        return text

    def _limited(self, match: Callable[[], _Result]) -> _Result:
        if not self._most_seconds:
            return match()
        try:
            with interrupts.TimeLimit(self._most_seconds):
                return match()
        except TimeoutError:
            raise UsageError(
                "The pattern takes too long on a stored text.",
                hint="Avoid a repetition inside a repetition, such as `(a+)+` or `(a|a)*`.",
            ) from None

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
    composed = [unicodedata.normalize(form, text.strip()) for form in ("NFC", "NFD")]
    every = [form for each in (text.strip(), *composed) for form in (each, *_in_json(each))]
    pattern = "|".join(_flexible(form) for form in dict.fromkeys(every))
    found = Needle(re.compile(pattern, re.IGNORECASE), "a word")
    _check(found)
    return found


def regex(text: str, most_seconds: float = _MOST_SECONDS) -> Needle:
    try:
        pattern = re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise UsageError(f"This is no regular expression: {error}.") from error
    found = Needle(pattern, "a pattern", most_seconds=most_seconds)
    if found.is_in(""):
        raise UsageError("This pattern finds nothing at all, everywhere.")
    _check(found)
    return found


def _check(found: Needle) -> None:
    if found.is_in(REPLACEMENT):
        raise UsageError(f"It stands in {REPLACEMENT}, which is what takes its place.")


def _matches_id(pattern: re.Pattern[str], text: str) -> bool:
    """Whether a pattern matches an id as a whole, with or without `session:` before it."""
    return any(pattern.fullmatch(each) for each in (text, text.removeprefix("session:")))


def _in_json(text: str) -> tuple[str, str]:
    plain, ascii_only = (
        json.dumps(text, ensure_ascii=is_ascii)[1:-1] for is_ascii in (False, True)
    )
    return plain, ascii_only


def _flexible(text: str) -> str:
    parts = re.split(r"[\s_-]+", text)
    return _BETWEEN.join(map(re.escape, parts)) if all(parts) else re.escape(text)
