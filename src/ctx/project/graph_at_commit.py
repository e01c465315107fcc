"""A project's memory as a commit has it: what the records up to there say, and the documents as
they were kept there.

It is made from the present one, in memory, in proportion to the difference. A document that was
removed later speaks as it did when it was kept last: history does not say when it went.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

from ctx.errors import CtxError
from ctx.ids import ObjectId
from ctx.memory.graph import PROJECT, Graph
from ctx.project import document_nodes
from ctx.project.project_index import Index
from ctx.project.project_index_state import Fingerprint, ProjectState, replaced
from ctx.project.project_memory import ProjectMemory
from ctx.sqlite.connection import transaction

_NO_FILE = Fingerprint(0, 0, 0)


@contextmanager
def graph_at(memory: ProjectMemory, commits: tuple[ObjectId, ...]) -> Iterator[Graph]:
    """The graph of some commits together, with nothing that is staged."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        memory.graph.connection.backup(connection)
        connection.execute("PRAGMA foreign_keys = ON")
        copy = Index(connection, memory.repository, ":memory:")
        with transaction(connection):
            for path in copy.changed_documents({}):
                copy.put_document(path, None)
            copy.bring(ProjectState(commits, (), replaced(memory.project)))
            kept = dict(copy.last_snapshots())
            for path, blob in kept.items():
                # What is not here, as in a shallow clone, says nothing.
                with suppress(CtxError):
                    data = memory.repository.everything.read(ObjectId(blob)).payload
                    said = document_nodes.understood(
                        connection, path, data, _NO_FILE, kept.__contains__
                    )
                    copy.put_document(path, said)
        yield Graph(connection, PROJECT)
