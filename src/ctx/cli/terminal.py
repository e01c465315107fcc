"""Text on a terminal: its width, its colours, and control characters that must be escaped.

`output.py` decides whether there are colours at all. Only the eight basic ones are used, so that
the user's own theme applies. Blue and white are hard to read on one background or the other, and
are used little.
"""

import re
from functools import cache

from ctx import markdown

KINDS = {
    "": "",
    "heading": "1",
    "dim": "2",
    "field": "2",
    "id": "33",
    "type": "",
    "edge": "35",
    "age": "2",
    "tags": "36",
    "text": "",
    "number": "",
    "error": "1;31",
    "warning": "33",
    "state": "",
}
"""The kinds of lines and columns, and their colours.

`text` is prose: one line whatever is in it. On a terminal it is shortened to fit; before that,
`tags` are, and they are left out where prose needs their place. `number` stands to the right in
its column. `type` is a node's type, `state` is ok, warning or problem. A column of `field` names
what stands beside it, so that its table needs no headings.
"""

# A type always has the same colour, because people learn them.
_NODE_TYPES = {
    "fact": "32",
    "decision": "1;35",
    "pattern": "36",
    "observation": "34",
    "hypothesis": "33",
    "task": "1;33",
    "summary": "1;36",
    "source": "1;34",
    "open-question": "31",
    "file": "2",
    "item": "2",
    "package": "2",
    "diagnostic": "1;31",
}


_STATES = {"ok": "32", "warning": "33", "problem": "1;31"}


def visible(text: str) -> str:
    """The text with hidden characters and line ends escaped: a file name could forge a row."""
    return text if text.isascii() and text.isprintable() else text.translate(_escapes())


# Most commands print nothing that needs it.
@cache
def _escapes() -> dict[int, str]:
    return markdown.escapes(markdown.python_escape)


def visible_lines(text: str) -> str:
    """Hidden characters as escapes, in a text of several lines."""
    return markdown.visible(text)


def visible_json(text: str) -> str:
    """The same JSON without hidden characters: it has escapes for them, and leaves some alone."""
    if text.isascii() and "\x7f" not in text:
        return text
    # JSON itself escapes the first of the controls.
    ranges = (f"{chr(max(a, 0x7F))}-{chr(b)}" for a, b in markdown.HIDDEN if b >= 0x7F)
    return re.sub(f"[{''.join(ranges)}]", _in_json, text)


def _in_json(match: re.Match[str]) -> str:
    data = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{data[n]:02x}{data[n + 1]:02x}" for n in range(0, len(data), 2))


def one_line(text: str) -> str:
    """Line ends and tabs as spaces."""
    return " ".join(text.splitlines()).replace("\t", " ")


def cut(text: str, most: int = 100) -> str:
    """A text in one line of at most so many characters."""
    # A huge text is not split as a whole.
    line = " ".join(text[: most * 4].split())
    if len(line) <= most and len(text) <= most * 4:
        return line
    return f"{line[: most - 1].rstrip()}…"


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
    # A word, together with the commands in it.
    for word in re.findall(r"(?:`[^`]*`|\S)+", prose):
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


def colour_text(text: str, kind: str) -> str:
    """The text in the colour of its kind. Foreign text must be without control characters."""
    known = {"type": _NODE_TYPES, "state": _STATES}.get(kind)
    code = KINDS[kind] if known is None else known.get(text)
    return f"\x1b[{code}m{text}\x1b[0m" if code and text else text
