"""How the memory of two commits differs, and what they store of code, packages and diagnostics.

It is made in memory from the current index, at a cost proportional to the difference. A document
that was deleted later has its last committed content: history does not record the deletion.
"""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from typing import Any, NamedTuple

from ctx.errors import CtxError, UsageError
from ctx.ids import ObjectId, short
from ctx.memory import history, lookups
from ctx.memory.graph import PROJECT, Graph
from ctx.memory.model import Edge, Node, View
from ctx.objects.object_store import read_typed
from ctx.objects.object_types import Commit
from ctx.project import document_nodes, snapshot_diff
from ctx.project.project_index import Index
from ctx.project.project_index_state import Fingerprint, ProjectState, scrubbed_digest
from ctx.project.project_memory import ProjectMemory
from ctx.project.snapshot_diff import (
    DependencyDifference,
    DiagnosticDifference,
    ItemDifference,
    Kind,
    PackageDifference,
    SnapshotState,
    kind_of,
)
from ctx.sqlite.connection import transaction
from ctx.workspace import Workspace

_NO_FILE = Fingerprint(0, 0, 0)


HEAD, STAGED = "HEAD", "STAGED"
"""What is committed here, and the same with what is staged and what documents say by now."""

_PART = 500


class DiffSide(NamedTuple):
    name: str
    commits: tuple[ObjectId, ...]
    staged: bool
    """Whether what is in no commit yet counts too."""


class FieldDifference(NamedTuple):
    """A field that is not the same: `type`, `content`, `summary`, or `metadata KEY`."""

    name: str
    before: Any
    after: Any


class NodeDifference(NamedTuple):
    kind: Kind
    before: Node | None
    after: Node | None
    fields: tuple[FieldDifference, ...]
    """Of a node that is on both sides."""
    tags_added: tuple[str, ...]
    tags_removed: tuple[str, ...]


class EdgeDifference(NamedTuple):
    kind: Kind
    before: Edge | None
    after: Edge | None


class ViewDifference(NamedTuple):
    kind: Kind
    before: View | None
    after: View | None


class Diff(NamedTuple):
    """The answer of `ctx diff`."""

    before: DiffSide
    after: DiffSide
    nodes: tuple[NodeDifference, ...]
    edges: tuple[EdgeDifference, ...]
    views: tuple[ViewDifference, ...]
    items: tuple[ItemDifference, ...] = ()
    """Functions, classes and the like, by the last `ctx add code --snapshot` on each side."""
    packages: tuple[PackageDifference, ...] = ()
    dependencies: tuple[DependencyDifference, ...] = ()
    diagnostics: tuple[DiagnosticDifference, ...] = ()
    """Errors and warnings that came and went."""


def diff(workspace: Workspace, before: str, after: str) -> Diff:
    sides = side(workspace, before), side(workspace, after)
    repository = workspace.repository
    with _graph(workspace, sides[0]) as old, _graph(workspace, sides[1]) as new:
        files = [
            node.content for graph in (old, new) for node in graph.nodes(graph.of_type("file"))
        ]
        found = snapshot_diff.compare_snapshots(
            *(repository, _snapshots(workspace, sides[0]), _snapshots(workspace, sides[1])),
            *(workspace.repo_id, files),
        )
        return Diff(
            *sides,
            tuple(_nodes(old, new)),
            tuple(_edges(old, new)),
            tuple(_views(old, new)),
            found.items,
            found.packages,
            found.dependencies,
            found.diagnostics,
        )


def _snapshots(workspace: Workspace, side: DiffSide) -> SnapshotState:
    if side.staged:
        return snapshot_diff.staged_state(workspace.repository, side.commits, workspace.session)
    return snapshot_diff.state_at(workspace.repository, side.commits)


def side(workspace: Workspace, text: str) -> DiffSide:
    """What a person means: HEAD, STAGED, or a commit's id; and HEAD~2 for two commits before."""
    base, tilde, steps = text.partition("~")
    if base.upper() == STAGED and not tilde:
        return DiffSide(STAGED, _heads(workspace), staged=True)
    if base.upper() == HEAD:
        commits = _heads(workspace)
        if tilde and len(commits) != 1:
            raise UsageError(
                f"There are {len(commits)} heads, so {text[:40]} is ambiguous.",
                hint=f"Name one of them: {', '.join(map(short, commits))}.",
            )
    else:
        commits = (_commit(workspace, base),)
    if tilde:
        commits = (_ancestor(workspace, commits[0], text, steps),)
    return DiffSide(HEAD if text.upper() == HEAD else text, commits, staged=False)


def _heads(workspace: Workspace) -> tuple[ObjectId, ...]:
    return tuple(head.id for head in workspace.repository.current())


