"""Commands on a team's server itself: what they read and write, and who may do it."""

import json
import os
import threading
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from psycopg import errors

from ctx import library
from ctx.direct import team_graph_store
from ctx.errors import CtxError
from ctx.ids import NodeId, Ulid, session_id
from ctx.layout import UserStore
from ctx.mcp.agent_place import AgentPlace
from ctx.mcp.call_thread import RunningCall
from ctx.mcp.tools import TOOLS
from ctx.memory.changes import ChangeAuthor, changing
from ctx.memory.graph import Graph
from ctx.sync import team_schema
from ctx.workspace import Environment
from tests.conftest import Ctx, Sql
from tests.direct.conftest import Container
from tests.postgres_server import PostgresServer

WHO = ChangeAuthor("cli", "cli")


def contents(container: Container, person: str) -> list[str]:
    listed = container(person, "list", "--format", "json").json
    return sorted(node["content"] for node in listed["nodes"])


def added(container: Container, person: str, *words: str) -> NodeId:
    return NodeId(Ulid(container(person, "add", *words, "--format", "json").json["node"]["id"]))


def test_containers_share_a_project_and_keep_the_rest(container: Container, sql: Sql) -> None:
    added(container, "anna", "The shop uses OAuth.", "--tag", "project:shop")
    added(container, "anna", "My own note.")
    added(container, "anna", "Of a project without a server.", "--tag", "project:elsewhere")
    assert contents(container, "ben") == contents(container, "cleo") == ["The shop uses OAuth."]
    assert len(contents(container, "anna")) == 3
    assert sql("anna", "SELECT DISTINCT member, machine FROM ctx.records") == [
        ("anna", "container")
    ]


def test_a_reader_cannot_write(container: Container) -> None:
    node = added(container, "anna", "The shop uses OAuth.", "--tag", "project:shop")
    refused = container("cleo", "add", "More spam.", "--tag", "project:shop", code=1)
    assert "You may read the project shop on the server, and not write to it." in refused.err
    refused = container("cleo", "update", node, "--summary", "Spam", code=1)
    assert "You may read the project shop on the server, and not write to it." in refused.err
    assert contents(container, "cleo") == ["The shop uses OAuth."]
    # A reader has personal memory too.
    added(container, "cleo", "My own note.")
    assert contents(container, "anna") == ["The shop uses OAuth."]


def test_replicas_receive_what_a_container_wrote_and_the_other_way_round(
    container: Container, ctx: Ctx, postgres: PostgresServer, team: str
) -> None:
    home = os.environ["CTX_HOME"]
    node = added(container, "anna", "From a job.", "--tag", "project:shop")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CTX_HOME", f"{home}-of-ben")
        assert ctx("sync", "add", "team", postgres.url("ben", team)).code == 0
        ctx("add", "Ben was here.", "--tag", "project:shop")
        assert "received 3 records" in ctx("sync").out
        assert ctx("update", node, "--content", "From Ben.").code == 0
        assert ctx("sync").code == 0
        assert contents(container, "anna") == ["Ben was here.", "From Ben."]
        container("anna", "delete", node, "--yes")
        assert ctx("sync").code == 0
        listed = ctx("list", "--format", "json").json
        assert [each["content"] for each in listed["nodes"]] == ["Ben was here."]
        # Nobody waits for a container to confirm a scrub: only Ben's machine is left.
        (target,) = ctx("sync", "status", "--format", "json").json["targets"]
        assert len(target["machines"]) == 1


def test_a_node_moves_to_the_project_that_it_is_tagged_with(container: Container, sql: Sql) -> None:
    node = added(container, "anna", "A note.")
    assert contents(container, "ben") == []
    container("anna", "tag", node, "project:shop")
    assert contents(container, "ben") == ["A note."]
    # The whole history is in a batch of the project, for those who did not have it.
    shared = sql("ben", "SELECT kind FROM ctx.records WHERE project = 'shop' ORDER BY stamp, id")
    assert [kind for (kind,) in shared] == ["node.put", "tag.add", "tag.add"]
    container("ben", "tag", node, "seen")
    assert contents(container, "anna") == ["A note."]


