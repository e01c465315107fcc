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


def colour_text(text: str, kind: str) -> str:
    """The text in the colour of its kind. Foreign text must be without control characters."""
    known = {"type": _NODE_TYPES, "state": _STATES}.get(kind)
    code = KINDS[kind] if known is None else known.get(text)
    return f"\x1b[{code}m{text}\x1b[0m" if code and text else text
