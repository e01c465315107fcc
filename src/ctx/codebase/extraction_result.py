"""What `ctx add file` reports about the content of added files."""

from typing import NamedTuple

from ctx.ids import ObjectId


class ExtractedItem(NamedTuple):
    """An item that a file defines."""

    name: str
    """Its qualified name."""
    kind: str
    line: int
    state: str
    """`new`, `changed` or `same`, compared with the staged version, else with the committed one."""


class ExtractedFile(NamedTuple):
    path: str
    module: str
    """The module name of the file; its path if it is not a module."""
    items: tuple[ExtractedItem, ...]
    problem: str | None = None
    """Why the content of the file is unknown."""
    parts: tuple[str, ...] = ()
    """The modules that it declares and that have their own files."""


class ExtractionResult(NamedTuple):
    """What was read from files."""

    files: tuple[ExtractedFile, ...]
    batch: ObjectId | None
    """The batch of edges; None if there are no edges."""
    edges: int
    over_budget: int
    """Edges that were dropped because of the limit per step."""
    doubtful: int
    """Guesses that were dropped because memory has no node for their target."""
