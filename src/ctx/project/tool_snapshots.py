"""Tool snapshots in a session's chain: the last one of each tool goes into the commit.

A snapshot and its edges are one step of the session and stay together. The snapshot of the code is
a tree with one object for each file, so unchanged files are the same objects in the next one.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from ctx import ids
from ctx.ids import ObjectId
from ctx.memory.records import Record
from ctx.objects import references, trees
from ctx.objects.commits import WorkStep
from ctx.objects.object_store import Reader, decode
from ctx.objects.object_types import (
    CargoSnapshot,
    Commit,
    DiagnosticsSnapshot,
    EdgeBatch,
    StepKind,
    Tree,
)
from ctx.project.project_repository import ProjectRepository

NAMED_BY = "diagnostics"
"""The field of an observation's metadata."""


class ReportedDiagnostics(NamedTuple):
    """The diagnostics of compilers and tests that a commit takes over from a session.

    The snapshot of a report is stored with the records of its command; the observation names it.
    The last snapshot shows the state of the code at the commit.
    """

    last: ObjectId | None
    texts: tuple[ObjectId, ...]
    """The blobs that the snapshots refer to."""


class ToolSnapshots(NamedTuple):
    """The objects that a commit takes over from a chain."""

    cargo: ObjectId | None = None
    edges: tuple[ObjectId, ...] = ()
    """The edge batches of the cargo snapshot."""
    code: ObjectId | None = None
    """The tree of the code snapshot."""

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of the snapshots."""
        cargo = "the answer of cargo metadata" if self.cargo else ""
        code = "a snapshot of the code" if self.code else ""
        return tuple(filter(None, (cargo, code)))

    @property
    def lines(self) -> list[str]:
        """The lines for the changelog."""
        return [f"+ {part}" for part in self.parts]

    @property
    def summary(self) -> str:
        return " and ".join(self.parts)


def last_snapshots(repository: ProjectRepository, steps: Sequence[WorkStep]) -> ToolSnapshots:
    """The last snapshots in the steps of a chain, which are ordered newest first."""
    last = ToolSnapshots()
    for step in steps:
        if step.work.step_kind is not StepKind.COMMAND_RUN:
            continue
        values = {id: decode(repository.everything.read(id)) for id in step.work.payload}
        cargo = [id for id, value in values.items() if isinstance(value, CargoSnapshot)]
        code = [id for id, value in values.items() if isinstance(value, Tree)]
        if cargo and last.cargo is None:
            edges = [id for id, value in values.items() if isinstance(value, EdgeBatch)]
            last = last._replace(cargo=cargo[-1], edges=tuple(edges))
        if code and last.code is None:
            last = last._replace(code=code[-1])
        if last.cargo and last.code:
            break
    return last


def objects_for_commit(
    repository: ProjectRepository, snapshots: ToolSnapshots, heads: Sequence[ObjectId]
) -> Iterator[ObjectId]:
    """The objects that a commit needs for its snapshots."""
    yield from snapshots.edges
    if snapshots.cargo:
        yield snapshots.cargo
    if snapshots.code:
        reader = repository.everything
        before = last_committed_code(repository, heads)
        for id in trees.new_objects(reader, before, snapshots.code):
            yield id
            value = decode(reader.read(id))
            if not isinstance(value, Tree):
                yield from references.required_ids(value)


def last_cargo(
    repository: ProjectRepository, steps: Sequence[WorkStep], heads: Sequence[ObjectId]
) -> ObjectId | None:
    """The newest cargo snapshot: staged in this chain, else committed."""
    staged = last_snapshots(repository, steps).cargo
    return staged or _first_id(commit.cargo_snapshot for commit in _history(repository, heads))


def last_code(
    repository: ProjectRepository, steps: Sequence[WorkStep], heads: Sequence[ObjectId]
) -> ObjectId | None:
    """The newest code snapshot: staged in this chain, else committed."""
    return last_snapshots(repository, steps).code or last_committed_code(repository, heads)


def last_committed_code(
    repository: ProjectRepository, heads: Sequence[ObjectId]
) -> ObjectId | None:
    return _first_id(commit.code_snapshot for commit in _history(repository, heads))


def _history(repository: ProjectRepository, heads: Sequence[ObjectId]) -> Iterator[Commit]:
    return (commit for _, commit in repository.history(heads))


def _first_id(ids: Iterable[ObjectId | None]) -> ObjectId | None:
    return next((id for id in ids if id is not None), None)


def last_reported(
    reader: Reader, records: Sequence[Record], kept: Collection[ObjectId]
) -> ReportedDiagnostics:
    """The stored snapshots that records, in order, refer to."""
    last: ObjectId | None = None
    texts: list[ObjectId] = []
    for name in referenced_snapshots(records):
        if name not in kept:
            continue
        value = decode(reader.read(name))
        if isinstance(value, DiagnosticsSnapshot):
            last = name
            texts += references.required_ids(value)
    return ReportedDiagnostics(last, tuple(texts))


def referenced_snapshots(said: Iterable[Record]) -> Iterator[ObjectId]:
    """The snapshots that records refer to, in order."""
    for record in said:
        metadata = record.body.get("metadata") if record.kind == "node.put" else None
        name = metadata.get(NAMED_BY) if isinstance(metadata, dict) else None
        if isinstance(name, str) and ids.is_object_id(name):
            yield ObjectId(name)
