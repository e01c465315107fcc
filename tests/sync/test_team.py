"""A PostgreSQL server as a target: what it stores, and who may read and write it."""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any

import psycopg
import pytest
from psycopg import errors

from ctx.errors import CtxError, NewerFormat, SyncFailure, UsageError
from ctx.operations import sync
from ctx.sync import outgoing, team_connection, team_graph, team_schema
from ctx.sync.batch_target import BatchTarget
from ctx.sync.git_target import shown
from ctx.sync.team_connection import ServerWait
from ctx.sync.team_schema import MIGRATIONS, Migration
from ctx.sync.team_target import TeamTarget
from tests.conftest import PEOPLE, Ctx, Sql
from tests.contract.batch_targets import ONE, BatchTargetContract
from tests.postgres_server import PostgresServer
from tests.sync.conftest import On
from tests.sync.loopback_proxy import proxy

INSERTS = """
INSERT INTO ctx.batches (project, owner, name, data, machine) VALUES ('shop', '', 'x', '', '');
INSERT INTO ctx.records (project, owner, id, stamp, change, action, kind, subject, key, body,
    session, author, version, replaces, depth, machine)
VALUES ('shop', '', 'x', 1, 'x', 'add', 'node.put', 'x', '', '{}', '', '', '', '', 0, '');
INSERT INTO ctx.subjects VALUES ('x', 'shop', '');
INSERT INTO ctx.nodes (project, owner, id, type, content, token_estimate, created_at, updated_at,
    metadata) VALUES ('shop', '', 'x', 'fact', 'x', 1, '', '', '{}');
INSERT INTO ctx.tags VALUES ('shop', '', 'x', 'x', '');
INSERT INTO ctx.stored_edges VALUES ('shop', '', 'x', 'x', 'x', 'CALLS', '', '{}');
INSERT INTO ctx.members (project, member, role) VALUES ('shop', 'dora', 'owner')
""".split(";")
DERIVED = ("batches", "records", "nodes", "tags", "stored_edges", "edges")


def contents(on: On, machine: str) -> list[str]:
    listed = on(machine, "list", "--format", "json").json
    return sorted(node["content"] for node in listed["nodes"])


class TestContract(BatchTargetContract):
    @pytest.fixture
    def target(self, postgres: PostgresServer, database: str) -> Iterator[BatchTarget]:
        with closing(TeamTarget(postgres.url(database=database))) as target:
            yield target

    @pytest.fixture
    def elsewhere(self, postgres: PostgresServer, database: str) -> Iterator[BatchTarget]:
        with closing(TeamTarget(postgres.url(database=database))) as target:
            yield target


def test_members_exchange_a_project_and_keep_the_rest(on: On, sql: Sql) -> None:
    on("anna", "add", "The shop uses OAuth.", "--tag", "project:shop")
    on("anna", "add", "My own note.")
    on("anna", "add", "A secret project.", "--tag", "project:elsewhere")
    on("anna", "sync")
    for machine in ("anna-desktop", "ben", "cleo", "dora"):
        on(machine, "sync")
    assert contents(on, "anna-desktop") == ["My own note.", "The shop uses OAuth."]
    assert contents(on, "ben") == contents(on, "cleo") == ["The shop uses OAuth."]
    assert contents(on, "dora") == []
    assert sql("ben", "SELECT project, owner, content FROM ctx.nodes") == [
        ("shop", "", "The shop uses OAuth.")
    ]
    assert sql("ben", "SELECT DISTINCT member, machine FROM ctx.records") == [("anna", "the-anna")]
    assert ("project:shop",) in sql("ben", "SELECT tag FROM ctx.tags")
    assert sql("postgres", "SELECT count(*) FROM ctx.nodes WHERE content LIKE '%secret%'") == [(0,)]


