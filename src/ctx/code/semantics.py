"""The edges of one file for memory: what it defines, imports and calls.

Only changes and direct edges are included: the whole graph is in the index, where it costs nothing.
"""

from collections.abc import Iterator
from typing import NamedTuple

from ctx.code import code_snapshots, source_parser
from ctx.code.code_graph import CodeEdge as Known
from ctx.code.code_snapshots import ItemRow, LineOffsets
from ctx.code.lookup import Code
from ctx.code.qualified_names import QualifiedNames
from ctx.code.source_model import SourceImport, path_in_file
from ctx.code.vocabulary import CONFIDENCES, KINDS, PER_MILLE, file_of
from ctx.ids import ObjectId
from ctx.objects.object_types import CERTAIN, BatchEdge, EdgeEvidence, Endpoint, EvidenceTool, Span

_LARGEST = 200_000
"""The size limit for the previous content: a grammar may take very long for a larger one."""

_LOW = PER_MILLE[0]


class ItemVersion(NamedTuple):
    """An item of a file, and how it has changed."""

    name: str
    kind: str
    line: int
    state: str
    """`new`, `changed` or `same`: by signature and body."""


class Semantics(NamedTuple):
    module: str
    """The module name of the file; its path if it is not a module."""
    items: tuple[ItemVersion, ...]
    edges: tuple[BatchEdge, ...]
    """The most important first."""
    parts: tuple[str, ...]
    """The modules that it declares and that have their own files."""


class AddedFileVersion(NamedTuple):
    """A file as it is added, and its previous content, if there was one."""

    path: str
    content: bytes
    file_id: ObjectId
    blob_id: ObjectId
    before: bytes | None
    """The committed content: what is new since then becomes edges."""
    last_added: bytes | None
    """The content that was added last: changes since then are reported."""


def is_sure(edge: BatchEdge) -> bool:
    """Whether an edge counts even if memory has no node for its target."""
    return edge.evidence.confidence > _LOW


class SemanticsReader:
    """Reads files through one index."""

    def __init__(self, code: Code, root: str) -> None:
        self._code = code
        self._names = QualifiedNames(code.connection, root)

    def read(self, version: AddedFileVersion) -> Semantics | str:
        """The edges of a file, or why they are unknown."""
        file = self._code.file(version.path)
        if file is None:
            return "it is ignored, so the index of the code does not have it"
        if file.skipped is not None:
            return f"it was not read: {file.skipped}"
        every = code_snapshots.rows(self._code.connection, file.id)
        indexed = self._code.connection.execute(
            "SELECT hash FROM files WHERE id = ?", (file.id,)
        ).fetchone()
        if not every or indexed[0] != code_snapshots.digest(version.content):
            return "it changed while it was read"
        language = file.language or ""
        states = all_states = _states(every, version, version.before, language)
        if version.last_added != version.before:
            all_states = _states(every, version, version.last_added, language)
        lines = LineOffsets(
            version.file_id, code_snapshots.as_parsed(version.content), version.blob_id
        )
        edges = [
            *self._defines(every, states, lines),
            *self._imports(every, lines),
            *self._calls([row for row in every if states[row.id] != "same"], lines),
        ]
        items = tuple(
            ItemVersion(
                self._names.qualified_name(row.id), KINDS[row.kind], row.line, all_states[row.id]
            )
            for row in every
            if row.parent is not None and KINDS[row.kind] != "impl"
        )
        parts = dict.fromkeys(edge.to.id for edge in edges if edge.label == "CONTAINS")
        return Semantics(
            self._names.qualified_name(every[0].id),
            items,
            tuple(dict.fromkeys(edges)),
            tuple(parts),
        )

    def _end(self, item: int) -> Endpoint | None:
        located = self._code.located([item])
        if not located:
            return None
        name, kind, path = located[0].name, located[0].kind, located[0].path
        if name == path:
            return Endpoint("file", path)
        return Endpoint("module" if kind == "module" else "item", name)

    def _defines(
        self, every: list[ItemRow], states: dict[int, str], lines: LineOffsets
    ) -> Iterator[BatchEdge]:
        file = Endpoint("file", self._code.located([every[0].id])[0].path)
        visited = {file}
        for row in every:
            end = self._end(row.id)
            # An impl has the name of its type.
            if (
                end
                and end not in visited
                and states[row.id] != "same"
                and KINDS[row.kind] != "impl"
            ):
                visited.add(end)
                yield _edge(file, "DEFINES", end, CERTAIN, lines.span(row))

    def _imports(self, every: list[ItemRow], lines: LineOffsets) -> Iterator[BatchEdge]:
        """The imports of the file; a module that it declares is part of it."""
        file = every[0].id
        modules = {row.id for row in every if KINDS[row.kind] == "module"}
        for owner, imported in self._code.imports(file_of(file)):
            from_ = self._end(owner if owner in modules else file)
            to = self._end(imported.target) if imported.target else None
            if from_ and to and from_ != to:
                label = "CONTAINS" if _is_declaration(imported.written) else "IMPORTS"
                yield _edge(from_, label, to, PER_MILLE[-1], lines.line(imported.line))

    def _calls(self, changed: list[ItemRow], lines: LineOffsets) -> Iterator[BatchEdge]:
        """The calls of changed items, the most certain first."""
        known: list[Known] = self._code.edges_from([row.id for row in changed], ("CALLS",))
        for edge in known:
            from_, to = self._end(edge.source), self._end(edge.target)
            if from_ and to and from_ != to:
                confidence = PER_MILLE[CONFIDENCES.index(edge.confidence)]
                yield _edge(from_, "CALLS", to, confidence, lines.line(edge.line))


def _is_declaration(written: SourceImport) -> bool:
    """Whether it is Rust's `mod name;`, which declares a module and does not use it."""
    is_plain = written.module == f"self::{written.bound}"
    return not written.item and (is_plain or written.module.startswith('"'))


def _edge(from_: Endpoint, label: str, to: Endpoint, confidence: int, span: Span) -> BatchEdge:
    return BatchEdge(from_, label, to, EdgeEvidence(EvidenceTool.PARSER, confidence, span=span))


def _states(
    every: list[ItemRow], version: AddedFileVersion, earlier: bytes | None, language: str
) -> dict[int, str]:
    """How each item has changed since an earlier content. Items of the same name are compared in
    order."""
    before: dict[tuple[str, ...], list[tuple[str, bytes]]] = {}
    if earlier is not None and len(earlier) <= _LARGEST:
        content = code_snapshots.as_parsed(earlier)
        items = source_parser.parse_items(version.path, content, language).items
        for place, item in enumerate(items):
            key = (item.kind, *path_in_file(items, place))
            before.setdefault(key, []).append((item.signature, item.body_hash))
    around: dict[int | None, tuple[str, ...]] = {}
    states: dict[int, str] = {}
    for row in every:
        around[row.id] = (*around[row.parent], row.name) if row.parent is not None else ()
        known = before.get((KINDS[row.kind], *around[row.id]))
        if not known:
            states[row.id] = "new"
        elif known.pop(0) == (row.signature, row.body_hash):
            states[row.id] = "same"
        else:
            states[row.id] = "changed"
    # The file itself has changed, whichever item did.
    states[every[0].id] = "new" if earlier is None else "changed"
    return states
