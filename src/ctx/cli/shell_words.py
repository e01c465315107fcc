"""Splits the command line of bash up to the cursor, and quotes a word for it.

Bash also splits a line at characters such as `:` and `=`, and passes words with their quotes; zsh
and fish do neither. So the line itself is parsed here.
"""

from typing import NamedTuple

_SPACE = " \t\n"
_PLAIN = frozenset("_-./:=@%+,")
_SPECIAL_IN_DOUBLE_QUOTES = '$`"\\'


class TypedLine(NamedTuple):
    """A command line up to the cursor."""

    words: list[str]
    """The words before the cursor, without quotes."""
    current: str
    """The word at the cursor, without quotes."""
    quote: str
    """The open quote in it."""
    kept: int
    """How many of its characters bash keeps: the chosen word is put after them."""
    redirects: bool
    """The word is a file that the command reads from or writes to."""


def split(line: str, breaks: str) -> TypedLine:
    """Split a line as bash does; invalid parts are taken literally.

    `breaks` is bash's COMP_WORDBREAKS.
    """
    words: list[str] = []
    current, quote, kept = "", "", 0
    begun = redirects = False
    characters = iter(line)
    for character in characters:
        if quote:
            if character == quote:
                quote = ""
            elif character == "\\" and quote == '"':
                following = next(characters, "")
                escaped = following in _SPECIAL_IN_DOUBLE_QUOTES
                current += following if escaped else f"\\{following}"
            else:
                current += character
        elif character in _SPACE or character in "<>":
            if begun and not redirects:
                words.append(current)
            redirects = character in "<>" or (redirects and not begun)
            current, kept, begun = "", 0, False
        else:
            begun = True
            if character in "\"'":
                quote, kept = character, len(current)
            elif character == "\\":
                current += next(characters, "")
            else:
                current += character
                kept = len(current) if character in breaks else kept
    return TypedLine(words, current, quote, kept, redirects)


def insertion(value: str, typed: TypedLine) -> str | None:
    """The text that bash inserts for a value, quoted so that it means exactly the value.

    None if that is not possible after what is already typed.
    """
    if value[: typed.kept] != typed.current[: typed.kept]:
        return None
    rest = value[typed.kept :]
    match typed.quote:
        case "":
            return "".join(c if c.isalnum() or c in _PLAIN else f"\\{c}" for c in rest)
        case "'":
            return None if "'" in rest else rest
        case _:
            # Inside these quotes, bash would expand `!` from its history.
            special = _SPECIAL_IN_DOUBLE_QUOTES
            escaped = "".join(f"\\{c}" if c in special else c for c in rest)
            return None if "!" in rest else escaped