def test_large_nodes_are_sent_with_several_statements(
    on: On, sql: Sql, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(team_graph, "_MOST_TEXT", 300)
    for number in range(6):
        on("anna", "add", f"Note {number} " + "x" * 100, "--tag", "project:shop")
    on("anna", "sync")
    assert sql("ben", "SELECT count(*) FROM ctx.nodes") == [(6,)]


def test_changes_of_two_members_meet_on_the_server(on: On, sql: Sql) -> None:
    on("anna", "add", "The first one.", "--tag", "project:shop")
    on("anna", "sync")
    on("ben", "sync")
    (first,) = [node["id"] for node in on("ben", "list", "--format", "json").json["nodes"]]
    second = on("ben", "add", "The second one.", "--tag", "project:shop", "--format", "json").json
    on("ben", "link", second["node"]["id"], first, "--type", "DEPENDS_ON")
    on("anna", "tag", first, "reviewed")
    on("ben", "update", first, "The first one, changed.")
    for machine in ("ben", "anna", "ben"):
        on(machine, "sync")
    assert (
        contents(on, "anna")
        == contents(on, "ben")
        == ["The first one, changed.", "The second one."]
    )
    rows = sql("cleo", "SELECT content FROM ctx.nodes ORDER BY 1")
    assert rows == [("The first one, changed.",), ("The second one.",)]
    assert ("reviewed",) in sql("cleo", "SELECT tag FROM ctx.tags WHERE node_id = %s", first)
    assert sql("cleo", "SELECT type, to_id FROM ctx.edges") == [("DEPENDS_ON", first)]
    on("anna", "delete", first, "--yes")
    on("anna", "sync")
    assert sql("cleo", "SELECT content FROM ctx.nodes") == [("The second one.",)]
    assert sql("cleo", "SELECT type, to_id FROM ctx.edges") == []


def test_a_reader_sends_nothing_of_the_project(on: On, sql: Sql) -> None:
    on("anna", "add", "The first one.", "--tag", "project:shop")
    on("anna", "sync")
    on("cleo", "sync")
    (node,) = on("cleo", "list", "--format", "json").json["nodes"]
    on("cleo", "update", node["id"], "Changed by a reader.")
    on("cleo", "sync")
    on("anna", "sync")
    assert contents(on, "anna") == ["The first one."]
    assert sql("anna", "SELECT content FROM ctx.nodes") == [("The first one.",)]


def test_a_removed_member_keeps_what_they_had_and_gets_nothing_more(on: On, sql: Sql) -> None:
    on("anna", "add", "Said before.", "--tag", "project:shop")
    on("anna", "sync")
    on("ben", "sync")
    sql("anna", "DELETE FROM ctx.members WHERE member = 'ben'")
    on("anna", "add", "Said afterwards.", "--tag", "project:shop")
    on("anna", "sync")
    on("ben", "add", "Too late.", "--tag", "project:shop")
    on("ben", "sync")
    assert contents(on, "ben") == ["Said before.", "Too late."]
    on("anna", "sync")
    assert contents(on, "anna") == ["Said afterwards.", "Said before."]
    assert sql("ben", "SELECT content FROM ctx.nodes") == []


def test_a_personal_node_is_shared_by_its_tag(on: On, sql: Sql) -> None:
    node = on("anna", "add", "At first my own.", "--format", "json").json["node"]["id"]
    on("anna", "sync")
    on("anna-desktop", "sync")
    on("anna", "tag", node, "project:shop")
    for machine in ("anna", "ben", "anna-desktop"):
        on(machine, "sync")
    assert contents(on, "ben") == contents(on, "anna-desktop") == ["At first my own."]
    assert sql("anna", "SELECT project, owner FROM ctx.nodes") == [("shop", "")]
    assert {*sql("anna", "SELECT project FROM ctx.records WHERE node = %s", node)} == {("shop",)}
    on("anna-desktop", "update", node, "Changed on another machine.")
    for machine in ("anna-desktop", "ben"):
        on(machine, "sync")
    assert contents(on, "ben") == ["Changed on another machine."]


def test_a_node_that_leaves_a_project_is_not_sent_to_new_members(on: On, sql: Sql) -> None:
    node = on("anna", "add", "Shared by mistake.", "--tag", "project:shop", "--format", "json")
    on("anna", "sync")
    on("anna", "untag", node.json["node"]["id"], "project:shop")
    on("anna", "sync")
    on("ben", "sync")
    assert contents(on, "ben") == []
    assert sql("ben", "SELECT id FROM ctx.nodes") == sql("ben", "SELECT id FROM ctx.records") == []
    assert sql("anna", "SELECT owner, content FROM ctx.nodes") == [("anna", "Shared by mistake.")]


def test_a_writer_of_one_project_cannot_change_nodes_of_another(
    on: On, sql: Sql, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even on the machines of people who have both."""
    sql("anna", "INSERT INTO ctx.projects (name) VALUES ('attic')")
    sql("anna", "INSERT INTO ctx.members (project, member, role) VALUES ('attic','ben','reader')")
    node = on("anna", "add", "True in the attic.", "--tag", "project:attic", "--format", "json")
    on("anna", "sync")
    on("ben", "sync")
    on("ben", "update", node.json["node"]["id"], "A lie.")
    with monkeypatch.context() as patch:
        patch.setattr(
            outgoing, "by_project", lambda _connection, unsent, _shared: [("shop", [*unsent])]
        )
        on("ben", "sync")
    on("anna", "sync")
    assert contents(on, "anna") == ["True in the attic."]
    assert sql("anna", "SELECT content FROM ctx.nodes") == [("True in the attic.",)]


# SQL by hand


@pytest.fixture
def filled(on: On) -> None:
    """Each of three people has a node of a project and a personal one."""
    for person, project in (("anna", "shop"), ("ben", "shop"), ("dora", "garden")):
        on(person, "add", f"{project} by {person}", "--tag", f"project:{project}")
        on(person, "add", f"personal of {person}")
        on(person, "sync")


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize(
    ("person", "seen"),
    [
        ("anna", ["personal of anna", "shop by anna", "shop by ben"]),
        ("ben", ["personal of ben", "shop by anna", "shop by ben"]),
        ("cleo", ["shop by anna", "shop by ben"]),
        ("dora", ["garden by dora", "personal of dora"]),
    ],
)
def test_everybody_sees_their_projects_and_their_own(
    person: str, seen: list[str], sql: Sql
) -> None:
    assert [row[0] for row in sql(person, "SELECT content FROM ctx.nodes ORDER BY 1")] == seen
    spaces = {("", person), *(("garden", ""),) * (person == "dora")}
    spaces |= {("shop", "")} if person != "dora" else set()
    for table in DERIVED:
        rows = sql(person, f"SELECT project, owner FROM ctx.{table}")
        assert {*rows} <= spaces | ({("", "")} if table == "batches" else set())
    bodies = "\n".join(row[0] for row in sql(person, "SELECT body::text FROM ctx.records"))
    for other in {*PEOPLE} - {person}:
        assert f"personal of {other}" not in bodies


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("person", ["cleo", "dora"])
def test_who_is_no_writer_cannot_change_a_project(person: str, sql: Sql) -> None:
    before = sql("anna", "SELECT id, content FROM ctx.nodes ORDER BY 1")
    for statement in INSERTS:
        with pytest.raises(errors.InsufficientPrivilege):
            sql(person, statement)
    for statement in (
        "UPDATE ctx.nodes SET content = 'x' WHERE project = 'shop'",
        "UPDATE ctx.records SET body = '{}' WHERE project = 'shop'",
        "UPDATE ctx.batches SET data = '' WHERE project = 'shop'",
        "UPDATE ctx.members SET role = 'owner' WHERE project = 'shop'",
        "DELETE FROM ctx.batches WHERE project = 'shop'",
        "DELETE FROM ctx.nodes WHERE project = 'shop'",
        "DELETE FROM ctx.tags WHERE project = 'shop'",
        "DELETE FROM ctx.members WHERE project = 'shop'",
    ):
        assert sql(person, statement) == [(0,)]
    assert sql("anna", "SELECT id, content FROM ctx.nodes ORDER BY 1") == before


@pytest.mark.usefixtures("filled")
def test_a_writer_cannot_change_members_or_who_sent_a_record(sql: Sql) -> None:
    with pytest.raises(errors.InsufficientPrivilege):
        sql(
            "ben", "INSERT INTO ctx.members (project, member, role) VALUES ('shop','dora','reader')"
        )
    assert sql("ben", "UPDATE ctx.members SET role = 'owner' WHERE member = 'ben'") == [(0,)]
    for table in ("records", "batches"):
        with pytest.raises(errors.InsufficientPrivilege):
            sql("ben", f"UPDATE ctx.{table} SET member = 'anna'")
    with pytest.raises(errors.InsufficientPrivilege):
        sql("ben", "DELETE FROM ctx.records")


@pytest.mark.usefixtures("filled")
def test_personal_rows_cannot_be_written_for_others(sql: Sql) -> None:
    with pytest.raises(errors.InsufficientPrivilege):
        sql("ben", "INSERT INTO ctx.tags VALUES ('', 'anna', 'x', 'x', '')")
    with pytest.raises(errors.InsufficientPrivilege):
        sql("ben", "UPDATE ctx.nodes SET owner = 'anna' WHERE owner = 'ben'")
    with pytest.raises(errors.InsufficientPrivilege):
        sql("ben", "UPDATE ctx.nodes SET project = 'garden', owner = '' WHERE owner = 'ben'")


def test_partitions_and_other_members_rights_are_closed(sql: Sql) -> None:
    with pytest.raises(errors.InsufficientPrivilege):
        sql("anna", "SELECT * FROM ctx.nodes_0")
    assert sql("ben", "SELECT ctx.projects_of('dora', '{owner}')") == [([],)]
    with pytest.raises(errors.InsufficientPrivilege):
        sql("ben", "SET ROLE anna")


def test_a_batch_for_everybody_cannot_carry_records(on: On, sql: Sql) -> None:
    """Otherwise a reader could write to every store."""
    on("cleo", "add", "From a reader.")
    on("cleo", "sync")
    copied = "INSERT INTO ctx.batches (project, owner, name, data, machine)"
    sql("cleo", f"{copied} SELECT '', '', name, data, '' FROM ctx.batches WHERE owner = 'cleo'")
    done = on("anna", "sync")
    assert "stored for other people" in done.out
    assert contents(on, "anna") == []


# Failures


def test_a_killed_server_loses_nothing(on: On, postgres: PostgresServer, sql: Sql) -> None:
    on("anna", "add", "The first one.", "--tag", "project:shop")
    on("anna", "sync")
    on("anna", "add", "The second one.", "--tag", "project:shop")
    postgres.kill()
    try:
        failed = on("anna", "sync", code=1)
        assert "cannot be reached" in failed.err
        assert contents(on, "anna") == ["The first one.", "The second one."]
    finally:
        postgres.start()
    for machine in ("anna", "ben"):
        on(machine, "sync")
    assert contents(on, "ben") == ["The first one.", "The second one."]
    assert len(sql("ben", "SELECT content FROM ctx.nodes")) == 2


def test_a_connection_cut_within_a_transaction_changes_nothing(
    postgres: PostgresServer, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as stack:
        target = stack.enter_context(closing(TeamTarget(postgres.url(database=database))))
        target.listing()
        admin = stack.enter_context(postgres.connect(database=database))
        real = psycopg.Connection.execute

        def cut(self: Any, query: Any, *values: Any, **options: Any) -> Any:
            done = real(self, query, *values, **options)
            if "INSERT INTO ctx.batches" in str(query):
                real(admin, "SELECT pg_terminate_backend(%s)", (self.info.backend_pid,))
            return done

        with monkeypatch.context() as patch:
            patch.setattr(psycopg.Connection, "execute", cut)
            with pytest.raises(SyncFailure, match="cut"):
                target.publish([ONE])
        assert target.listing().batches == frozenset()
        target.publish([ONE])
        assert target.listing().batches == {ONE.name}


def test_a_failing_migration_changes_nothing(postgres: PostgresServer, database: str) -> None:
    broken = Migration("CREATE TABLE ctx.extra (id text); SELECT 1 / 0;", 1)
    with postgres.connect(database=database) as connection:
        team_schema.migrate(connection)
        with pytest.raises(errors.DivisionByZero):
            team_schema.migrate(connection, (*MIGRATIONS, broken))
        row = connection.execute("SELECT to_regclass('ctx.extra')").fetchone()
        assert row == (None,)
        team_schema.prepare(connection)


def test_older_versions_work_until_the_server_needs_a_newer_one(
    postgres: PostgresServer, database: str
) -> None:
    expand = Migration("ALTER TABLE ctx.batches ADD COLUMN extra text;", 1)
    contract = Migration("SELECT 1;", len(MIGRATIONS) + 2)
    with postgres.connect(database=database) as connection:
        team_schema.migrate(connection, (*MIGRATIONS, expand))
        with closing(TeamTarget(postgres.url(database=database))) as target:
            target.publish([ONE])
            assert target.read(ONE.name) == ONE.data
        team_schema.migrate(connection, (*MIGRATIONS, expand, contract))
        with pytest.raises(NewerFormat):
            team_schema.prepare(connection)


def test_who_may_not_use_a_server_is_told_why(postgres: PostgresServer, team: str) -> None:
    with postgres.connect() as connection:
        connection.execute(f"CREATE DATABASE empty_{team}".encode())
        connection.execute(f"CREATE ROLE stranger_{team} LOGIN".encode())
    for person, database, reason in (
        ("anna", f"empty_{team}", "not prepared"),
        (f"stranger_{team}", team, "not a member"),
    ):
        with (
            closing(TeamTarget(postgres.url(person, database))) as target,
            pytest.raises(SyncFailure, match=reason),
        ):
            target.listing()


# TLS


@pytest.mark.parametrize("mode", ["disable", "allow", "prefer"])
def test_another_host_needs_tls(mode: str) -> None:
    with pytest.raises(UsageError, match="unencrypted"):
        team_connection.connection_options(f"postgresql://anna@db.example.com/m?sslmode={mode}")


@pytest.mark.parametrize(
    ("url", "mode"),
    [
        ("postgresql://anna@db.example.com/m", "verify-full"),
        ("postgres://anna@db.example.com/m?sslmode=require", "require"),
        ("postgresql://anna@127.0.0.1,db.example.com/m", "verify-full"),
        ("postgresql://anna@localhost/m?hostaddr=10.0.0.1", "verify-full"),
        ("postgresql://anna@127.0.0.2/m", None),
        ("postgresql://anna@[::1]/m", None),
        ("postgresql://anna@localhost/m", None),
        ("postgresql://anna@%2Frun%2Fpostgresql/m", None),
    ],
)
def test_tls_is_left_out_only_on_this_machine(url: str, mode: str | None) -> None:
    assert team_connection.connection_options(url).get("sslmode") == mode


def test_a_server_without_tls_is_refused_before_anything_is_sent(postgres: PostgresServer) -> None:
    url = f"{postgres.url()}?sslmode=require"
    with pytest.raises(CtxError, match="SSL"):
        TeamTarget(url).listing()


def test_a_password_is_never_shown() -> None:
    url = "postgresql://anna:4711@db.example.com/m?sslpassword=4711&password=4711&port=5"
    assert shown(url) == "postgresql://db.example.com/m?sslpassword=&password=&port=5"


@pytest.mark.parametrize(
    "url", ["postgresql:///m", "postgresql://h/m?service=x", "postgres://h:x/"]
)
def test_an_address_without_a_host_is_refused(url: str) -> None:
    with pytest.raises(CtxError):
        team_connection.connect(url)


# Status


def test_the_status_asks_the_server(on: On, sql: Sql, postgres: PostgresServer, team: str) -> None:
    on("anna", "add", "In the shop.", "--tag", "project:shop", "--no-tier")
    on("anna", "add", "In the garden.", "--tag", "project:garden", "--no-tier")
    on("ben", "add", "From ben.", "--tag", "project:shop", "--no-tier")
    on("ben", "sync")
    (target,) = on("anna", "sync", "status", "--format", "json").json["targets"]
    assert target["unconfirmed"] == 0
    assert target["team"] == {
        "to_send": 2,
        "to_receive": 2,
        "staying": 2,
        "projects": [{"project": "shop", "role": "owner", "members": 3}],
    }
    shown = on("cleo", "sync", "status").out
    assert "shop (you are a reader, 3 members)" in shown
    assert "to receive  2 records" in shown
    on("anna", "sync")
    on("ben", "sync")
    on("anna", "scrub", "shop.", "--yes")
    (target,) = on("anna", "sync", "status", "--format", "json").json["targets"]
    assert target["unconfirmed"] == len(target["machines"]) == 3
    assert "not confirmed by 3 of 3 machines" in on("anna", "sync", "status").out
    for machine in ("anna", "ben", "anna"):
        on(machine, "sync")
    assert "not confirmed by 1 of 3 machines" in on("anna", "sync", "status").out


def test_the_status_without_a_server_shows_what_is_known_here(
    on: On, postgres: PostgresServer
) -> None:
    on("anna", "add", "In the shop.", "--tag", "project:shop", "--no-tier")
    on("anna", "sync")
    postgres.stop()
    try:
        (target,) = on("anna", "sync", "status", "--format", "json").json["targets"]
    finally:
        postgres.start()
    assert target["team"] is None
    assert "cannot be reached" in target["problem"]
    assert target["synced_at"]


def test_the_status_does_not_wait_for_a_silent_server(
    ctx: Ctx,
    postgres: PostgresServer,
    team: str,
    impatient: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with proxy(postgres.port) as between:
        url = f"postgresql://anna@127.0.0.1:{between.port}/{team}"
        assert ctx("sync", "add", "team", url).code == 0
        between.is_silent.set()
        (target,) = ctx("sync", "status", "--format", "json").json["targets"]
        assert "timeout" in target["problem"]
        between.is_silent.clear()
        between.falls_silent_when_connected = True
        monkeypatch.setattr(sync, "_STATUS_WAIT", ServerWait(2, 0.01))
        (target,) = ctx("sync", "status", "--format", "json").json["targets"]
    assert "the server does not answer" in target["problem"]
