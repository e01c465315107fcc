"""The meaning of the numbers in the code index.

It is separate from `source_model.py` because reading the index needs only this.
"""

KINDS = (
    *("module", "function", "method", "class", "struct", "enum", "trait", "interface", "impl"),
    *("const", "static", "type_alias", "macro"),
)
"""The kinds of items. The index stores the position in this list: new ones go to the end."""

VISIBILITIES = ("public", "crate", "super", "private")

LARGEST_FILE = 1 << 20
"""The maximum size of a file that is parsed, in bytes: people write smaller files."""

CONTAINERS = frozenset({"module", "class", "struct", "enum", "trait", "interface", "impl"})
"""Kinds whose children are reached through their name."""

FOLDERS_BESIDE_CODE = frozenset(
    "test tests testing doc docs example examples sample samples script scripts tool tools util "
    "utils bin ci build dist benchmark benchmarks bench task tasks fabfile site_scons exercise "
    "exercises htmlcov node_modules venv env".split()
)
"""Folders of a Python project that setuptools does not install."""

IMPORTS, CALLS, REFERENCES, USES_TYPE, IMPLEMENTS = range(5)
LABELS = ("IMPORTS", "CALLS", "REFERENCES", "USES_TYPE", "IMPLEMENTS")
"""The labels of edges between items. The index stores the position in this list."""

LOW, MEDIUM, HIGH = range(3)
CONFIDENCES = ("low", "medium", "high")
"""High: names and types lead there. Medium: it is the only item of that name. Low: it is one of a
few of that name."""

PER_MILLE = (300, 600, 900)
"""The same in per mille, as memory stores it."""

SLOTS = 16
"""The bits of an item's id that distinguish it within its file."""


def item_id(file_id: int, slot: int) -> int:
    return file_id << SLOTS | slot


def file_of(item: int) -> int:
    return item >> SLOTS
