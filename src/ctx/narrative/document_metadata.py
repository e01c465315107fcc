"""The metadata comment of a narrative document: a few lines that look like YAML.

    <!-- metadata:
    created: 2026-01-20T10:00:00Z
    tags: [rust, "two words"]
    mentions:
      - core::net::Client
    -->

A line that begins with a key and a colon begins an entry, which extends to the next one. So a
broken entry does not affect the others. A list can be in brackets, one item per line after dashes,
or separated by commas. Unknown entries are kept when the rest is rewritten.
"""

import re
from collections.abc import Iterable, Sequence

from ctx.errors import ContentRefused

NOTHING = "<!-- metadata:\n-->"
"""A comment without entries."""

_LARGEST = 64 * 1024
_OPENING = re.compile(r"[ ]{0,3}<!--[ \t]*metadata:", re.IGNORECASE)
_END = "-->"
_KEY = re.compile(r"(?<![^\r\n])[ \t]*([A-Za-z_][\w-]*)[ \t]*:(?=\s|\Z)")
_DASHED = re.compile(r"(?<![^\r\n])[ \t]*-[ \t]+([^\r\n]*)")
_QUOTED = re.compile(r'"(?>(?:[^"\\]|\\.)*)"|\'(?>(?:[^\']|\'\')*)\'', re.DOTALL)
_STOP = re.compile(r"[,\[\]]")
_SPACE = re.compile(r"\s*")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|x[0-9a-fA-F]{2}|.)", re.DOTALL)
_NAMED = {"n": "\n", "r": "\r", "t": "\t", "0": "\0"}
_PLAIN = re.compile(r"[\w./~+$(=][\w./~+$()=:;^-]*(?<!:)")
_TO_ESCAPE = re.compile('[\\\\"\x00-\x1f\x7f-\x9f\u2028\u2029]')


def is_metadata(text: str, start: int, end: int) -> bool:
    """Whether the comment from `start` to `end` is a metadata comment."""
    return end - start <= _LARGEST and _OPENING.match(text, start, end) is not None


def parse(comment: str) -> dict[str, str]:
    """The entries: key to value. If a key occurs twice, the first one counts."""
    entries: dict[str, str] = {}
    for key, start, end in _entries(comment):
        entries.setdefault(key, comment[start:end].partition(":")[2].strip())
    return entries


def scalar(value: str) -> str:
    quoted = _QUOTED.match(value)
    if quoted:
        return _unquoted(quoted[0])
    lines = value.splitlines()
    return lines[0].partition(" #")[0].strip() if lines else ""


def items(value: str) -> tuple[str, ...]:
    if value in ("", "~", "null"):
        return ()
    if value.startswith("["):
        parsed = _list_items(value, 1)
    elif dashed := _DASHED.findall(value):
        parsed = [scalar(item.strip()) for item in dashed]
    else:
        parsed = _list_items(value.partition(" #")[0], 0)
    return tuple(item for item in parsed if item)


def render(entries: Iterable[tuple[str, str | Sequence[str]]]) -> str:
    lines = [f"{_line(key, value)}\n" for key, value in entries]
    return f"<!-- metadata:\n{''.join(lines)}{_END}"


def replace_entries(
    comment: str, entries: Iterable[tuple[str, str | Sequence[str]]], newline: str
) -> str:
    """The comment with these entries, which replace those of the same name or are added at the
    end."""
    for key, value in entries:
        line = _line(key, value)
        places = [(start, end) for name, start, end in _entries(comment) if name == key]
        if places:
            start, end = places[0]
            comment = comment[:start] + line + comment[end:]
        else:
            inner = comment.removesuffix(_END)
            comment = f"{inner.rstrip()}{newline}{line}{newline}{_END}"
    return comment


def _entries(comment: str) -> list[tuple[str, int, int]]:
    """Each key, and the start and end of its entry."""
    opening = _OPENING.match(comment)
    first = opening.end() if opening else 0
    last = len(comment.removesuffix(_END))
    inner = comment[first:last]
    keys = [*_KEY.finditer(inner)]
    entries = []
    for number, key in enumerate(keys):
        start = key.start(1)
        end = keys[number + 1].start() if number + 1 < len(keys) else len(inner)
        written = inner[start:end].rstrip()
        entries.append((key[1].lower(), first + start, first + start + len(written)))
    return entries


def _list_items(text: str, at: int) -> list[str]:
    """The items up to the bracket that closes the list, or to the end."""
    words = []
    while True:
        matched = _SPACE.match(text, at)
        at = matched.end() if matched else at
        start = at
        quoted = _QUOTED.match(text, at)
        if quoted:
            words.append(_unquoted(quoted[0]))
            at = quoted.end()
        depth = 0
        while (stop := _STOP.search(text, at)) and (depth or stop[0] == "["):
            depth += {"[": 1, "]": -1}.get(stop[0], 0)
            at = stop.end()
        end = stop.start() if stop else len(text)
        if not quoted:
            words.append(" ".join(text[start:end].split()))
        if stop is None or stop[0] == "]":
            return words
        at = stop.end()


def _line(key: str, value: str | Sequence[str]) -> str:
    if isinstance(value, str):
        return f"{key}: {_item_text(value)}"
    return f"{key}: [{', '.join(map(_item_text, value))}]"


def _item_text(item: str) -> str:
    if not item:
        raise ContentRefused("A tag, a mention or a time cannot be empty.")
    if _PLAIN.fullmatch(item):
        return item
    try:
        item.encode()
    except UnicodeEncodeError:
        raise ContentRefused("A tag or a mention is not text.") from None
    escaped = _TO_ESCAPE.sub(_escaped, item)
    # Its text must not end the comment.
    return '"' + (escaped.replace(">", "\\u003e") if "--" in escaped else escaped) + '"'


def _escaped(character: re.Match[str]) -> str:
    char = character[0]
    return f"\\{char}" if char in '\\"' else f"\\u{ord(char):04x}"


def _unquoted(text: str) -> str:
    if text[0] == "'":
        return text[1:-1].replace("''", "'")
    plain = _ESCAPE.sub(_escaped_character, text[1:-1])
    if plain.isascii():
        return plain
    # Join surrogate pairs, as other programs escape them; drop lone surrogates.
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _escaped_character(escape: re.Match[str]) -> str:
    word = escape[1]
    if len(word) == 1:
        return _NAMED.get(word, word)
    number = int(word[1:], 16)
    return chr(number) if number <= 0x10FFFF else "\ufffd"
