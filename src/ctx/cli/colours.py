"""The colours of terminal output. `output.py` decides whether there are colours at all.

Only the eight basic colours are used, so that the user's own theme applies. Blue and white are hard
to read on one background or the other, and are used little.
"""

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
}
"""The kinds of lines and columns, and their colours.

`text` is prose, always on one line. On a terminal it is shortened to fit; `tags` are shortened
first, and left out if prose needs the space. `number` is aligned to the right. `type` is the type
of a node. A `field` column contains the names of the values beside it, so its table needs no
headings.
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


def painted(text: str, kind: str) -> str:
    """The text in the colour of its kind. Foreign text must be without control characters."""
    code = _NODE_TYPES.get(text) if kind == "type" else KINDS[kind]
    return f"\x1b[{code}m{text}\x1b[0m" if code and text else text
