"""`ctx store copy`: a store becomes another file or rows of a server, and comes back."""

import os
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from ctx.cli.settings import Settings
from ctx.memory import record_versions, replicas, user_store
from ctx.memory.graph import Graph
from ctx.sync import replicate
from ctx.sync.replicate import Replication
from ctx.sync.team_target import TeamTarget
from tests.conftest import Ctx, Sql
from tests.memory.graphs import assert_sound
from tests.postgres_server import PostgresServer
from tests.sync.replicas_in_memory import Machine, random_steps

Rows = tuple[Any, Any]


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replicate, "_READ_AT_ONCE", 10)
    monkeypatch.setattr(replicate, "_MOST_RECORDS", 30)
    monkeypatch.setattr(replicate, "_MOST_BATCHES", 1)


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


def copied(ctx: Ctx, source: str, destination: str, *words: str) -> Any:
    ran = ctx("store", "copy", "--from", source, "--to", destination, "--format", "json", *words)
    assert ran.code == 0, ran.err + ran.out
    return ran.json


def test_a_store_is_copied_to_a_file_and_to_a_server_and_back(
    ctx: Ctx, store: str, server: str, sql: Sql, surroundings: Path, tmp_path: Path
) -> None:
    before = Path(store).read_bytes()
    with closing(user_store.open_for_reading(store)) as connection:
        total = len(replicas.shared_ids(connection))
    copy, back = str(tmp_path / "copy.db"), str(tmp_path / "back.db")
    ways = [(store, copy), (store, server), (server, back)]
    for source, destination in ways:
        assert copied(ctx, source, destination, "--dry-run")["copied"] == total > 50
        assert not (destination != server and os.path.exists(destination))
        assert copied(ctx, source, destination)["copied"] == total
        again = copied(ctx, source, destination)
        assert (again["copied"], again["scrubs"], again["left_out"]) == (0, 0, [])
        rows = sql("anna", "SELECT count(*) FROM ctx.records")
        assert rows == [(0 if destination == copy else total,)]
    assert state(copy) == state(back) == state(store)
    assert Path(store).read_bytes() == before
    with closing(user_store.open_for_reading(back)) as connection:
        assert connection.execute("SELECT count(*) FROM sync_batches").fetchone() == (0,)
        assert connection.execute("SELECT count(*) FROM sync_changes").fetchone()[0] > 0
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
    rows = sql("ben", "SELECT project, content FROM ctx.nodes ORDER BY 1")
    assert rows == [("", "My own note."), ("shop", "About the shop.")]
    assert sql("postgres", "SELECT count(*) FROM ctx.nodes") == [(2,)]
    reader = ctx("store", "copy", "--to", postgres.url("cleo", team), "--format", "json").json
    # Those of the shop are there already, and ben has the personal ones.
    assert [each["project"] for each in reader["left_out"]] == ["", "elsewhere", "garden"]


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
        assert [copied(ctx, store, destination)["scrubs"] > 0 for _ in range(2)] == [True, False]
    assert b"4711-Xy" not in Path(copy).read_bytes()
    bodies = sql(
        "postgres", "SELECT body::text FROM ctx.records UNION SELECT content FROM ctx.nodes"
    )
    assert not [body for (body,) in bodies if "4711-Xy" in body]
    # A copy of the older store brings nothing back.
    for source in (copy, server):
        copied(ctx, source, store)
    assert state(copy) == state(store)


# Failures


class Killed(BaseException):
    """Nothing handles it."""


def killed(real: Callable[..., Any], when: str) -> Callable[..., Any]:
    def run(*values: Any) -> Any:
        if when == "after":
            real(*values)
        raise Killed

    return run


def test_a_copy_that_is_killed_in_every_part_continues(
    ctx: Ctx, store: str, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    back = str(tmp_path / "back.db")
    for owner, name, *places in (
        (TeamTarget, "publish", store, server),
        (Replication, "_apply", server, back),
    ):
        source, destination = map(str, places)
        left = total = copied(ctx, source, destination, "--dry-run")["copied"]
        while left:
            for when in ("before", "after"):
                with monkeypatch.context() as patch:
                    patch.setattr(owner, name, killed(getattr(owner, str(name)), when))
                    with pytest.raises(Killed):
                        ctx("store", "copy", "--from", source, "--to", destination)
                before, left = left, copied(ctx, source, destination, "--dry-run")["copied"]
                assert (left < before) is (when == "after")
        assert total > 60
    copied(ctx, server, back)
    assert state(back) == state(store)


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
    copied(ctx, store, server)
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
    assert copied(ctx, store, copy)["copied"] > 0
    assert state(copy) == state(store)


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
