"""Text on a terminal: its width, and control characters that must be escaped."""

import re
from collections.abc import Sequence

# Characters that move the cursor, end a line, or change the direction of writing.
_STEERING = (
    *range(0x20),
    *range(0x7F, 0xA0),
    0x061C,
    *range(0x200E, 0x2010),
    *range(0x2028, 0x202F),
    *range(0x2066, 0x206A),
)
_VISIBLE = {code: f"\\x{code:02x}" for code in _STEERING}
_VISIBLE_LINES = {code: shown for code, shown in _VISIBLE.items() if chr(code) not in "\n\t"}
# Minimum columns of tags and prose in a table: `tier:pinned`, and half a sentence.
_SHORTEST_TAGS = 11
_ENOUGH_PROSE = 40
_SHORTEST_PROSE = 16

# A word, together with the commands in it.
_WORDS = re.compile(r"(?:`[^`]*`|\S)+")

_IN_JSON = {code: f"\\u{code:04x}" for code in _STEERING if code >= 0x7F}


def visible(text: str) -> str:
    """The text with control characters and line ends escaped: a file name could forge a row."""
    return text if text.isprintable() else text.translate(_VISIBLE)


def visible_lines(text: str) -> str:
    """Control characters as escapes, in a text of several lines."""
    return _translated_lines(text, _VISIBLE_LINES)


def visible_json(text: str) -> str:
    """The same JSON without control characters: it has escapes for them, and leaves some alone."""
    return _translated_lines(text, _IN_JSON)


def _translated_lines(text: str, escapes: dict[int, str]) -> str:
    """Line by line, because `translate` is slow and few lines need it."""
    return "\n".join(
        line if line.isprintable() else line.translate(escapes) for line in text.split("\n")
    )


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


def fit_widths(widths: Sequence[int], kinds: Sequence[str], most: int) -> list[int]:
    """The widths of columns side by side, with two spaces before each.

    Tags are shortened first. If prose still has too little space, tags are left out: their width is
    0.
    """
    with_tags = _narrow_columns(widths, kinds, "tags", _SHORTEST_TAGS, most)
    with_tags = _narrow_columns(with_tags, kinds, "text", _ENOUGH_PROSE, most)
    if "text" not in kinds or _total(with_tags) <= most:
        return with_tags
    without = [0 if kind == "tags" else w for w, kind in zip(widths, kinds, strict=True)]
    return _narrow_columns(without, kinds, "text", _SHORTEST_PROSE, most)


def _narrow_columns(
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
