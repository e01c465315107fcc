"""Make a golden store: one with every kind of record, as the present version writes it.

    python -m tests.golden.stores.make

A store of a released version is never made again: it shows what that version wrote.
"""

import os
import sys
from contextlib import closing
from pathlib import Path
from sqlite3 import Connection

from ctx import ids
from ctx.ids import NodeId
from ctx.memory import inverse_changes, pending, user_store
from ctx.memory.changes import ChangeAuthor, changing
from ctx.memory.graph import Graph
from ctx.memory.migrations import MIGRATIONS
from ctx.memory.model import Evidence
from tests.memory.graphs import TABLES

FOLDER = Path(__file__).parent
WHO = ChangeAuthor("a-session", "cli")


def make(path: str) -> None:
    with closing(user_store.open_for_writing(path)) as connection:
        graph = Graph(connection)
        with changing(graph, "add", WHO) as change:
            fact = change.add_node("fact", "The API speaks OAuth 2.0.", summary="OAuth")
            change.tag(fact, "tier:reference")
            change.tag(fact, "project:shop")
            old = change.add_node("decision", "We use files.", metadata={"rationale": "simple"})
            new = change.add_node("decision", "We use SQLite: durée, 存储, 🗄.\n\nOne file.")
            change.link(new, old, "SUPERSEDES", Evidence("cli"))
            change.link(new, fact, "DEPENDS_ON", Evidence("parser", 700, "seen", "abc", "1-2"))
            elsewhere = NodeId(ids.new_ulid())
            change.link(fact, elsewhere, "RELATES_TO", Evidence("cli"), outside=True)
            task = change.add_node("task", "Write the parser.")
            change.tag(task, "tier:working")
            change.put_view("shop", "tag:project:shop", 8000)
            change.put_view("gone", "type:fact", None)
        with changing(graph, "update", WHO) as change:
            change.update_node(fact, content="The API speaks OAuth 2.1.", metadata={"seen": 2})
            change.untag(fact, "project:shop")
            said = [record.id for record in change.records if record.subject == fact]
        with changing(graph, "review", WHO) as change:
            change.settle(fact, ["content"], said[:1])
        with changing(graph, "delete", WHO) as change:
            change.delete_node(task)
            change.unlink(new, fact, "DEPENDS_ON")
            change.delete_view("gone")
        with changing(graph, "restore", WHO) as change:
            change.restore_node(task)
        with changing(graph, "tag", WHO) as change:
            change.tag(old, "a:mistake")
        mistake = change.id
        with changing(graph, "undo", WHO) as change:
            inverse_changes.take_back(change, mistake)
        with changing(graph, "task start", WHO) as change:
            change.set_current_task("current_task", "parser")
        pending.put(graph.connection, "recall:a-session", "An answer.")


def dump(connection: Connection) -> str:
    """Everything in a store that is not made for searching, as text."""
    lines = []
    for table, columns in {
        **TABLES,
        "records": "id, stamp, change, action, kind, subject, key, target, body, session, author",
    }.items():
        shown = columns.removesuffix(", terms")
        rows = connection.execute(f"SELECT {shown} FROM {table} ORDER BY 1, 2, 3").fetchall()
        lines += [f"{table}: {shown}", *(f"  {row!r}" for row in rows)]
    return "\n".join(lines) + "\n"


def main() -> None:
    path = FOLDER / f"v{len(MIGRATIONS)}.db"
    if path.exists():
        sys.exit(f"{path.name} is there already, and stays as it is.")
    make(str(path))
    with closing(user_store.open_for_reading(str(path))) as connection:
        path.with_suffix(".txt").write_text(dump(connection))
    for suffix in ("-wal", "-shm"):
        if os.path.exists(f"{path}{suffix}"):
            os.unlink(f"{path}{suffix}")
    path.chmod(0o644)


if __name__ == "__main__":
    main()
