"""Compaction: a session's chain of steps becomes one canonical commit.

The order makes it safe: every object the commit needs is durable in `.ctx/objects/` before the
commit becomes a head, and the chain is released in the same step (see `Repository.publish`).
"""

import contextlib
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from itertools import count
from typing import NamedTuple

import msgspec

from ctx import clock, disk, git
from ctx.errors import CtxError, NewerFormat, ObjectNotFound, UsageError
from ctx.ids import ObjectId, SessionId, Ulid, short
from ctx.memory import conflicts, history
from ctx.memory.graph import Graph
from ctx.memory.records import Record
from ctx.narrative import (
    document_names,
    log_files,
    narrative_files,
    narrative_scan,
    narrative_snapshots,
)
from ctx.objects import codec, commits, gc, references, refs, trees
from ctx.objects.commits import Head, WorkStep
from ctx.objects.object_store import (
    DAMAGE,
    Object,
    decode,
    parts_of,
    refuse_too_large,
    typed,
)
from ctx.objects.object_types import Commit, NarrativeRef, RecordBatch
from ctx.objects.repository import Repository
from ctx.project import batches, changelog, commit_edges, staged_private, staging, tool_snapshots
from ctx.project.changelog import ChangeLines
from ctx.project.project_repository import ProjectRepository

_MOST_PENDING = 32 * 1024 * 1024
_NOTHING = ChangeLines((), (), (), 0)


class CompactionOptions(NamedTuple):
    """The options of a commit."""

    session: SessionId
    message: str | None
    """None: a generated message; with `amend`, the message of the amended commit."""
    author: str
    amend: bool = False
    narrative: bool = True
    active: Sequence[str] = ()
    """Documents that are included even if they did not change."""
    of_others: Collection[str] = ()
    """Documents of nodes that other sessions have staged."""


class CompactionResult(NamedTuple):
    """A commit that was made."""

    id: ObjectId
    commit: Commit
    files: Mapping[str, ObjectId]
    """The changed files of the tree: path to blob."""
    documents: Sequence[narrative_snapshots.Snapshot]
    skipped: Sequence[narrative_snapshots.SkippedDocument]
    steps: int
    records: int
    changes: ChangeLines
    log: str | None
    """Its log file in the narrative."""
    unread: int
    """How many conflicting records arrived while its records were staged."""


class _StagedContents(NamedTuple):
    """The contents of a chain."""

    steps: Sequence[WorkStep]
    batches: Sequence[Object]
    records: Sequence[Record]
    blobs: Sequence[ObjectId]
    flushed: Mapping[str, NarrativeRef]
    """Documents that the session stored and that were deleted since."""
    survey: tool_snapshots.ToolSnapshots
    """Snapshots of cargo and of the code."""
    extracted: Object | None
    """Edges from files."""
    reports: tool_snapshots.ReportedDiagnostics
    """Diagnostics of compilers and tests."""


