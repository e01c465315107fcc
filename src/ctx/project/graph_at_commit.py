"""A project's graph as of a commit: the records up to it and the documents that it contains.

It is made in memory from the current index, at a cost proportional to the difference. A document
that was deleted later has its last committed content: history does not record the deletion.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

from ctx.errors import CtxError
from ctx.ids import ObjectId
from ctx.memory.graph import PROJECT, Graph
from ctx.project import document_nodes
from ctx.project.project_index import Index
from ctx.project.project_index_state import Fingerprint, ProjectState, scrubbed_digest
from ctx.project.project_memory import ProjectMemory
from ctx.sqlite.connection import transaction

_NO_FILE = Fingerprint(0, 0, 0)


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
