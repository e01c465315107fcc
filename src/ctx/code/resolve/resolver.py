"""Resolve files by id, each with the rules of its language."""

import importlib
from array import array
from sqlite3 import Connection

import msgspec

from ctx.code.resolve.evaluator import Evaluator
from ctx.code.resolve.world import World
from ctx.sqlite.connection import connect

_RULES = {
    "python": "python",
    "rust": "rust",
    "typescript": "typescript",
    "tsx": "typescript",
    "javascript": "typescript",
    "go": "go",
    "java": "java",
    "c": "c",
    "cpp": "c",
}
"""The module with the rules of each language."""

FIELDS = 6
"""Numbers for each edge: source, label, target, confidence, line, times."""


class ResolvedEdges(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The edges and import targets of one file."""

    file_id: int
    edges: bytes
    """64-bit numbers, `FIELDS` for each edge."""
    targets: bytes
    """The target of each import, as 64-bit numbers: the id of an item, or 0."""


class Resolver:
    """Resolves files one by one against one state of the index."""

    def __init__(self, connection: Connection, root: str) -> None:
        self._world = World(connection, root)
        self._evaluators: dict[str, Evaluator | None] = {}

    @classmethod
    def at(cls, database: str, root: str) -> "Resolver":
        return cls(connect(database, "mode=ro"), root)

    def resolve(self, file_id: int) -> ResolvedEdges:
        file = self._world.file(file_id)
        evaluator = self._evaluator(file.facts.language) if file else None
        if file is None or evaluator is None:
            return ResolvedEdges(file_id, b"", b"")
        names = evaluator.resolve(file, self._world.mentions(file_id))
        numbers = array("q")
        for ends, rest in sorted(names.edges.items()):
            numbers.extend(ends)
            numbers.extend(rest)
        return ResolvedEdges(file_id, numbers.tobytes(), array("q", names.targets).tobytes())

    def _evaluator(self, language: str) -> Evaluator | None:
        rules = _RULES.get(language)
        if rules is None:
            return None
        if rules not in self._evaluators:
            module = importlib.import_module(f"ctx.code.resolve.{rules}_rules")
            self._evaluators[rules] = Evaluator(self._world, module.RULES)
        return self._evaluators[rules]
