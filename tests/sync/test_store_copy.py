"""`ctx store copy`: a store becomes another file or rows of a server, and comes back."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from ctx.cli.settings import Settings
from ctx.memory import record_versions, user_store
from ctx.memory.graph import Graph
from ctx.sync import store_copy
from tests.conftest import Ctx, Ran, Sql
from tests.memory.graphs import assert_sound
from tests.postgres_server import PostgresServer
from tests.sync.replicas_in_memory import Machine, random_steps

Rows = tuple[Any, Any]


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_copy, "PAGE", 10)
    monkeypatch.setattr(store_copy, "MOST_RECORDS", 30)


@pytest.fixture
def store(tmp_path: Path) -> str:
    """A store with a random history, in which something was scrubbed that others have."""
    path = str(tmp_path / "source.db")
    with closing(user_store.open_for_writing(path)) as connection:
        machine = Machine(Graph(connection), "laptop", 0)
        machine.work(random_steps(random.Random(7), 90))
        machine.sync()
        machine.scrub("Fact 2")
        machine.sync()
        assert record_versions.versions(connection)
    return path


@pytest.fixture
def server(postgres: PostgresServer, team: str) -> str:
    return postgres.url("anna", team)


def state(path: str) -> Rows:
    """The graph of a store, and its records."""
    with closing(user_store.open_for_writing(path)) as connection:
        assert_sound(connection)
        return Machine(Graph(connection), "", 0).state()


def copied(ctx: Ctx, source: str, destination: str, *words: str, code: int = 0) -> Ran:
    ran = ctx("store", "copy", "--from", source, "--to", destination, "--format", "json", *words)
    assert ran.code == code, ran.err + ran.out
    return ran


def change(path: str, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


def test_a_file_is_copied_to_a_file(ctx: Ctx, store: str, tmp_path: Path) -> None:
    copy = str(tmp_path / "copy.db")
    first = copied(ctx, store, copy).json
    assert first["verified"]
    assert first["counts"]["copied"] == first["counts"]["records"] > 50
    assert state(copy) == state(store)
    second = copied(ctx, store, copy).json
    assert (second["counts"]["copied"], second["verified"]) == (0, True)


def test_a_store_goes_to_a_server_and_comes_back(
    ctx: Ctx, store: str, server: str, sql: Sql, surroundings: Path, tmp_path: Path
) -> None:
    there = copied(ctx, store, server).json
    assert there["verified"]
    assert (
        there["counts"]["copied"]
        == there["counts"]["records"]
        == sql("anna", "SELECT count(*) FROM ctx.records")[0][0]
    )
    assert copied(ctx, store, server).json["counts"]["copied"] == 0
    back = str(tmp_path / "back.db")
    assert copied(ctx, server, back).json["verified"]
    assert state(back) == state(store)
    assert ctx("store", "copy", "--from", server, "--dry-run").code == 0
    assert not (surroundings / ".ctx").exists()
    assert ctx("store", "copy", "--from", server).code == 0
    assert state(str(surroundings / ".ctx" / "store.db")) == state(store)
    assert sql("ben", "SELECT * FROM ctx.records") == []


def test_another_machine_receives_what_was_copied(
    ctx: Ctx, store: str, server: str, surroundings: Path
) -> None:
    copied(ctx, store, server)
    assert ctx("sync", "add", "team", server).code == 0
    assert ctx("sync", "team").code == 0
    assert state(str(surroundings / ".ctx" / "store.db")) == state(store)
    machines = ctx("sync", "status", "--format", "json").json["targets"][0]["machines"]
    assert [each["this"] for each in machines] == [True]


def test_a_dry_run_changes_nothing(
    ctx: Ctx, store: str, server: str, sql: Sql, tmp_path: Path
) -> None:
    copy = tmp_path / "copy.db"
    for destination in (str(copy), server):
        shown = copied(ctx, store, destination, "--dry-run").json
        assert (shown["counts"]["copied"], shown["verified"]) == (shown["counts"]["records"], None)
    assert not copy.exists()
    assert sql("anna", "SELECT count(*) FROM ctx.records") == [(0,)]


# What may not be written


def test_projects_that_the_user_may_not_write_to_are_left_out(
    ctx: Ctx, postgres: PostgresServer, team: str, sql: Sql
) -> None:
    for project in ("shop", "garden", "elsewhere"):
        ctx("add", f"About the {project}.", "--tag", f"project:{project}")
    ctx("add", "My own note.")
    ran = ctx("store", "copy", "--to", postgres.url("ben", team))
    assert ran.code == 0, ran.err
    assert "garden" in ran.out
    assert "elsewhere" in ran.out
    assert "Verified" in ran.out
    rows = sql("ben", "SELECT project, content FROM ctx.nodes ORDER BY 1")
    assert rows == [("", "My own note."), ("shop", "About the shop.")]
    assert sql("postgres", "SELECT count(*) FROM ctx.nodes") == [(2,)]
    reader = ctx("store", "copy", "--to", postgres.url("cleo", team), "--format", "json").json
    # Those of the shop are there already, and ben has the personal ones.
    assert [each["project"] for each in reader["counts"]["left_out"]] == ["", "elsewhere", "garden"]


def test_a_record_of_another_member_is_left_out(
    ctx: Ctx, store: str, postgres: PostgresServer, team: str, sql: Sql
) -> None:
    """Views and undone changes are personal, and have no node that would belong to somebody."""
    copied(ctx, store, postgres.url("anna", team))
    second = copied(ctx, store, postgres.url("ben", team)).json
    assert [each["project"] for each in second["counts"]["left_out"]] == [""]
    assert second["counts"]["left_out"][0]["records"] == second["counts"]["records"]
    assert sql("ben", "SELECT * FROM ctx.records") == []


def test_invalid_records_of_a_server_are_left_out(
    ctx: Ctx, store: str, server: str, sql: Sql, tmp_path: Path
) -> None:
    copied(ctx, store, server)
    for kind, id, body in (
        ("view.put", "not an id", "{}"),
        ("view.put", "01KFHWMVBGBZQ3S7K4M8YF0Z0A", '{"query": 1}'),
        ("view.put", "01KFHWMVBGBZQ3S7K4M8YF0Z0B", "[1]"),
    ):
        sql(
            "anna",
            "INSERT INTO ctx.records (project, owner, id, stamp, change, action, kind, subject,"
            " key, body, session, author, version, replaces, depth, machine)"
            " VALUES ('', 'anna', %s, 1, '01KFHWMVBGBZQ3S7K4M8YF0Z0A', 'x', %s, 'x', '', %s,"
            " '', '', '', '', 0, '')",
            *(id, kind, body),
        )
    back = str(tmp_path / "back.db")
    answer = copied(ctx, server, back).json
    assert (answer["counts"]["invalid"], answer["verified"]) == (3, True)
    assert state(back) == state(store)


# Scrubs


@pytest.mark.parametrize("is_synced", [True, False])
def test_a_scrub_reaches_the_copy_and_is_never_taken_back(
    is_synced: bool, ctx: Ctx, store: str, server: str, sql: Sql, tmp_path: Path
) -> None:
    """Also of records that no replica has: these have no version that would tell who is newer."""
    copy = str(tmp_path / "copy.db")
    ctx("--db", store, "add", "The door opens with 4711-Xy.")
    if is_synced:
        with closing(user_store.open_for_writing(store)) as connection:
            Machine(Graph(connection), "laptop", 0).sync()
    for destination in (copy, server):
        copied(ctx, store, destination)
    with closing(user_store.open_for_writing(store)) as connection:
        Machine(Graph(connection), "laptop", 0).scrub("4711-Xy")
    for destination in (copy, server):
        for has_news in (True, False):
            answer = copied(ctx, store, destination).json
            assert (answer["counts"]["copied"] > 0, answer["verified"]) == (has_news, True)
            # Without a version, what differs is removed from both.
            assert (answer["counts"]["kept"] > 0) is not is_synced
    assert b"4711-Xy" not in Path(copy).read_bytes()
    bodies = sql(
        "postgres", "SELECT body::text FROM ctx.records UNION SELECT content FROM ctx.nodes"
    )
    assert not [body for (body,) in bodies if "4711-Xy" in body]
    # A copy of the older store brings nothing back.
    assert copied(ctx, copy, store).json["verified"]
    assert copied(ctx, server, store).json["verified"]
    assert state(copy) == state(store)


# Failures

KILLED = """
import os, signal, sys
from ctx.cli.main import main
from ctx.sync import store_copy
store_copy.PAGE, store_copy.MOST_RECORDS = 10, 30
for each in (store_copy.FileDestination, store_copy.TeamDestination):
    def add(self, plan, real=each.add):
        if sys.argv[1] == "after":
            real(self, plan)
        os.kill(os.getpid(), signal.SIGKILL)
    each.add = add