def commit(
    repository: ProjectRepository,
    wish: CompactionOptions,
    graph: Graph | None = None,
    known: Mapping[str, ObjectId] | None = None,
) -> CompactionResult | None:
    """Turn a chain and the changed narrative documents into a commit.

    None if there is nothing to commit. The caller holds the lock. `graph` is the current graph;
    `known` are the snapshots of documents in history, if the caller has them.
    """
    heads = repository.current()
    head_ids = [head.id for head in heads]
    steps, _ = staging.open_steps(repository, wish.session, head_ids)
    unseen = staged_private.records_to_withhold(graph.connection, wish.session) if graph else set()
    unread = conflicts.unread(graph, wish.session) if graph else ()
    withheld = _withheld_records(repository, graph, wish.session) if graph else set()
    staged = _staged_contents(repository, steps, unseen, sorted({*unread, *withheld}))
    amended = _commit_to_amend(repository, heads) if wish.amend else None
    base = [amended] if amended else heads
    root, files, new_trees = _tree(repository, base, staged.steps)
    described = changelog.describe_changes(graph, staged.records, unseen) if graph else _NOTHING
    if wish.message is None and amended is None:
        wish = wish._replace(
            message=changelog.default_message(described, len(files), staged.survey.summary)
        )
    described = described._replace(lines=(*described.lines, *staged.survey.lines))
    with _write_log_entry(repository, wish, described, files, staged, known) as entry:
        taken, skipped = _documents(repository, wish, head_ids, known)
        kept = taken if wish.narrative else [file for file in taken if file.ref.path == entry]
        reworded = amended is not None and wish.message not in (None, amended.commit.message)
        joins = len(base) > 1
        changed = any(document.changed for document in kept)
        if not wish.narrative:
            staged = staged._replace(flushed={})
        has_content = (
            files or staged.batches or staged.flushed or staged.survey.summary or staged.extracted
        )
        if heads and not (has_content or changed or reworded or joins):
            if staged.steps:
                repository.refs.move(refs.work(wish.session), staged.steps[0].id, None)
            return None
        edges = commit_edges.edges_of_records(graph, staged.records) if graph else None
        edge_batches = [
            part for each in (staged.extracted, edges) if each for part in parts_of(each, "edges")
        ]
        objects = [*staged.batches, *edge_batches]
        value = _commit(wish, base, amended, root, staged, kept)
        edge_ids = (*value.edge_batches, *(each.id for each in edge_batches))
        value = msgspec.structs.replace(value, edge_batches=edge_ids)
        made = typed(value)
        refuse_too_large([made])
        flushed = [ref.blob_id for ref in staged.flushed.values()]
        contents = [document.content for document in kept if document.changed]
        survey = tool_snapshots.objects_for_commit(repository, staged.survey, head_ids)
        old = [*files.values(), *staged.blobs, *staged.reports.texts, *flushed, *survey]
        new = [*contents, *objects, *new_trees, made]
        _keep_all(repository, old, new, head_ids, amended)
        _give(repository, made.id, amended, objects, entry)
        # Besides its parents, the commit replaces heads that are ancestors of others.
        overtaken = set(repository.named_heads()).difference(head_ids)
        repository.publish(
            made.id,
            [*(head.id for head in base), *overtaken],
            (wish.session, staged.steps[0].id) if staged.steps else None,
        )
    return CompactionResult(
        made.id,
        value,
        files,
        [document for document in kept if document.changed],
        skipped if wish.narrative else (),
        len(staged.steps),
        len(staged.records),
        described,
        entry,
        len(unread),
    )


def _give(
    repository: ProjectRepository,
    made: ObjectId,
    amended: Head | None,
    objects: Sequence[Object],
    entry: str | None,
) -> None:
    """Agents are given what was written here: all but an amended commit that they are not given."""
    given = repository.given
    given.add(object_.id for object_ in objects)
    if amended is None or given.objects([amended.id]):
        given.add([made])
    if entry and (page := narrative_scan.read(repository.project.narrative, entry)) is not None:
        given.add_documents({entry: page})


def _withheld_records(repository: ProjectRepository, graph: Graph, session: SessionId) -> set[Ulid]:
    """The records about what a session changed that nobody here was given, and so has not read."""
    rows = graph.connection.execute("SELECT id FROM withheld WHERE id <> commit_id").fetchall()
    changed = {record.subject for record in history.staged_by(graph.connection, session)}
    found: set[Ulid] = set()
    for row in rows:
        with contextlib.suppress(CtxError):
            records = batches.read(repository.everything, ObjectId(row[0]))
            found.update(record.id for record in records if record.subject in changed)
    return found


def _staged_contents(
    repository: ProjectRepository,
    steps: Sequence[WorkStep],
    unseen: Set[str],
    unread: Sequence[str],
) -> _StagedContents:
    """The contents of the steps, merged in order, without `unseen` records."""
    reader = repository.everything
    batch_ids = [
        id
        for step in reversed(steps)
        for id in step.work.payload
        if isinstance(decode(reader.read(id)), RecordBatch)
    ]
    records = [record for id in batch_ids for record in batches.read(reader, id)]
    hidden = [record for record in records if record.id in unseen]
    merged = batches.merge_batches(reader, batch_ids, unseen)
    batch = decode(merged) if merged else None
    if isinstance(batch, RecordBatch) and unread:
        merged = typed(msgspec.structs.replace(batch, unread=tuple(unread)))
    blobs = batch.blobs if isinstance(batch, RecordBatch) else ()
    visible = [record for record in records if record.id not in unseen]
    return _StagedContents(
        steps,
        parts_of(merged, "records", "blobs") if merged else (),
        visible,
        blobs,
        _without_files(deleted_documents(repository, steps), hidden),
        tool_snapshots.last_snapshots(repository, steps),
        commit_edges.edges_of_files(repository, steps),
        tool_snapshots.last_reported(reader, visible, frozenset(blobs)),
    )


