"""Recovery restores everything in a damaged store that can still be read."""

import random
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ctx import ids
from ctx.exchange import recovery, salvage
from ctx.exchange.recovery import RecoveryReport
from ctx.ids import NodeId, derived_ulid
from ctx.memory import migrations, pending, record_versions, replicas, user_store
from ctx.memory.changes import changing
from ctx.memory.graph import Graph
from ctx.memory.replicas import BatchContents, Replica
from ctx.sqlite.connection import transaction
from tests.memory.graphs import WHO, all_records, assert_sound, run_steps, tables

PAGE = 4096


@pytest.fixture(scope="module")
def used_store() -> Iterator[Path]:
    """A store with a few hundred nodes and a long history."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "store.db")
        chance = random.Random(3)
        kinds = "update delete restore tag link outside supersede view undo".split()
        with closing(user_store.open_for_writing(str(path))) as connection:
            connection.execute("PRAGMA synchronous = OFF")
            graph = Graph(connection)
            steps = [("add", 0, 0, chance.randrange(4)) for _ in range(8)]
            steps += [
                (
                    chance.choice(kinds),
                    chance.randrange(8),
                    chance.randrange(8),
                    chance.randrange(4),
                )
                for _ in range(80)
            ]
            run_steps(graph, steps)
            with changing(graph, "add", WHO) as change:
                before = change.add_node("fact", "The first of many.")
                for number in range(300):
                    # Some need several pages, and come out only if all of these are whole.
                    text = f"Fact {number}: " + "words and more of them. " * (number % 17) ** 2
                    node_id = change.add_node("fact", text, metadata={"number": number})
                    change.tag(node_id, f"third:{number % 3}")
                    if number % 2:
                        change.link(node_id, before, "DEPENDS_ON", {"tool": "cli"})
                    if number % 5 == 0:
                        elsewhere = NodeId(derived_ulid(number, "of a project"))
                        change.link(node_id, elsewhere, "RELATES_TO", {}, outside=True)
                    before = node_id
            pending.put(graph.connection, "current_task", "parser")
            at = "2026-01-20T10:00:00Z"
            for values in (
                ("commands", "s m 0", "s", "remember", at, None),
                ("commands", "s m 1", "s", "link", at, "There is no such node."),
                ("receipts", "r1", "s", "SessionStart", at, None, 120, "[]"),
                ("receipts", "r2", "s", "SessionStart", at, "shop", 120, "[]"),
                ("events", "e1", "s", "Stop", at, "/shop", None, None, "new", 0, None, "{}"),
                ("events", "e2", "s", "PostToolUse", at, "", "Bash", "t1", "new", 1, "", "{}"),
                (
                    "sessions",
                    "s",
                    "shop",
                    "/shop",
                    "/shop/.git",
                    "main",
                    "ab12",
                    "claude",
                    "/t",
                    7,
                    None,
                    "active",
                    at,
                    at,
                    None,
                    "Do it.",
                    "",
                    None,
                ),
                ("symbol_changes", "s", "a.py", "f", "function", "new", "def f()", 3, "shop", at),
                ("session_commands", "s", "make test", "test", 3, 2, 1, at, "passed", "", ""),
                ("session_teams", "t", "checkout", "tester", "s"),
                ("event_log", 1, at, "s", "hook.context_inject", "{}", 12, 340),
                ("excerpts", 1, "s", "shop", "e1", 0, at, "prompt", "user", 900, "Do it", "do it"),
                ("excerpts", 2, "s", None, "e2", 1, at, "final", "agent", 900, "Done", "done"),
                ("model_answers", "s", "steps", "e1", '["e1","e2"]', at, "qwen", "{}", ""),
                ("model_answers", "s", "summary", "", '["e2"]', at, "qwen", "{}", "It is silent."),
            ):
                places = ", ".join("?" * (len(values) - 1))
                connection.execute(f"INSERT INTO {values[0]} VALUES ({places})", values[1:])
        yield path


@pytest.fixture
def path(used_store: Path, tmp_path: Path) -> Path:
    copy = tmp_path / "store.db"
    copy.write_bytes(used_store.read_bytes())
    return copy


def recovered(path: Path) -> tuple[RecoveryReport, Path]:
    new = path.with_name("new.db")
    return recovery.make_store(salvage.salvage(str(path)), str(new)), new


def everything(path: Path) -> tuple[object, ...]:
    with closing(user_store.open_for_reading(str(path))) as connection:
        told = (
            *("pending", "commands", "receipts", "events"),
            *("sessions", "symbol_changes", "event_log", "model_answers"),
            *("excerpts", "session_commands", "session_teams"),
        )
        rows = [connection.execute(f"SELECT * FROM {table}").fetchall() for table in told]
        return tables(connection), all_records(connection), rows


def nothing_lost(told: RecoveryReport) -> bool:
    return not (told.lost_records or told.lost_nodes or told.lost_edges or told.lost_tags)


def test_every_table_is_recoverable() -> None:
    """A new table or column needs a rule that recognises its rows."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        for migration in migrations.MIGRATIONS:
            migration(connection)
        rows = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND instr(name, '_fts') = 0"
        ).fetchall()
        shapes = {
            name: len(connection.execute(f"PRAGMA table_info({name})").fetchall())
            for (name,) in rows
        }
    graph = {"records": 11, "nodes": 11, "edges": 6, "outside": 6, "tags": 3, "views": 6}
    assert shapes == graph | {"pending": 3} | {
        "receipts": 7,
        "events": 11,
        "commands": 5,
        "contexts": 8,
        "sessions": 17,
        "symbol_changes": 9,
        "event_log": 7,
        "model_answers": 8,
        "excerpts": 11,
        "session_commands": 10,
        "session_teams": 4,
        # These are not recovered: the next sync reads all batches again.
        "sync_targets": 5,
        "sync_batches": 4,
        "sync_records": 3,
        "sync_versions": 4,
        "sync_replicas": 5,
        "sync_confirmed": 3,
        "sync_changes": 1,
    }