def _commit(workspace: Workspace, text: str) -> ObjectId:
    """The commit whose id begins so. Among commits here, other objects do not count."""
    known = history.commits(workspace.memory.graph.connection)
    meant = [each for each in known if each.startswith(text.lower())] if len(text) > 3 else []
    found = ObjectId(meant[0]) if len(meant) == 1 else workspace.repository.resolve(text)
    read_typed(workspace.repository.objects, found, Commit)
    return found


def _ancestor(workspace: Workspace, commit: ObjectId, text: str, steps: str) -> ObjectId:
    if steps and not (steps.isascii() and steps.isdigit() and len(steps) < 8):
        raise UsageError(f"{text[:40]!r} is not a commit.", hint="HEAD~2 is the one before HEAD~1.")
    for _ in range(int(steps or 1)):
        parents = read_typed(workspace.repository.objects, commit, Commit).parents
        if not parents:
            raise UsageError(
                f"There is no {text[:40]}: {short(commit)} is the first commit.",
                hint="`ctx log --oneline` shows them.",
            )
        commit = parents[0]
    return commit


def _graph(workspace: Workspace, side: DiffSide) -> AbstractContextManager[Graph]:
    if side.staged:
        return nullcontext(workspace.memory.graph)
    return graph_at(workspace.memory, side.commits)


def _nodes(old: Graph, new: Graph) -> Iterator[NodeDifference]:
    rows = [lookups.hashes(graph.connection) for graph in (old, new)]
    differing = sorted(
        node_id
        for node_id in rows[0].keys() | rows[1].keys()
        if rows[0].get(node_id) != rows[1].get(node_id)
    )
    for start in range(0, len(differing), _PART):
        part = differing[start : start + _PART]
        before, after = ({node.id: node for node in graph.nodes(part)} for graph in (old, new))
        for node_id in part:
            yield _node(before.get(node_id), after.get(node_id))


def _node(before: Node | None, after: Node | None) -> NodeDifference:
    had = before.tags if before else ()
    has = after.tags if after else ()
    fields = tuple(_fields(before, after)) if before and after else ()
    return NodeDifference(
        kind_of(before, after),
        before,
        after,
        fields,
        tuple(tag for tag in has if tag not in had),
        tuple(tag for tag in had if tag not in has),
    )


def _fields(before: Node, after: Node) -> Iterator[FieldDifference]:
    for name in ("type", "content", "summary"):
        if getattr(before, name) != getattr(after, name):
            yield FieldDifference(name, getattr(before, name), getattr(after, name))
    for key in sorted({**before.metadata, **after.metadata}):
        values = before.metadata.get(key), after.metadata.get(key)
        if values[0] != values[1]:
            yield FieldDifference(f"metadata {key}", *values)


def _edges(old: Graph, new: Graph) -> Iterator[EdgeDifference]:
    before, after = ({_ends(edge): edge for edge in graph.every_edge()} for graph in (old, new))
    yield from (
        EdgeDifference(kind_of(*both), *both)
        for ends in sorted(before.keys() | after.keys())
        if _differs(*(both := (before.get(ends), after.get(ends))))
    )


def _ends(edge: Edge) -> tuple[str, str, str]:
    return edge.from_id, edge.type, edge.to_id


def _differs(before: Edge | None, after: Edge | None) -> bool:
    return before is None or after is None or before.metadata != after.metadata


def _views(old: Graph, new: Graph) -> Iterator[ViewDifference]:
    before, after = ({view.name: view for view in graph.views()} for graph in (old, new))
    for name in sorted(before.keys() | after.keys()):
        both = before.get(name), after.get(name)
        shapes: list[Mapping[str, Any] | None] = [
            {"query": view.query, "budget": view.budget} if view else None for view in both
        ]
        if shapes[0] != shapes[1]:
            yield ViewDifference(kind_of(*both), *both)


@contextmanager
def graph_at(memory: ProjectMemory, commits: tuple[ObjectId, ...]) -> Iterator[Graph]:
    """The graph of some commits together, without staged records."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        memory.graph.connection.backup(connection)
        connection.execute("PRAGMA foreign_keys = ON")
        copy = Index(connection, memory.repository, ":memory:")
        with transaction(connection):
            for path in copy.changed_documents({}):
                copy.put_document(path, None)
            copy.bring(ProjectState(commits, (), scrubbed_digest(memory.project)))
            kept = dict(copy.last_snapshots())
            for path, blob in kept.items():
                # A blob may be missing, as in a shallow clone.
                with suppress(CtxError):
                    data = memory.repository.everything.read(ObjectId(blob)).payload
                    document = document_nodes.indexed_document(
                        connection, path, data, _NO_FILE, kept.__contains__
                    )
                    copy.put_document(path, document)
        yield Graph(connection, PROJECT)