def _without_files(
    flushed: Mapping[str, NarrativeRef], hidden: Sequence[Record]
) -> dict[str, NarrativeRef]:
    """The documents without those of hidden nodes."""
    metadata = [record.body.get("metadata") or {} for record in hidden if record.kind == "node.put"]
    files = {values.get("file") for values in metadata}
    return {path: ref for path, ref in flushed.items() if path not in files}


def deleted_documents(repository: Repository, steps: Sequence[WorkStep]) -> dict[str, NarrativeRef]:
    """The newest stored version of each deleted document."""
    every = {ref.path: ref for step in reversed(steps) for ref in step.work.narrative_refs}
    folder = repository.project.narrative
    return {
        path: ref for path, ref in every.items() if not os.path.lexists(os.path.join(folder, path))
    }


@contextlib.contextmanager
def _write_log_entry(
    repository: ProjectRepository,
    wish: CompactionOptions,
    described: ChangeLines,
    files: Mapping[str, ObjectId],
    staged: _StagedContents,
    known: Mapping[str, ObjectId] | None,
) -> Iterator[str | None]:
    """Write the log entry of the commit; remove it if the commit fails."""
    sections = [
        ("Changes", described.lines),
        ("Decisions", described.decisions),
        ("Files", sorted(files)),
        ("Code", commit_edges.summary_lines(staged.extracted)),
        ("Commands", described.commands),
    ]
    lines = [(name, part) for name, part in sections if part]
    if not lines:
        yield None
        return
    now = clock.now_ms()
    title = (wish.message or "").splitlines()[0] if wish.message else f"Session {wish.session}"
    entry = log_files.Entry(title, now, wish.author, wish.session, wish.message or "", lines)
    folder = repository.project.narrative
    page = log_files.render(entry)
    # Two branches may commit in the same minute: only equal texts may have the same name.
    names = (document_names.token(f"{number} {staged.steps[0].id} {page}") for number in count())
    paths = (document_names.log_path(now, name) for name in names)
    path = next(candidate for candidate in paths if not os.path.lexists(f"{folder}/{candidate}"))
    body = log_files.render(entry._replace(at_ms=0)).partition("\n-->")[2]
    for left in set(log_files.paths(folder)) - set(known) if known is not None else ():
        # An interrupted compaction has written the same entry.
        text = narrative_scan.read(folder, left) or b""
        if text.decode("utf-8", "replace").endswith(body):
            disk.discard(f"{folder}/{left}")
    narrative_files.create(folder, path, page)
    try:
        yield path
    except BaseException:
        with contextlib.suppress(OSError):
            disk.discard(f"{folder}/{path}")
        raise


def _commit_to_amend(repository: ProjectRepository, heads: Sequence[Head]) -> Head:
    """The commit that `--amend` replaces: the last one made here, or the only head."""
    last = repository.refs.read(refs.MAIN)
    meant = [head for head in heads if head.id == last] or heads
    if len(meant) != 1:
        raise UsageError(
            f"There are {len(meant)} heads and none of them was made here last, "
            "so it is not clear which commit to amend.",
            hint="Commit without --amend: the new commit merges them.",
        )
    if codec.is_newer(repository.objects.read(meant[0].id).payload):
        raise NewerFormat(f"Commit {short(meant[0].id)} was written by a newer ctx.")
    id, commit = meant[0]
    before = commits.AmendedCommits(repository.objects).by(commit)
    return Head(id, msgspec.structs.replace(commit, replaced=before))


def _tree(
    repository: ProjectRepository,
    base: Sequence[Head],
    steps: Iterable[WorkStep],
) -> tuple[ObjectId, Mapping[str, ObjectId], list[Object]]:
    """The new root, the changed files, and the new trees."""
    # Objects staged on other branches are not available to others, so only committed ones are read.
    reader = repository.objects
    staged = {path: file.blob_id for path, file in staging.files(repository, steps).items()}
    present = trees.CombinedTree(reader, base)
    changed = {path: blob for path, blob in staged.items() if present.blob_at(path) != blob}
    changes = trees.overlay_paths(present.missing_in_first(), changed)
    root, made = trees.update_tree(reader, present.first, changes)
    return root, changed, made


