"""Recovery restores everything in a damaged store that can still be read."""

import os
import random
import sqlite3
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from ctx.exchange import recovery, salvage
from ctx.exchange.recovery import RecoveryReport
from ctx.ids import NodeId, derived_ulid
from ctx.memory import user_store
from ctx.memory.changes import changing
from ctx.memory.graph import Graph
from ctx.sqlite import recover_command
from tests.memory.graphs import WHO, all_records, assert_sound, run_steps, tables

PAGE = 4096
REAL_PATH = os.environ["PATH"]


@pytest.fixture(autouse=True)
def without_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")


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
            for table in salvage.WITHOUT_RECORDS:
                columns = connection.execute(f"PRAGMA table_info({table})").fetchall()
                values = [7 if kind == "INTEGER" else f'"{name}"' for _, name, kind, *_ in columns]
                connection.execute(
                    f"INSERT INTO {table} VALUES ({', '.join('?' * len(values))})", values
                )
        yield path


@pytest.fixture
def path(used_store: Path, tmp_path: Path) -> Path:
    copy = tmp_path / "store.db"
    copy.write_bytes(used_store.read_bytes())
    return copy


def overwrite(path: Path, start: int, end: int) -> None:
    data = bytearray(path.read_bytes())
    data[start:end] = b"\xaa" * (end - start)
    path.write_bytes(data)


def recovered(path: Path) -> tuple[RecoveryReport, Path]:
    new = path.with_name("new.db")
    with salvage.salvage(str(path)) as found:
        return recovery.make_store(found, str(new)), new


def everything(path: Path) -> tuple[object, ...]:
    with closing(user_store.open_for_reading(str(path))) as connection:
        rows = [
            connection.execute(f"SELECT * FROM {table}").fetchall()
            for table in salvage.WITHOUT_RECORDS
        ]
        graph = {name: rows for name, rows in tables(connection).items() if name != "pending"}
        return graph, all_records(connection), rows


def test_every_table_is_recoverable() -> None:
    with closing(user_store.empty_store()) as connection:
        names = {
            name
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            if "_fts" not in name and not name.startswith("sync_")
        }
    assert names == {*salvage.INDEXED, "views", *salvage.WITHOUT_RECORDS, "contexts"}


@pytest.mark.parametrize(("start", "end"), [(0, 0), (0, 16), (0, 100), (16, 18), (28, 40)])
def test_a_damaged_header_loses_nothing(path: Path, start: int, end: int) -> None:
    before = everything(path)
    overwrite(path, start, end)
    told, new = recovered(path)
    assert everything(new) == before
    assert told.is_complete
    assert told.from_tables == 0


