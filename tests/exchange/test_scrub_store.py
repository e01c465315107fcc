"""A word is removed from every table, and the tables still follow from the records."""

import json
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ctx.exchange import scrub_store
from ctx.memory import migrations, user_store
from ctx.memory.changes import changing
from ctx.memory.graph import Graph
from ctx.redaction import needle
from tests.memory.graphs import WHO, assert_sound, run_steps

WORD = needle.word("acme-internal")
TEXT = "about ACME internal"
NAMES = {
    "records": "id change action kind target",
    "nodes": "id type superseded_by created_at updated_at terms",
    "edges": "id from_id to_id type created_at",
    "outside": "id from_id to_id type created_at",
    "tags": "node_id created_at",
    "views": "created_at updated_at compiled",
    "pending": "created_at",
    "receipts": "event at",
    "events": "event at status",
    "sessions": "head status started_at last_at ended_at summary",
    "symbol_changes": "kind change at",
    "event_log": "at",
    "excerpts": "at kind source terms",
    "commands": "at",
    "session_commands": "purpose last_at last",
    "session_teams": "",
    "model_answers": "kind at",
    "contexts": "settings made_at",
    "sync_targets": "id synced_at tried_at",
    "sync_batches": "target name replica",
    "sync_records": "record version",
    "sync_versions": "record version replaces",
    "sync_replicas": "target replica sent_at",
    "sync_confirmed": "target replica version",
    "sync_changes": "change",
    "sync_unread": "record unread",
    "schema_version": "applied_at",
}
"""Columns without text: ids, kinds, times and derived values."""


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "store.db")


def columns() -> Iterator[tuple[str, str]]:
    """Every text column of the store."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        for migration in migrations.MIGRATIONS:
            migration(connection)
        query = "SELECT name FROM sqlite_master WHERE type = 'table' AND instr(name, '_fts') = 0"
        for (table,) in connection.execute(query).fetchall():
            for _, name, kind, *_ in connection.execute(f"PRAGMA table_info({table})"):
                if kind == "TEXT" and name not in NAMES.get(table, "").split():
                    yield table, name


IN_JSON = {"body", "metadata", "items", "data"}


@pytest.mark.parametrize(("table", "column"), list(columns()))
def test_every_text_column_is_scrubbed(path: str, table: str, column: str) -> None:
    """A new column needs a rule for scrubbing."""
    with closing(user_store.open_for_writing(path)) as connection:
        with changing(Graph(connection), "add", WHO) as change:
            change.add_node("fact", "One.")
        connection.execute("PRAGMA foreign_keys = OFF")
        values = {
            name: _some(kind, name)
            for _, name, kind, needed, default, _ in connection.execute(
                f"PRAGMA table_info({table})"
            )
            if needed or kind == "TEXT"
        }
        values[column] = json.dumps({"a": [{"b": TEXT}]}) if column in IN_JSON else TEXT
        if table == "records":
            kinds = {"key": "tag.add", "subject": "view.put"}
            values["kind"] = kinds.get(column, "node.x")
            values["body"] = '{"query":"x"}' if column == "subject" else values["body"]
        places = ", ".join("?" * len(values))
        connection.execute(
            f"INSERT INTO {table} ({', '.join(values)}) VALUES ({places})", list(values.values())
        )
        assert scrub_store.find(connection, WORD)[table] == 1
        scrub_store.scrub(connection, WORD)
        assert scrub_store.wipe(connection)
        assert not scrub_store.find(connection, WORD)
        rows = connection.execute(f"SELECT {column} FROM {table}").fetchall()
        assert table == "contexts" or any("scrubbed" in str(row) for row in rows)
    assert not WORD.is_in_bytes(Path(path).read_bytes())


def _some(kind: str, name: str) -> object:
    if kind == "INTEGER":
        return 1
    return "{}" if name in IN_JSON else "x"


@pytest.mark.parametrize("seed", range(3))
def test_the_scrubbed_tables_follow_from_the_records(path: str, seed: int) -> None:
    chance = random.Random(seed)
    kinds = "update delete restore tag link outside supersede view undo".split()
    with closing(user_store.open_for_writing(path)) as connection:
        graph = Graph(connection)
        steps = [("add", 0, 0, chance.randrange(4)) for _ in range(6)]
        steps += [
            (chance.choice(kinds), chance.randrange(6), chance.randrange(6), chance.randrange(4))
            for _ in range(60)
        ]
        run_steps(graph, steps)
        with changing(graph, "add", WHO) as change:
            for number in range(8):
                node = change.add_node(
                    "fact", f"{TEXT} {number}", summary=TEXT, metadata={TEXT: {TEXT: [TEXT]}}
                )
                change.tag(node, "about:acme-internal")
                change.tag(node, "about:acme_internal")
                if number % 2:
                    change.untag(node, "about:acme-internal")
            change.put_view("acme-internal", "tag:about:acme-internal", 500)
            change.set_current_task("current_task:acme-internal:main", "acme-internal")
        words = [row[0] for row in connection.execute("SELECT id FROM nodes ORDER BY id")]
        assert scrub_store.scrub(connection, WORD)["records"] > 20
        assert_sound(connection)
        assert [row[0] for row in connection.execute("SELECT id FROM nodes ORDER BY id")] == words
        assert not scrub_store.find(connection, WORD)
        # Twice is once.
        assert not scrub_store.scrub(connection, WORD)


def test_the_log_is_not_wiped_while_the_store_is_read(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scrub_store, "_PATIENCE_S", 0.2)
    with closing(user_store.open_for_writing(path)) as connection:
        with changing(Graph(connection), "add", WHO) as change:
            change.add_node("fact", TEXT)
        with closing(user_store.open_for_reading(path)) as reading:
            reading.execute("BEGIN")
            reading.execute("SELECT * FROM nodes").fetchall()
            assert scrub_store.scrub(connection, WORD)
            assert not scrub_store.wipe(connection)
        assert scrub_store.wipe(connection)
