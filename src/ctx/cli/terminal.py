"""Text on a terminal: its width, and control characters that must be escaped."""

import re

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


def shortened_in_the_middle(text: str, columns: int) -> str:
    """The text without its middle if it does not fit: the end of a path says most."""
    if width(text) <= columns:
        return text
    start = shortened(text, max(columns - columns * 2 // 3, 1))
    position, left = len(text), columns - width(start)
    while position and left >= _columns(text[position - 1]):
        position -= 1
        left -= _columns(text[position])
    return start + text[position:]


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


def _columns(character: str) -> int:
    if character.isascii():
        return 1
    import unicodedata

    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