def test_two_containers_change_one_node_at_once(
    postgres: PostgresServer, team: str, container: Container
) -> None:
    node = added(container, "anna", "A note.", "--tag", "project:shop")
    started = threading.Barrier(2)

    def write(person: str) -> None:
        with team_graph_store.open_graph(postgres.url(person, team)) as graph:
            started.wait(60)
            for number in range(8):
                with changing(graph, "tag", WHO) as change:
                    change.tag(node, f"{person}:{number}")

    threads = [threading.Thread(target=write, args=(person,)) for person in ("anna", "ben")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tags = container("anna", "show", node, "--format", "json").json["node"]["tags"]
    expected = {f"{person}:{number}" for person in ("anna", "ben") for number in range(8)}
    assert expected <= set(tags)


def test_an_export_is_the_same_from_both_engines(
    container: Container, ctx: Ctx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = added(container, "anna", "Ünïcode — 更新 — 100 %", "--tag", "a:b")
    two = added(
        container, "anna", "An older fact.", "--tag", "project:shop", "--meta", "path=src/a.py"
    )
    container("anna", "link", one, two, "--type", "SUPERSEDES")
    container("anna", "view", "create", "mine", "type:fact")
    first = container("anna", "export").out
    exported = tmp_path / "exported.json"
    exported.write_text(first)
    store = str(tmp_path / "store.db")
    assert ctx("--db", store, "import", str(exported)).code == 0
    assert _without_time(ctx("--db", store, "export").out) == _without_time(first)
    # The nodes of somebody else.
    refused = container("ben", "import", str(exported), code=1)
    assert "where you may not see it" in refused.err
    assert contents(container, "ben") == ["An older fact."]


def _without_time(text: str) -> object:
    document = json.loads(text)
    return {name: value for name, value in document.items() if name != "exported_at"}


def test_search_finds_nodes_that_an_older_version_wrote(container: Container, sql: Sql) -> None:
    sql("anna", "INSERT INTO ctx.subjects VALUES ('01KF0000000000000000000000', '', 'anna')")
    sql(
        "anna",
        "INSERT INTO ctx.nodes (project, owner, id, type, content, token_estimate, created_at,"
        " updated_at, metadata) VALUES ('', 'anna', '01KF0000000000000000000000', 'fact',"
        " 'Tokens expire after an hour', 5, '2026-01-01T00:00:00Z', '2026-01-01T00:00:00Z', '{}')",
    )
    found = container("anna", "search", "expire", "hour", "--format", "json").json
    assert "Tokens expire after an hour" in str(found)


def test_a_very_long_text_can_be_stored_and_found(
    postgres: PostgresServer, team: str, container: Container
) -> None:
    words = " ".join(f"word{number:x}" for number in range(60_000))
    with (
        team_graph_store.open_graph(postgres.url("anna", team)) as graph,
        changing(graph, "add", WHO) as change,
    ):
        node = change.add_node("source", f"beginning {words} {'x' * 5000}")
    found = container("anna", "search", "beginning", "wordff", "--format", "json").json
    assert node in str(found)


def test_a_misspelt_word_is_found(container: Container) -> None:
    node = added(container, "anna", "The scheduler restarts every night.")
    found = container("anna", "recall", "When does the schedular restart?", "--format", "json").json
    assert node in str(found)


def test_an_id_is_compared_byte_by_byte(postgres: PostgresServer, team: str) -> None:
    with closing(postgres.connect(database=team)) as connection:
        rows = connection.execute(
            "SELECT table_name, column_name FROM information_schema.columns"
            " WHERE table_schema = 'ctx_graph' AND collation_name IS DISTINCT FROM 'C' AND"
            " column_name IN ('id', 'node_id', 'from_id', 'to_id', 'tag', 'subject', 'created_at')"
            " AND table_name IN ('nodes', 'tags', 'edges', 'records')"
        ).fetchall()
    assert rows == [("tags", "created_at")]


def test_commands_about_this_machine_are_refused(container: Container) -> None:
    for line in (
        "sessions list", "context", "store check", "sync", "scrub words --yes", "ui", "doctor",
        "install", "import --transcripts",
    ):  # fmt: skip
        refused = container("anna", *line.split(), code=2)
        assert "This command needs a store on this machine, not a server." in refused.err


def test_problems_with_a_server_are_explained_without_the_password(
    ctx: Ctx, postgres: PostgresServer, database: str, tmp_path: Path, folder: Path
) -> None:
    assert folder.exists()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CTX_HOME", str(tmp_path / "home"))
        away = f"postgresql://anna:hunter2@127.0.0.1:1/{database}"
        nobody = postgres.url("nobody:hunter2", database)
        for address, code, expected in (
            (away, 1, "cannot be reached"),
            (nobody, 1, "cannot be reached"),
            ("postgresql://anna:hunter2@db.example.com/x?sslmode=disable", 2, "unencrypted"),
            ("postgresql:///x", 2, "has no host"),
            ("mysql://anna:hunter2@host/x", 2, "unknown kind of store"),
        ):
            for words in (("list",), ("add", "A note."), ("status",)):
                ran = ctx("--db", address, *words)
                assert ran.code == code
                assert expected in ran.err
                assert "hunter2" not in ran.out + ran.err
                assert "Traceback" not in ran.err


def test_a_cut_connection_loses_nothing(
    postgres: PostgresServer, team: str, container: Container
) -> None:
    node = added(container, "anna", "A note.")

    def tag_and_cut(graph: Graph) -> None:
        with changing(graph, "tag", WHO) as change:
            change.tag(node, "one")
            with postgres.connect() as administrator:
                administrator.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE usename = 'anna' AND application_name = 'ctx'"
                )

    with (
        team_graph_store.open_graph(postgres.url("anna", team)) as graph,
        pytest.raises(CtxError, match="cut"),
    ):
        tag_and_cut(graph)
    assert container("anna", "show", node, "--format", "json").json["node"]["tags"] == [
        "tier:reference"
    ]


def test_the_library_works_on_a_server(
    postgres: PostgresServer, team: str, folder: Path, tmp_path: Path, container: Container
) -> None:
    given = {"CTX_DB": postgres.url("anna", team), "CTX_HOME": str(tmp_path / "home")}
    with library.open_project(folder, environment=given) as project:
        project.observe_note("The cache is cold after a deploy.")
        project.flush_step()
        assert "The cache is cold" in repr(project.query("Why is the cache cold?").retrieved)
    found = container("anna", "search", "cache", "--format", "json").json
    assert "The cache is cold after a deploy." in str(found)


def test_the_tools_of_the_mcp_server_work_on_a_server(
    postgres: PostgresServer, team: str, folder: Path, tmp_path: Path, container: Container
) -> None:
    store = UserStore(str(tmp_path / "home"))
    address = postgres.url("anna", team)
    place = AgentPlace(
        Environment(
            str(folder), store, {}, (), session_id("agent-7"), address, in_agents_shell=True
        )
    )

    def call(name: str, **arguments: Any) -> Any:
        tool = TOOLS[name]
        return tool.answer(place, tool.parse(arguments), RunningCall()).data

    node = call("remember", text="The gateway answers 429", type="fact")["id"]
    assert [each["id"] for each in call("recall", query="gateway 429")["results"]] == [node]
    assert contents(container, "anna") == ["The gateway answers 429"]
    call("forget", ids=[node])
    assert "1" in container("anna", "review").out, "what all projects see, only the user deletes"


def test_a_server_with_older_tables(
    ctx: Ctx,
    postgres: PostgresServer,
    database: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Until an administrator updates them, members can sync. Then their nodes are found."""
    with closing(postgres.connect(database=database)) as administrator:
        team_schema.migrate(administrator, team_schema.MIGRATIONS[:1])
        with suppress(errors.DuplicateObject):
            administrator.execute("CREATE ROLE anna LOGIN IN ROLE ctx_member")
        address = postgres.url("anna", database)
        monkeypatch.setenv("CTX_HOME", str(tmp_path / "anna"))
        assert ctx("sync", "add", "team", address).code == 0
        ctx("add", "Tokens expire after an hour.")
        assert ctx("sync").code == 0
        refused = ctx("--db", address, "list")
        assert "The tables of the server are too old" in refused.err
        assert refused.code == 1
        team_schema.migrate(administrator, team_schema.MIGRATIONS[:2])
        ctx("add", "Sessions expire after a day.")
        assert ctx("sync").code == 0
        team_schema.migrate(administrator)
        assert ctx("--db", address, "add", "Pages expire never.").code == 0
        corpus = administrator.execute("SELECT nodes, words FROM ctx.word_totals").fetchall()
        counted = administrator.execute("SELECT count(*), sum(words) FROM ctx.words").fetchall()
    assert corpus == counted
    assert "Tokens expire" in ctx("--db", address, "search", "expire", "hour").out


def test_sql_cannot_change_a_node_of_another_project(container: Container, sql: Sql) -> None:
    node = added(container, "anna", "Two jams.", "--tag", "project:shop", "--tag", "tier:reference")
    sql("anna", "INSERT INTO ctx.projects (name) VALUES ('cellar')")
    tagging = (
        "INSERT INTO ctx.tags (project, owner, node_id, tag, created_at)"
        " VALUES ('cellar', '', %s, 'tier:off-context', '2026-01-20T10:00:00Z')"
    )
    replacing = (
        "INSERT INTO ctx.nodes (project, owner, id, type, content, token_estimate, created_at,"
        " updated_at, metadata) VALUES ('cellar', '', %s, 'fact', 'No jam.', 2,"
        " '2026-01-20T10:00:00Z', '2026-01-20T10:00:00Z', '{}')"
    )
    linking = (
        "INSERT INTO ctx.stored_edges (project, owner, id, from_id, to_id, type, created_at,"
        " metadata) VALUES ('cellar', '', 'e', %s, 'x', 'RELATES_TO', '2026-01-20T10:00:00Z', '{}')"
    )
    for statement in (tagging, replacing, linking):
        with pytest.raises(errors.ForeignKeyViolation):
            sql("anna", statement, node)
    composed = container("anna", "compose", "--query", "tag:tier:reference").out
    assert composed.count("Two jams.") == 1
