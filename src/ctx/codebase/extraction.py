"""Read what files define, import and call while they are added.

The result is a batch of edges beside the versions of the files. It is limited: a step has a maximum
number of edges, guesses are kept only if memory has a node for their target, and only differences
to the committed version count.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress

from ctx import clock, disk, redaction
from ctx.code import code_snapshots, semantics
from ctx.code.lookup import Code
from ctx.code.semantics import AddedFileVersion, Semantics
from ctx.codebase import freshness, indexing
from ctx.codebase.extraction_result import ExtractedFile, ExtractedItem, ExtractionResult
from ctx.codebase.indexing import Codebase
from ctx.errors import CtxError
from ctx.ids import NodeId, ObjectId
from ctx.objects import trees
from ctx.objects.commits import WorkStep
from ctx.objects.object_store import Object, derived_id, typed
from ctx.objects.object_types import BatchEdge, EdgeBatch, Endpoint
from ctx.project import anchors, commit_edges, staging
from ctx.workspace import Workspace

_ORDER = {"CONTAINS": 1, "IMPORTS": 1, "DEFINES": 2, "CALLS": 3}


def open_with(workspace: Workspace, paths: Sequence[str]) -> Code | None:
    """Open an index that contains these files; None if it can be neither read nor built."""
    codebase = indexing.codebase_of(workspace)
    code = freshness.open_if_quick(codebase)
    if code is not None and all(_is_current(code, codebase, path) for path in paths):
        return code
    if code is not None:
        code.connection.close()
    # A large repository has no index yet, or too much has changed: index only these files.
    with suppress(CtxError):
        indexing.refresh(codebase, chosen=frozenset(paths).__contains__)
    return indexing.open_readable(codebase)


def _is_current(code: Code, codebase: Codebase, path: str) -> bool:
    """Whether the index has the current content of a file."""
    row = code.connection.execute("SELECT hash FROM files WHERE path = ?", (path,)).fetchone()
    try:
        content = disk.read_plain(os.path.join(codebase.place.root, path), codebase.max_bytes)
    except OSError:
        return row is not None
    return row is not None and row[0] == code_snapshots.digest(content)


class Extraction:
    """Reads the files of one step."""

    def __init__(
        self,
        workspace: Workspace,
        code: Code | None,
        committed: trees.CombinedTree,
        steps: Sequence[WorkStep],
    ) -> None:
        self._workspace = workspace
        self._reader = semantics.SemanticsReader(code, workspace.project.root) if code else None
        self._committed = committed
        self._staged = staging.files(workspace.repository, steps)
        self._known_versions = {
            (span.file_id, span.blob_id)
            for batch in commit_edges.batches_of_files(workspace.repository, steps)
            for edge in batch.edges
            if (span := edge.evidence.span)
        }
        self._files: list[ExtractedFile] = []
        self._modules: set[str] = set()
        self._edges: dict[tuple[Endpoint, str, Endpoint], BatchEdge] = {}
        self._doubtful = 0

    def is_missing(self, path: str, blob_id: ObjectId) -> bool:
        """Whether a file that was staged earlier still has to be read."""
        is_new = self._committed.blob_at(path) != blob_id
        return is_new and (self._file_id(path), blob_id) not in self._known_versions

    def take(self, path: str, content: bytes, blob_id: ObjectId) -> None:
        if self._reader is None:
            self._files.append(ExtractedFile(path, "", (), "there is no code index"))
            return
        before = self._content(self._committed.blob_at(path))
        staged = self._staged.get(path)
        is_again = staged is not None and staged.blob_id != blob_id
        latest = self._content(staged.blob_id) if staged and is_again else before
        version = AddedFileVersion(path, content, self._file_id(path), blob_id, before, latest)
        extracted = self._reader.read(version)
        if isinstance(extracted, Semantics):
            self._modules.add(extracted.module)
            items = tuple(ExtractedItem(*item) for item in extracted.items)
            self._files.append(ExtractedFile(path, extracted.module, items, parts=extracted.parts))
            self._add(extracted.edges)
        else:
            self._files.append(ExtractedFile(path, "", (), extracted))

    def _add(self, edges: Sequence[BatchEdge]) -> None:
        for edge in edges:
            if redaction.redact(f"{edge.from_.id}\n{edge.to.id}").findings:
                continue
            if not semantics.is_sure(edge) and not self._has_node(edge.to):
                self._doubtful += 1
                continue
            self._edges.setdefault((edge.from_, edge.label, edge.to), edge)

    def _has_node(self, end: Endpoint) -> bool:
        """Whether memory has a node for it."""
        kinds: dict[str, Callable[[str], anchors.Anchor]] = {
            "file": anchors.file,
            "item": anchors.item,
            "module": anchors.item,
        }
        id: NodeId = kinds[end.kind](end.id).id
        return self._workspace.memory.graph.has(id)

    def _file_id(self, path: str) -> ObjectId:
        return derived_id("file", self._workspace.repo_id, path)

    def _content(self, blob_id: ObjectId | None) -> bytes | None:
        if blob_id is None:
            return None
        try:
            return self._workspace.repository.everything.read(blob_id).payload
        except CtxError:
            # The blob is damaged or missing: everything counts as new.
            return None

    def done(self) -> tuple[ExtractionResult, Object | None]:
        """The result, and the batch of edges that belongs to the step."""
        self._workspace.memory.close()
        most = self._workspace.config.integer("ingestion.max_edges_per_step")
        edges = sorted(self._edges.values(), key=self._rank)
        kept = tuple(edges[:most])
        batch = typed(EdgeBatch(kept, clock.now_s())) if kept else None
        result = ExtractionResult(
            tuple(self._files),
            batch.id if batch else None,
            len(kept),
            len(edges) - len(kept),
            self._doubtful,
        )
        return result, batch

    def _rank(self, edge: BatchEdge) -> int:
        """Put the most useful edges first: what a file defines, then what it imports."""
        is_file = edge.label == "DEFINES" and edge.to.id in self._modules
        return 0 if is_file else _ORDER[edge.label]