raise SystemExit(main(sys.argv[2:]))
"""
"""A command that is killed before or after its first transaction."""


@pytest.mark.parametrize("way", ["to a server", "to a file"])
def test_a_copy_that_is_killed_in_every_part_continues(
    way: str, ctx: Ctx, store: str, server: str, tmp_path: Path
) -> None:
    source, destination = store, server
    if way == "to a file":
        copied(ctx, store, server)
        source, destination = server, str(tmp_path / "back.db")
    records = copied(ctx, source, destination, "--dry-run").json["counts"]["copied"]
    kills = 0
    while (left := copied(ctx, source, destination, "--dry-run").json["counts"]["copied"]) > 0:
        for when in ("before", "after"):
            words = ["store", "copy", "--from", source, "--to", destination]
            ran = subprocess.run(
                [sys.executable, "-c", KILLED, when, *words], capture_output=True, check=False
            )
            assert ran.returncode == -signal.SIGKILL, ran.stderr
        kills += 1
    assert (left, kills) == (0, -(-records // 30))
    answer = copied(ctx, source, destination).json
    assert (answer["counts"]["copied"], answer["verified"]) == (0, True)
    again = str(tmp_path / "again.db")
    copied(ctx, destination, again)
    assert state(again) == state(store)


@pytest.mark.parametrize("part", [1, 2, 3])
def test_a_cut_connection_is_reported_and_the_copy_continues(
    part: int,
    ctx: Ctx,
    store: str,
    server: str,
    postgres: PostgresServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = psycopg.Connection.execute
    calls = []
    with postgres.connect() as admin:

        def cut(self: psycopg.Connection[Any], query: Any, *values: Any, **options: Any) -> Any:
            done = real(self, query, *values, **options)
            if "INSERT INTO ctx.batches" in str(query):
                calls.append(query)
                if len(calls) == part:
                    real(admin, "SELECT pg_terminate_backend(%s)", (self.info.backend_pid,))
            return done

        with monkeypatch.context() as patch:
            patch.setattr(psycopg.Connection, "execute", cut)
            ran = ctx("store", "copy", "--from", store, "--to", server)
    assert ran.code == 1
    assert "error E034" in ran.err
    assert copied(ctx, store, server).json["verified"]
    back = str(tmp_path / "back.db")
    copied(ctx, server, back)
    assert state(back) == state(store)


def test_a_full_disk_is_reported_and_the_copy_continues(
    ctx: Ctx, store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(12):
        ctx("--db", store, "add", f"{number} " + "and a long text " * 500)
    copy = str(tmp_path / "copy.db")
    real = user_store.open_for_writing

    def on_a_small_disk(path: str, busy_ms: int = 30_000) -> sqlite3.Connection:
        connection = real(path, busy_ms)
        if path == copy:
            pages = connection.execute("PRAGMA page_count").fetchone()[0]
            connection.execute(f"PRAGMA max_page_count = {pages + 4}")
        return connection

    with monkeypatch.context() as patch:
        patch.setattr(user_store, "open_for_writing", on_a_small_disk)
        ran = ctx("store", "copy", "--from", store, "--to", copy)
    assert (ran.code, ran.err.split(":")[0]) == (1, "error E014"), ran.err
    assert copied(ctx, store, copy, "--dry-run").json["counts"]["copied"] > 0
    assert copied(ctx, store, copy).json["verified"]
    assert state(copy) == state(store)


def test_a_difference_is_shown_and_the_exit_code_says_so(
    ctx: Ctx, store: str, server: str, sql: Sql, tmp_path: Path
) -> None:
    copy = str(tmp_path / "copy.db")
    copied(ctx, store, copy)
    copied(ctx, store, server)
    changed = "UPDATE {} SET author = 'somebody' WHERE kind = 'tag.add'"
    change(copy, changed.format("records"))
    sql("postgres", changed.format("ctx.records"))
    for destination in (copy, server):
        answer = copied(ctx, store, destination, code=1).json
        assert answer["verified"] is False
        different = [
            each["kind"]
            for each in answer["counts"]["kinds"]
            if each["source"] != each["destination"]
        ]
        assert different == ["tag.add"]
    ran = ctx("store", "copy", "--from", store, "--to", copy)
    assert "The stores differ" in ran.out


def test_places_that_cannot_be_copied_are_refused(
    ctx: Ctx, store: str, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other").write_text("not a store")
    os.symlink(store, tmp_path / "link.db")
    for source, destination, code, reason in (
        (store, store, 2, "the same file"),
        (store, str(tmp_path / "link.db"), 2, "the same file"),
        (server, server, 2, "on a server"),
        (str(tmp_path / "none.db"), server, 1, "cannot be read"),
        (str(tmp_path / "other"), server, 1, "not a store"),
        (store, str(tmp_path / "other"), 1, "not a store"),
        (store, str(tmp_path), 1, "not a plain file"),
        (store, str(tmp_path / "none" / "x.db"), 1, "not a folder"),
        (store, "mysql://x/y", 2, "not a PostgreSQL server"),
    ):
        ran = ctx("store", "copy", "--from", source, "--to", destination)
        assert (ran.code, reason in ran.err) == (code, True), ran.err
    assert ctx("store", "copy").code == 2
    monkeypatch.setattr(Settings, "is_in_agents_shell", True)
    assert "not an agent" in ctx("store", "copy", "--to", server).err
