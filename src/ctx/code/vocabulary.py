"""What the numbers in the index of the code stand for.

It is apart from `model.py` because who only reads the index needs no more than this.
"""

KINDS = (
    *("module", "function", "method", "class", "struct", "enum", "trait", "interface", "impl"),
    *("const", "static", "type_alias", "macro"),
)
"""What an item can be. The index keeps the place in this list: new ones go to the end."""

VISIBILITIES = ("public", "crate", "super", "private")

LARGEST_FILE = 1 << 20
"""Bytes of a file that is read out, whatever else may be kept: what people write is smaller."""

CONTAINERS = frozenset({"module", "class", "struct", "enum", "trait", "interface", "impl"})
"""Kinds whose children are reached through their name."""

IMPORTS, CALLS, REFERENCES, USES_TYPE, IMPLEMENTS = range(5)
LABELS = ("IMPORTS", "CALLS", "REFERENCES", "USES_TYPE", "IMPLEMENTS")
"""The labels of edges between items. The index keeps the place in this list."""

LOW, MEDIUM, HIGH = range(3)
CONFIDENCES = ("low", "medium", "high")
"""High: names and types lead there. Medium: it is the only one of that name. Low: it is one of a
few of that name."""

PER_MILLE = (300, 600, 900)
"""The same as memory writes it down."""

SLOTS = 16
"""Bits of the id of an item that tell it from the others in its file."""


def item_id(file_id: int, slot: int) -> int:
    return file_id << SLOTS | slot


def file_of(item: int) -> int:
    return item >> SLOTS
