"""Undo a change."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from heapq import merge
from itertools import islice, repeat
from typing import NamedTuple

from ctx.errors import NodeNotFound, UsageError
from ctx.ids import NodeId, Ulid, short
from ctx.memory import history, inverse_changes, records, replay, replicas
from ctx.memory.graph import PROJECT, USER, Graph
from ctx.memory.inverse_changes import ChangeSummary, KeptField
from ctx.operations import undo_import
from ctx.operations.undo_import import SessionImport
from ctx.workspace import Memory

_MOST_LISTED = 1_000


class ChangeList(NamedTuple):
    """The answer of `ctx undo --list`."""

    changes: tuple[ChangeSummary, ...]
    more: int = 0
    """How many older changes there are."""


class UndoResult(NamedTuple):
    """The answer of `ctx undo`."""

    change: ChangeSummary
    what: tuple[str, ...]
    """What the change did, in a few words each; for a very large one, only the first."""
    kept: tuple[KeptField, ...]
    """What was not undone, because it was changed again since."""
    by: str | None
    """The change that undid it; undo that one to redo it."""
    files: tuple[str, ...] = ()
    """Paths of documents that stay although their nodes are deleted."""
    documents: tuple[str, ...] = ()
    """Documents that keep the undone text, because they are in git."""
    again: str = ""
    """For an import of sessions, the command that imports them again: that cannot be redone."""


def undo_change(memory: Memory, text: str | None, *, dry_run: bool) -> UndoResult:
    """Undo a change by its id, or the last one of this session."""
    if text is None:
        # The last one may be in the store that is not read.
        memory.require_trust()
    imported = undo_import.chosen(memory, text)
    if imported and not (text is None and _is_later(memory, imported)):
        return _undo_import(memory, imported, dry_run=dry_run)
    graphs, change_id = _chosen_change(memory, text)
    undo_import.refuse_redo(memory, change_id)
    if dry_run:
        return UndoResult(
            inverse_changes.describe_change(graphs[0], change_id),
            _summary(graphs[0], change_id),
            (),
            None,
        )
    from ctx.operations import document

    kept: list[KeptField] = []
    documents: list[str] = []
    made: ChangeSummary | None = None
    while made is None:
        scopes = [graph.scope for graph in graphs]
        with ExitStack() as files, memory.transaction(inverse_changes.ACTION, *scopes) as change:
            # Chosen again under the lock: two concurrent undos must take different changes.
            graphs, change_id = _chosen_change(memory, text)
            if [graph.scope for graph in graphs] == scopes:
                made = inverse_changes.describe_change(change.graph, change_id)
                for scope in scopes:
                    kept += inverse_changes.take_back(change.in_scope(scope), change_id)
                    documents += document.take_back(memory, change.in_scope(scope), files)
    graph = next(each for each in memory.graph.graphs if each.scope == scopes[0])
    gone = [
        record.subject
        for part in change.parts.values()
        for record in part.written
        if record.kind == "node.delete"
    ]
    return UndoResult(
        made,
        _summary(graph, change_id),
        tuple(kept),
        change.id,
        tuple(document.orphaned_documents(memory, gone)),
        tuple(documents),
    )


def _is_later(memory: Memory, made: SessionImport) -> bool:
    """Whether this session made another change after an import."""
    try:
        newest = _newest(memory)
    except UsageError:
        return False
    every = (change for _, change in _changes(memory, None))
    first = next((each for each in every if each == newest or each in made.changes), "")
    return first not in made.changes


def _undo_import(memory: Memory, made: SessionImport, *, dry_run: bool) -> UndoResult:
    described = undo_import.summary(memory, made)
    if dry_run:
        gone = undo_import.unchanged_sessions(memory, made)
        what = tuple(f"session {each.id}" for each in gone)
        return UndoResult(described, what, (), None, again=made.again)
    done = undo_import.undo_import(memory, made)
    return UndoResult(described, done.what, done.kept, done.change, again=made.again)


def list_changes(memory: Memory, session: str | None, limit: int) -> ChangeList:
    """The last changes in all stores, or all of them if the limit is 0."""
    found = _listed_changes(memory, session)
    return ChangeList(tuple(islice(found, limit or None)), sum(1 for _ in found))


def _listed_changes(memory: Memory, session: str | None) -> Iterator[ChangeSummary]:
    """The changes, newest first; those of an import of sessions are one."""
    imports = {change: made for made in undo_import.imports(memory) for change in made.changes}
    listed: set[str] = set()
    for graph, change_id in _changes(memory, session):
        if (made := imports.get(change_id)) is None:
            yield inverse_changes.describe_change(graph, change_id)
        elif made.id not in listed:
            listed.add(made.id)
            yield undo_import.summary(memory, made)


def changes(memory: Memory, session: str | None) -> Iterator[ChangeSummary]:
    """The changes in all stores, newest first."""
    for graph, change_id in _changes(memory, session):
        yield inverse_changes.describe_change(graph, change_id)


def described_changes(memory: Memory, change_ids: Iterable[str]) -> dict[str, ChangeSummary]:
    """What is known of changes; those of documents are not in any store."""
    described: dict[str, ChangeSummary] = {}
    for change_id in dict.fromkeys(change_ids):
        for graph in memory.graph.graphs:
            if not records.has_change(graph.connection, change_id):
                continue
            here = inverse_changes.describe_change(graph, change_id)
            known = described.get(change_id)
            # A change of both stores has one id.
            total = here.records + (known.records if known else 0)
            described[change_id] = (known or here)._replace(records=total)
    return described


def _changes(memory: Memory, session: str | None) -> Iterator[tuple[Graph, str]]:
    by_store = [
        zip(inverse_changes.changes(graph, session), repeat(graph), strict=False)
        for graph in memory.graph.graphs
    ]
    # A change of both stores has one id.
    listed: set[str] = set()
    for made, graph in merge(*by_store, key=lambda each: each[0].stamp, reverse=True):
        if made.change not in listed:
            listed.add(made.change)
            yield graph, made.change


def _chosen_change(memory: Memory, text: str | None) -> tuple[list[Graph], str]:
    """The selected change, and the stores that contain it: one command can change both."""
    change_id = _newest(memory) if text is None else _find_change(memory, text)
    stores = [
        (graph, change_records)
        for graph in memory.graph.graphs
        if (change_records := records.of_change(graph.connection, change_id))
    ]
    # Deletions are undone first: after a crash in between, a moved node is in both stores.
    stores.sort(key=lambda each: not any(record.kind == "node.delete" for record in each[1]))
    if stores:
        _refuse_loss(memory, change_id)
        return [graph for graph, _ in stores], change_id
    raise NodeNotFound(f"There is no change {change_id}.")


def _refuse_loss(memory: Memory, change_id: str) -> None:
    """Refuse to undo a move to the user store if the content exists nowhere else.

    A project does not keep a node that was moved away before it was committed.
    """
    root = inverse_changes.origin(memory.user, change_id)
    change_records = records.of_change(memory.user.connection, root)
    moved = [
        r.subject for r in change_records if r.action == records.MOVE and r.kind.startswith("node.")
    ]
    for node_id in map(NodeId, map(Ulid, moved)):
        if memory.user.has(node_id) and not _is_elsewhere(memory, node_id, root):
            raise UsageError(
                f"The content of {short(node_id)} is stored nowhere else and would be lost.",
                hint=f"`ctx move {short(node_id)} --project` moves it to the project.",
            )


def _is_elsewhere(memory: Memory, node_id: NodeId, change_id: str) -> bool:
    """Whether the project also has a node, or has it again after the undo."""
    for graph in memory.graph.graphs:
        about = records.records_about(graph.connection, node_id, "node.")
        was_there = any(record.change == change_id for record in about)
        state = replay.node(about)
        if graph.scope == PROJECT and state is not None:
            is_same = state.content == memory.user.node(node_id).content
            return graph.has(node_id) or (was_there and is_same)
    return False


def _find_change(memory: Memory, text: str) -> str:
    refusal: NodeNotFound | None = None
    for graph in memory.graph.graphs:
        try:
            change_id = _find(graph, text)
            break
        except NodeNotFound as error:
            refusal = error
    else:
        assert refusal is not None
        raise refusal
    if inverse_changes.is_undone(graph, change_id):
        raise UsageError(
            f"The change {change_id} is already undone.",
            hint="`ctx undo --list` shows the change that undid it; undo that one to redo it.",
        )
    return change_id


def _newest(memory: Memory) -> str:
    """The newest change of this session that is not undone and is not an undo itself.

    Other people and other machines have sessions of the same name; their changes are skipped.
    """
    for graph, change_id in _changes(memory, memory.session):
        is_user = graph.scope == USER
        if is_user and replicas.is_foreign_change(graph.connection, change_id):
            continue
        is_own = is_user or history.is_own(graph.connection, change_id)
        if is_own or records.changes_beginning_with(memory.user.connection, change_id):
            made = inverse_changes.describe_change(graph, change_id)
            if made.action != inverse_changes.ACTION and not made.undone:
                return change_id
    raise UsageError(
        f"The session {memory.session} has nothing to undo.",
        hint="`ctx undo --list` shows the changes of all sessions; `ctx undo CHANGE` undoes one.",
    )


def _find(graph: Graph, text: str) -> str:
    prefix = text.strip().upper()
    matches = records.changes_beginning_with(graph.connection, prefix) if prefix else []
    if len(matches) != 1:
        problem = "Several changes begin" if matches else "No change begins"
        raise NodeNotFound(f"{problem} with {text[:40]!r}.", hint="`ctx undo --list` shows them.")
    return matches[0]


def _summary(graph: Graph, change_id: str) -> tuple[str, ...]:
    change_records = records.of_change(graph.connection, inverse_changes.origin(graph, change_id))
    return tuple(
        f"{short(record.subject)} {records.describe(record, record.subject)}"
        if record.kind.partition(".")[0] in ("node", "tag", "edge")
        else records.describe(record, record.subject)
        for record in change_records[:_MOST_LISTED]
    )