def test_rows_about_sync_are_not_mistaken_for_others(path: Path) -> None:
    with closing(user_store.open_for_writing(str(path))) as connection, transaction(connection):
        record = ids.new_ulid()
        replicas.note_attempt(connection, "fact")
        replicas.note_attempt(connection, "fact", "The disk is away.")
        contents = BatchContents("0f" * 32, ids.new_ulid(), {record: ""})
        replicas.add_batch(connection, "fact", contents)
        record_versions.note_scrub(connection, [record])
        this = Replica(ids.new_ulid(), "laptop", "2026-01-20T10:00:00Z", False)
        replicas.note_replica(connection, "fact", this, [ids.new_ulid()])
    told, new = recovered(path)
    assert everything(new) == everything(path)
    assert nothing_lost(told)


def test_an_intact_store_is_recovered_unchanged(path: Path) -> None:
    told, new = recovered(path)
    assert everything(new) == everything(path)
    assert nothing_lost(told)
    assert told.from_tables == 0


@pytest.mark.parametrize(
    ("start", "end"),
    [(0, 16), (0, 100), (0, PAGE), (16, 18), (28, 40)],
    ids=["magic", "header", "first page", "page size", "counts"],
)
def test_a_damaged_first_page_loses_nothing(path: Path, start: int, end: int) -> None:
    before = everything(path)
    data = bytearray(path.read_bytes())
    data[start:end] = b"\xaa" * (end - start)
    path.write_bytes(data)
    told, new = recovered(path)
    assert everything(new) == before
    assert nothing_lost(told)