def _documents(
    repository: ProjectRepository,
    wish: CompactionOptions,
    heads: Sequence[ObjectId],
    known: Mapping[str, ObjectId] | None,
) -> tuple[list[narrative_snapshots.Snapshot], list[narrative_snapshots.SkippedDocument]]:
    folder = repository.project.narrative
    every, skipped = narrative_snapshots.documents(folder)
    paths = [path for path in every if path not in wish.of_others]
    if known is None:
        known = narrative_snapshots.last_kept(repository.objects, heads, paths)
    return narrative_snapshots.take_snapshots(folder, paths, known, wish.active), skipped


def _commit(
    wish: CompactionOptions,
    base: Sequence[Head],
    amended: Head | None,
    root: ObjectId,
    staged: _StagedContents,
    documents: Sequence[narrative_snapshots.Snapshot],
) -> Commit:
    refs_made = {document.ref.path: document.ref for document in documents}
    refs_made.update(staged.flushed)
    if amended:
        amends, old = amended
        refs_made = {ref.path: ref for ref in old.narrative_refs} | refs_made
        parents, message = old.parents, wish.message or old.message
    else:
        amends, old = None, Commit((), 0, "", root)
        parents, message = tuple(id for id, _ in base), wish.message or ""
    steps = staged.steps
    new_batches = (batch.id for batch in staged.batches)
    return msgspec.structs.replace(
        old,
        parents=parents,
        timestamp_unix=commits.timestamp(clock.now_s(), [commit for _, commit in base]),
        message=message,
        root_tree=root,
        author=wish.author,
        session_id=wish.session,
        record_batches=(*old.record_batches, *new_batches),
        edge_batches=(*old.edge_batches, *staged.survey.edges),
        cargo_snapshot=staged.survey.cargo or old.cargo_snapshot,
        code_snapshot=staged.survey.code or old.code_snapshot,
        diagnostics_snapshot=staged.reports.last or old.diagnostics_snapshot,
        narrative_refs=tuple(refs_made[path] for path in sorted(refs_made)),
        compacted=steps[0].id if steps else old.compacted,
        amends=amends,
        replaced=(amends, *old.replaced) if amends else (),
    )


def _keep_all(
    repository: ProjectRepository,
    staged: Sequence[ObjectId],
    new: Sequence[Object],
    heads: Sequence[ObjectId],
    amended: Head | None,
) -> None:
    """Write everything that a commit needs to the objects: staged and new objects."""
    _keep_blobs(repository, staged, heads)
    _keep(repository, new, heads)
    if repository.project.checkout is not None:
        # Until they are added, `git clean` removes these files, so a copy is kept.
        brought = {*staged, *(object_.id for object_ in new)}
        if amended is not None:
            # git has these too, until it drops the git commit with the amended one.
            with contextlib.suppress(ObjectNotFound, *DAMAGE):
                brought |= references.added_ids(repository.objects, amended.id) - {amended.id}
        repository.staged.name_too(brought, repository.objects)


def _keep_blobs(
    repository: ProjectRepository, ids: Iterable[ObjectId], heads: Sequence[ObjectId]
) -> None:
    """Move file contents from staging to the objects, in batches that fit into memory."""
    batch: list[Object] = []
    pending = 0
    for id in sorted(set(ids)):
        batch.append(repository.everything.read(id))
        pending += len(batch[-1].payload)
        if pending > _MOST_PENDING:
            _keep(repository, batch, heads)
            batch, pending = [], 0
    _keep(repository, batch, heads)


def _keep(
    repository: ProjectRepository, objects: Sequence[Object], heads: Sequence[ObjectId]
) -> None:
    """Write what the commit needs.

    An object that is here already, but that no head reaches, may be deleted by a garbage
    collection on another branch; it is written a second time under a name of this branch.
    """
    at_risk = {item.id for item in objects if item.id in repository.objects}
    repository.objects.write(objects)
    checkout = repository.project.checkout
    if checkout is None or not at_risk:
        return
    # If an object is missing or damaged, everything behind it counts as unreachable.
    with contextlib.suppress(ObjectNotFound, *DAMAGE):
        for id in gc.reachable(repository.objects, heads):
            at_risk.discard(id)
            if not at_risk:
                return
    listed = git.tracked_files(checkout, repository.objects.folder)
    tracked = {path.rpartition("/")[2] for path in listed}
    repository.objects.write_again(
        item for item in objects if item.id in at_risk and item.id in tracked
    )
