"""What was read out of files that are added, as `ctx add file` answers."""

from typing import NamedTuple

from ctx.ids import ObjectId


class ExtractedItem(NamedTuple):
    """Something that a file defines."""

    name: str
    """Its qualified name."""
    kind: str
    line: int
    state: str
    """`new`, `changed` or `same`, beside the version before: staged, else committed."""


class ExtractedFile(NamedTuple):
    path: str
    module: str
    """What the file is called as a module; of one that is none, its path."""
    items: tuple[ExtractedItem, ...]
    problem: str | None = None
    """Why nothing is known of what is in it."""
    parts: tuple[str, ...] = ()
    """The modules that it says it has, in files of their own."""


class ExtractionResult(NamedTuple):
    """What was read out of files."""

    files: tuple[ExtractedFile, ...]
    batch: ObjectId | None
    """The edges; None where there are none."""
    edges: int
    over_budget: int
    """Edges that were left out because one step has so many."""
    doubtful: int
    """Those that are guesses, to something that nobody speaks of."""
