"""What the branch that is checked out contains and agents are not given, such as a pull request.

A proposal is a commit of memory, with its documents, or a document that no such commit contains.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import NamedTuple

from ctx import clock, ids
from ctx.errors import CtxError
from ctx.ids import ObjectId, short
from ctx.memory.graph import PROJECT, Graph
from ctx.memory.records import Record
from ctx.narrative import document_format, narrative_scan, narrative_snapshots
from ctx.objects.object_store import read_typed
from ctx.objects.object_types import Commit, RecordBatch
from ctx.project import authors, batches, changelog, index_sync, project_index_state
from ctx.project.given import document_id
from ctx.project.index_sync import BatchOwner
from ctx.project.project_memory import ProjectMemory


class BranchProposal(NamedTuple):
    """A commit or a document that agents are not given."""

    id: str
    """The id of the commit, or a hash of the document."""
    short_id: str
    kind: str
    """`commit` or `document`."""
    at: str
    """When the commit says that it was made; empty for a document."""
    author: str
    """The text of a proposal is only shown on a terminal and on the page: agents read pipes."""
    title: str
    """The first line of the message, or the path of the document."""
    changes: tuple[str, ...]
    """What it would change, in a line for each thing."""
    objects: tuple[str, ...]
    """The ids of its objects."""
    documents: tuple[str, ...]
    """The paths of its documents."""

    @property
    def without_text(self) -> "BranchProposal":
        return self._replace(author="", title="", changes=(), objects=(), documents=())


class _WithheldCommit(NamedTuple):
    batches: list[str]
    records: list[Record]


def proposals(memory: ProjectMemory) -> list[BranchProposal]:
    """The proposals of this branch, the oldest commit first, then documents."""
    found = _all_proposals(memory)
    rejected = memory.given.rejected([each.id for each in found])
    found = [each for each in found if each.id not in rejected]
    return sorted(found, key=lambda each: (each.at or "~", each.id))


def find(memory: ProjectMemory, text: str) -> BranchProposal | None:
    """The proposal with an id that begins so; also one that was rejected."""
    begins = text.strip().lower()
    if len(begins) < ids.SHORTEST_PREFIX:
        return None
    named = [each for each in _all_proposals(memory) if each.id.startswith(begins)]
    return named[0] if len(named) == 1 else None


def accept(memory: ProjectMemory, chosen: Iterable[BranchProposal]) -> None:
    """Give proposals to agents from now on, on every branch."""
    for each in chosen:
        ids_of_documents = memory.given.ids_of_documents(each.documents)
        memory.given.accept([*each.objects, *ids_of_documents.values()])
    memory.reconsider()


def reject(memory: ProjectMemory, chosen: Iterable[BranchProposal]) -> None:
    """Do not list proposals any more. They can still be accepted by their ids."""
    for each in chosen:
        ids_of_documents = memory.given.ids_of_documents(each.documents)
        memory.given.reject([each.id, *ids_of_documents.values()])
    memory.reconsider()


def _all_proposals(memory: ProjectMemory) -> list[BranchProposal]:
    withheld = project_index_state.withheld_by(memory.graph.connection)
    if withheld.is_nothing:
        return []
    left = {
        path: data
        for path in sorted(withheld.documents)
        if (data := narrative_scan.read(memory.narrative.folder, path)) is not None
    }
    found = []
    with _graph_with_withheld(memory) as (graph, commits):
        for commit_id, held in commits.items():
            commit = _commit(memory, commit_id)
            blobs = {ref.path: ref.blob_id for ref in commit.narrative_refs} if commit else {}
            own = [path for path in left if blobs.get(path) == _blob_of(left[path])]
            left = {path: data for path, data in left.items() if path not in own}
            lines = changelog.describe_changes(graph, held.records).lines
            found.append(
                BranchProposal(
                    id=commit_id,
                    short_id=short(commit_id),
                    kind="commit",
                    at=clock.iso(commit.timestamp_unix * 1000) if commit else "",
                    author=authors.name(commit.author if commit else None),
                    title=commit.message.partition("\n")[0] if commit else "",
                    changes=(*lines, *(f"= {path}" for path in own)),
                    objects=(commit_id, *held.batches),
                    documents=tuple(own),
                )
            )
    return [*found, *(_document_proposal(path, data) for path, data in left.items())]


def _document_proposal(path: str, data: bytes) -> BranchProposal:
    id = document_id(path, data)
    title = document_format.parse(data.decode("utf-8", "replace")).title
    return BranchProposal(
        id=id,
        short_id=short(id),
        kind="document",
        at="",
        author=authors.UNKNOWN,
        title=f"{path}: {title}" if title else path,
        changes=(),
        objects=(),
        documents=(path,),
    )


def _commit(memory: ProjectMemory, commit_id: str) -> Commit | None:
    with suppress(CtxError):
        return read_typed(memory.repository.everything, ObjectId(commit_id), Commit)
    return None


def _blob_of(data: bytes) -> ObjectId:
    return narrative_snapshots.stored_document(data).content.id


@contextmanager
def _graph_with_withheld(
    memory: ProjectMemory,
) -> Iterator[tuple[Graph, dict[str, _WithheldCommit]]]:
    """The graph with everything that is withheld, in memory, and the withheld records."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        memory.graph.connection.backup(connection)
        rows = connection.execute("SELECT commit_id, id FROM withheld ORDER BY 1, 2").fetchall()
        commits: dict[str, _WithheldCommit] = {}
        came: list[Record] = []
        for commit_id, id in rows:
            held = commits.setdefault(commit_id, _WithheldCommit([], []))
            if id == commit_id:
                continue
            held.batches.append(id)
            with suppress(CtxError):
                batch = read_typed(memory.repository.everything, ObjectId(id), RecordBatch)
                said = batches.decode_batch(batch)
                held.records.extend(record for record, _ in said)
                owner = BatchOwner(commit_id, None)
                came += index_sync.insert_batch_records(connection, id, owner, said)
        index_sync.materialise(connection, came)
        yield Graph(connection, PROJECT), commits