def test_rows_that_are_only_in_the_log_are_recovered(used_store: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy" / "store.db"
    copy.parent.mkdir()
    whole = tmp_path / "store.db"
    whole.write_bytes(used_store.read_bytes())
    with closing(user_store.open_for_writing(str(whole))) as connection:
        with changing(Graph(connection), "add", WHO) as change:
            node_id = change.add_node("fact", "Only in the log.")
        copy.write_bytes(b"\0" * PAGE + whole.read_bytes()[PAGE:])
        copy.with_name("store.db-wal").write_bytes(Path(f"{whole}-wal").read_bytes())
    told, new = recovered(copy)
    assert nothing_lost(told)
    with closing(user_store.open_for_reading(str(new))) as connection:
        assert Graph(connection).node(node_id).content == "Only in the log."


def table_of_pages(path: Path) -> dict[str, list[int]]:
    """The pages of each table and index; 0 is the first page."""
    with closing(sqlite3.connect(path)) as connection:
        try:
            rows = connection.execute("SELECT name, pageno - 1 FROM dbstat").fetchall()
        except sqlite3.OperationalError:
            pytest.skip("this SQLite cannot tell which page belongs to which table")
    found: dict[str, list[int]] = {}
    for name, page in rows:
        found.setdefault(name, []).append(page)
    return found


def wipe(path: Path, pages: list[int]) -> None:
    data = bytearray(path.read_bytes())
    for page in pages:
        data[page * PAGE : (page + 1) * PAGE] = b"\0" * PAGE
    path.write_bytes(data)


def without(path: Path, *names: str) -> list[int]:
    known = table_of_pages(path)
    return [page for name in names for page in known[name]]


def test_tables_are_recovered_without_records(path: Path) -> None:
    before = everything(path)[0]
    wipe(path, without(path, "records"))
    told, new = recovered(path)
    assert (told.lost_nodes, told.lost_edges, told.lost_tags) == ((), 0, 0)
    assert told.lost_records > 800
    assert everything(new)[0] == before


def test_tables_are_rebuilt_from_records(path: Path) -> None:
    before = everything(path)
    wipe(path, without(path, "nodes", "edges", "tags", "views"))
    told, new = recovered(path)
    assert nothing_lost(told)
    assert (everything(new)[0], everything(new)[1]) == before[:2]


def test_losses_are_reported(path: Path) -> None:
    with closing(user_store.open_for_reading(str(path))) as connection:
        nodes = {row[0] for row in connection.execute("SELECT id FROM nodes")}
        counts = [
            connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in ("records", "nodes", "edges", "tags")
        ]
    wipe(path, without(path, "records", "nodes")[::2])
    told, new = recovered(path)
    with closing(user_store.open_for_reading(str(new))) as connection:
        after = {row[0] for row in connection.execute("SELECT id FROM nodes")}
        assert_sound(connection)
    lost = {node.id for node in told.lost_nodes}
    assert lost
    assert lost == nodes - after
    assert {node.type for node in told.lost_nodes} <= {"fact", "task"}
    assert told.records - told.from_tables + told.lost_records == counts[0]
    # Where the record of a deletion is lost, what was deleted is back.
    assert told.nodes + len(lost) >= counts[1]
    assert told.edges + told.lost_edges >= counts[2]
    assert told.tags + told.lost_tags >= counts[3]


@pytest.mark.parametrize("seed", range(6))
def test_random_damage_gives_a_valid_store_without_invented_rows(
    used_store: Path, path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    data = bytearray(path.read_bytes())
    for _ in range(chance.choice([1, 5, 30])):
        page = chance.randrange(len(data) // PAGE) * PAGE
        noise = chance.randbytes(PAGE)
        data[page : page + PAGE] = chance.choice([noise, b"\0" * PAGE])
    path.write_bytes(bytes(data[: chance.choice([None, len(data) // 2])]))
    _, new = recovered(path)
    with (
        closing(user_store.open_for_reading(str(new))) as connection,
        closing(user_store.open_for_reading(str(used_store))) as original,
    ):
        assert_sound(connection)
        known = {(r.id, r.kind, r.subject, str(r.body)) for r in all_records(original)}
        found = [r for r in all_records(connection) if r.action != "recover"]
        assert {(r.id, r.kind, r.subject, str(r.body)) for r in found} <= known
