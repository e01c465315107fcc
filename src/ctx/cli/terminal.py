"""Text on a terminal: its width, and control characters that must be escaped."""

import re
from collections.abc import Sequence

from ctx import markdown

_VISIBLE = markdown.escapes(markdown.python_escape)
# Minimum columns of tags and prose in a table: `tier:pinned`, and half a sentence.
_SHORTEST_TAGS = 11
_ENOUGH_PROSE = 40
_SHORTEST_PROSE = 16

# A word, together with the commands in it.
_WORDS = re.compile(r"(?:`[^`]*`|\S)+")

# JSON itself escapes the first of the controls.
_HIDDEN_IN_JSON = re.compile(
    "[" + "".join(f"{chr(max(a, 0x7F))}-{chr(b)}" for a, b in markdown.HIDDEN if b >= 0x7F) + "]"
)


def visible(text: str) -> str:
    """The text with hidden characters and line ends escaped: a file name could forge a row."""
    return text if text.isascii() and text.isprintable() else text.translate(_VISIBLE)


def visible_lines(text: str) -> str:
    """Hidden characters as escapes, in a text of several lines."""
    return markdown.visible(text)


def visible_json(text: str) -> str:
    """The same JSON without hidden characters: it has escapes for them, and leaves some alone."""
    return text if text.isascii() and "\x7f" not in text else _HIDDEN_IN_JSON.sub(_in_json, text)


def _in_json(match: re.Match[str]) -> str:
    data = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{data[n]:02x}{data[n + 1]:02x}" for n in range(0, len(data), 2))


def one_line(text: str) -> str:
    """Line ends and tabs as spaces."""
    return " ".join(text.splitlines()).replace("\t", " ")


def width(text: str) -> int:
    """The columns of a text on a terminal: East Asian characters need two, accents none."""
    if text.isascii():
        return len(text)
    return sum(map(_columns, text))


def shortened(text: str, columns: int) -> str:
    """The text, shortened with `…` if it does not fit."""
    if width(text) <= columns:
        return text
    left = columns - 1
    for position, character in enumerate(text):
        left -= _columns(character)
        if left < 0:
            return f"{text[:position].rstrip()}…"
    return text


def wrapped(text: str, columns: int) -> str:
    """A line of prose, broken at spaces where it does not fit. Commands in backticks stay whole."""
    if width(text) <= columns:
        return text
    prose = text.lstrip(" ")
    indent = text[: len(text) - len(prose)]
    lines, line = [], indent
    for word in _WORDS.findall(prose):
        if line.strip() and width(line) + 1 + width(word) > columns:
            lines.append(line)
            line = indent
        line = f"{line} {word}" if line.strip() else f"{line}{word}"
    return "\n".join([*lines, line])


def fitted_example(line: str, columns: int) -> str:
    """An example of a command. Its explanation gets a line of its own if it does not fit."""
    if width(line) <= columns:
        return line
    command, _, explanation = line.rstrip().rpartition("  ")
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    return (
        f"{command.rstrip()}\n{wrapped(indent + explanation, columns)}" if command.strip() else line
    )


def fitted(widths: Sequence[int], kinds: Sequence[str], most: int) -> list[int]:
    """The widths of columns side by side, with two spaces before each.

    Tags are shortened first. If prose still has too little space, tags are left out: their width is
    0.
    """
    with_tags = _narrowed(widths, kinds, "tags", _SHORTEST_TAGS, most)
    with_tags = _narrowed(with_tags, kinds, "text", _ENOUGH_PROSE, most)
    if "text" not in kinds or _total(with_tags) <= most:
        return with_tags
    without = [0 if kind == "tags" else w for w, kind in zip(widths, kinds, strict=True)]
    return _narrowed(without, kinds, "text", _SHORTEST_PROSE, most)


def _narrowed(
    widths: Sequence[int], kinds: Sequence[str], kind: str, least: int, most: int
) -> list[int]:
    """The widths with those of a kind made narrower, the widest first, as far as needed."""
    giving = [number for number, its_kind in enumerate(kinds) if its_kind == kind]
    narrowed = [min(w, max(most, least)) if n in giving else w for n, w in enumerate(widths)]
    while giving and _total(narrowed) > most:
        widest = max(giving, key=lambda number: narrowed[number])
        if narrowed[widest] <= least:
            break
        narrowed[widest] -= 1
    return narrowed


def _total(widths: Sequence[int]) -> int:
    return sum(w + 2 for w in widths if w)


def _columns(character: str) -> int:
    if character.isascii():
        return 1
    import unicodedata

    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