def test_rows_that_are_only_in_the_log_are_recovered(used_store: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy" / "store.db"
    copy.parent.mkdir()
    whole = tmp_path / "store.db"
    whole.write_bytes(used_store.read_bytes())
    with closing(user_store.open_for_writing(str(whole))) as connection:
        with changing(Graph(connection), "add", WHO) as change:
            node_id = change.add_node("fact", "Only in the log.")
        copy.write_bytes(b"\0" * 100 + whole.read_bytes()[100:])
        copy.with_name("store.db-wal").write_bytes(Path(f"{whole}-wal").read_bytes())
    told, new = recovered(copy)
    assert told.is_complete
    with closing(user_store.open_for_reading(str(new))) as connection:
        assert Graph(connection).node(node_id).content == "Only in the log."


def pages_of(path: Path, *names: str) -> list[tuple[int, int]]:
    """The pages of tables, and the number of rows on each; 0 is the first page."""
    with closing(sqlite3.connect(path)) as connection:
        try:
            rows = connection.execute(
                "SELECT pageno - 1, iif(pagetype = 'leaf', ncell, 0) FROM dbstat"
                f" WHERE name IN ({', '.join('?' * len(names))})",
                names,
            )
            return rows.fetchall()
        except sqlite3.OperationalError:
            pytest.skip("this SQLite cannot tell which page belongs to which table")


def wipe(path: Path, pages: Sequence[tuple[int, int]]) -> None:
    with path.open("r+b") as file:
        for page, _ in pages:
            file.seek(page * PAGE)
            file.write(b"\xaa" * PAGE)


@pytest.mark.parametrize("table", ["records", "tags"])
def test_rows_on_both_sides_of_a_damaged_page_are_read(path: Path, table: str) -> None:
    leaves = [page for page in pages_of(path, table) if page[1]]
    with closing(sqlite3.connect(path)) as connection:
        total = connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
    wipe(path, [leaves[len(leaves) // 2]])
    with salvage.salvage(str(path)) as found:
        # SQL loses one row before a damaged page of a table without row numbers.
        lost = total - leaves[len(leaves) // 2][1] - found.count(table)
        assert lost == 0 if table == "records" else 0 <= lost <= 2


def test_tables_are_recovered_without_records(path: Path) -> None:
    before = everything(path)[0]
    wipe(path, pages_of(path, "records"))
    told, new = recovered(path)
    assert (told.lost_nodes, told.lost_edges, told.lost_tags) == ((), 0, 0)
    assert told.lost_records > 800
    assert everything(new)[0] == before


def test_tables_are_rebuilt_from_records(path: Path) -> None:
    before = everything(path)
    wipe(path, pages_of(path, "nodes", "edges", "tags", "views"))
    told, new = recovered(path)
    assert told.from_tables == 0
    assert everything(new)[:2] == before[:2]


def test_an_invalid_row_without_a_record_is_lost(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        tag = connection.execute("SELECT node_id, tag FROM tags LIMIT 1").fetchone()
        connection.execute("DELETE FROM records WHERE subject = ? AND key = ?", tag)
        connection.execute("UPDATE tags SET created_at = 'then' WHERE node_id = ? AND tag = ?", tag)
    told, _ = recovered(path)
    assert (told.from_tables, told.lost_tags) == (0, 1)


def test_losses_are_reported(path: Path) -> None:
    with closing(user_store.open_for_reading(str(path))) as connection:
        nodes = {row[0] for row in connection.execute("SELECT id FROM nodes")}
        counts = [
            connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in ("records", "nodes", "edges", "tags")
        ]
    wipe(path, [page for page in pages_of(path, "records", "nodes") if page[1]][::2])
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


@pytest.mark.parametrize("seed", range(4))
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


# With the program sqlite3


def program(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a program on the PATH that behaves as `sqlite3` should not."""
    file = folder / "sqlite3"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", str(folder))
    return file


def test_the_program_finds_records_whose_table_is_lost(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", REAL_PATH)
    before = everything(path)
    with salvage.salvage(str(path)) as found:
        if found.problem:
            pytest.skip(found.problem)
    overwrite(path, 0, PAGE)
    told, new = recovered(path)
    assert everything(new)[:2] == before[:2]
    assert not told.lists_all


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("sleep 60", "sqlite3 was stopped after"),
        ("cat /dev/zero", "sqlite3 printed too much"),
        ("echo sql error; exit 1", "this sqlite3 has no working .recover"),
        ("kill -9 $$", "this sqlite3 has no working .recover"),
    ],
)
def test_a_program_that_fails_changes_nothing(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, problem: str
) -> None:
    monkeypatch.setattr(recover_command, "SIZE_LIMIT", 100_000)
    monkeypatch.setattr(recover_command, "TIME_LIMIT_S", 0.3 if "sleep" in script else 60)
    program(tmp_path, f"PATH=/usr/bin:/bin\n{script}", monkeypatch)
    with salvage.salvage(str(path)) as found:
        assert found.problem.startswith(problem)
        assert found.count("records") == found.read_by_sql > 800


def test_the_output_of_the_program_only_adds_valid_rows(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(sqlite3.connect(path)) as connection:
        row = connection.execute("SELECT * FROM records WHERE kind = 'tag.add' LIMIT 1").fetchone()
    columns = "INTO 'records'(_rowid_, id, stamp, change, action, kind, subject, key, body)"
    ids = [derived_ulid(number, "of a damaged file") for number in range(4)]
    kind = f"'tag', 'tag.add', '{row[5]}'"
    elsewhere = tmp_path / "elsewhere.db"
    attacks = f"""
        .shell touch {elsewhere}
        ATTACH '{elsewhere}' AS x;
        PRAGMA writable_schema = on;
        CREATE TRIGGER t AFTER INSERT ON records BEGIN DELETE FROM nodes; END;
        DELETE FROM records;
        INSERT INTO records SELECT * FROM records;
        INSERT INTO nodes_fts(nodes_fts) VALUES('delete-all');
        INSERT INTO sqlite_master VALUES('table', 'y', 'y', 2, 'CREATE TABLE y(a)');
        INSERT INTO nodes(id) VALUES (1); DELETE FROM nodes;
        INSERT OR IGNORE {columns} VALUES (NULL, '{ids[0]}', 1, '{ids[0]}', {kind}, 'x:\', '{{}}');
        INSERT OR IGNORE {columns} VALUES (NULL, '{ids[1]}', 1, '{ids[1]}', {kind}, 'x:y', '{{');
        INSERT OR IGNORE {columns} SELECT NULL, '{ids[2]}', 1, '{ids[2]}', {kind}, 'x:y', '{{}}';
        INSERT OR IGNORE {columns} VALUES (NULL, '{ids[2]}', 1, '{ids[2]}', {kind},
        INSERT OR IGNORE {columns} VALUES (NULL, '{ids[3]}', 1, '{ids[3]}', {kind}, 'x:y', '{{}}');
    """
    file = program(tmp_path, 'echo "$@" > "$0.words"\nexport -p > "$0.environment"', monkeypatch)
    with file.open("a") as script:
        script.write(f"while read -r line; do echo \"$line\"; done <<'END'\n{attacks}\nEND\n")
    monkeypatch.setenv("API_TOKEN", "s3cret")
    with salvage.salvage(str(path)) as found:
        assert found.problem == ""
        assert found.count("records") == found.read_by_sql + 1
        assert ids[3] in {
            record_id for (record_id,) in found.rows.execute("SELECT id FROM records")
        }
        assert found.count("nodes") > 300
    assert not elsewhere.exists()
    words = Path(f"{file}.words").read_text().split()
    assert words[:3] == ["-init", "/dev/null", "-safe"]
    assert str(path) not in words
    assert "s3cret" not in Path(f"{file}.environment").read_text()
