"""In a project, what is in the project store and what is yours are read as one, and told apart."""

import os
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cli.conftest import Add, ageless
from tests.conftest import Ctx


class Nodes(NamedTuple):
    kept: str
    staged: str
    mine: str


@pytest.fixture
def nodes(folder: Path, ctx: Ctx, add: Add) -> Nodes:
    ctx("init")
    kept = add("--type=fact", "--tag=x:a", "Deploys run on Mondays")
    ctx("commit", "-m", "One")
    staged = add("--type=fact", "--tag=x:b", "Deploys run at noon")
    mine = add("--type=fact", "--tag=x:a", "--user", "Deploys bore me")
    return Nodes(kept, staged, mine)


def test_lists_say_what_is_not_simply_the_projects(nodes: Nodes, ctx: Ctx) -> None:
    every = f"""\
  {nodes.mine}  fact  0 s  user    Deploys bore me         x:a
  {nodes.staged}  fact  0 s  staged  Deploys run at noon     x:b
  {nodes.kept}  fact  0 s          Deploys run on Mondays  x:a
"""
    assert ageless(ctx("list").out) == every
    assert ageless(ctx("query", "type:fact").out) == every
    lines = ctx("recall", "deploys", "--only=nodes").out.splitlines()
    assert {line.split()[0]: line.partition("(")[2] for line in lines} == {
        nodes.kept: "",
        nodes.staged: "staged)",
        nodes.mine: "user)",
    }
    mine = f"  {nodes.mine}  fact  0 s  Deploys bore me  x:a\n"
    assert ageless(ctx("list", "--user").out) == mine
    assert ctx("tags").out == "  x:a  2  1 user\n  x:b  1\n"
    assert ctx("tags", "--user").out == "  x:a  1\n"
    status = ctx("status", "--format", "json").json
    assert (status["nodes"], status["scopes"]) == (
        3,
        [
            {"scope": "project", "nodes": 2, "staged": 1},
            {"scope": "user", "nodes": 1, "staged": 0},
        ],
    )
    assert "\nOf these: 2 the project's (1 staged), 1 yours\n" in ctx("status").out
    ctx("commit", "-m", "Two")
    assert "staged" not in ctx("list", "--project").out


def test_one_store_can_be_searched_alone(nodes: Nodes, ctx: Ctx, tmp_path: Path) -> None:
    mine, ours = [(nodes.mine, "user")], [(nodes.kept, "project"), (nodes.staged, "project")]
    for words in (["list"], ["search", "deploys"], ["query", "type:fact"], ["recall", "deploys"]):
        for chosen, found, scopes in (
            ([], sorted([*mine, *ours]), ["project", "user"]),
            (["--user"], mine, ["user"]),
            (["--project"], ours, ["project"]),
        ):
            answer = ctx(*words, *chosen, "--format", "json").json
            assert sorted((node["id"][:12], node["scope"]) for node in answer["nodes"]) == found
            assert answer["scopes"] == scopes
    project = ["Deploys run on Mondays", "Deploys run at noon"]
    for chosen, contents in (
        ([], project),
        (["--project"], project),
        (["--user"], ["Deploys bore me"]),
    ):
        assert [node["content"] for node in ctx("export", *chosen).json["nodes"]] == contents
    for words in (["list", "--project"], ["recall", "x", "--project"]):
        ran = ctx("-C", str(tmp_path), *words)
        assert (ran.code, ran.err.partition(":")[0]) == (1, "error E012")


def test_views_are_made_in_one_store(nodes: Nodes, ctx: Ctx) -> None:
    assert ctx("view", "create", "facts", "--query=type:fact", "--format=json").json["scope"] == (
        "project"
    )
    made = ctx("view", "create", "facts", "--query=x", "--user", "--format=json").json
    assert (made["scope"], made["view"]["query"]) == ("user", "x")
    listed = ctx("view", "list", "--format=json").json
    assert listed["scopes"] == {"default": "user", "facts": "project"}
    ctx("view", "delete", "facts", "--user")
    assert ctx("view", "list", "--format=json").json["views"][1]["query"] == "type:fact"


def test_an_import_goes_where_it_belongs(nodes: Nodes, ctx: Ctx, folder: Path) -> None:
    (folder / "notes.jsonl").write_text('{"content": "From elsewhere", "type": "fact"}\n')
    mine = ctx("import", "notes.jsonl", "--format", "json").json
    assert (mine["scope"], mine["added"]) == ("user", {"fact": 1})
    told = ctx("import", "notes.jsonl", "--project")
    assert told.out == "Imported 1 node from jsonl into the project:\n  fact  1\n"

    ctx("export", "-o", "out.json", "--user")
    ours = ctx("import", "out.json", "--format", "json").json
    assert ours["scope"] == "project"
    # What was taken in is staged: no index is needed to find it again.
    before = ctx("list", "--project", "--format", "json").out
    ctx("rebuild", "--full")
    assert ctx("list", "--project", "--format", "json").out == before
    ctx("undo", ours["change"])
    assert len(ctx("list", "--project", "--format", "json").json["nodes"]) == 3


def test_no_path_of_this_machine_travels_with_a_project(
    nodes: Nodes, ctx: Ctx, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "docs").mkdir()
    (folder / "docs" / "api.md").write_text("The API speaks OAuth 2.0\n")
    (tmp_path / "mine.md").write_text("Notes of mine\n")
    monkeypatch.chdir(folder / "docs")
    ran = ctx("ingest", "api.md", "../../mine.md")
    assert ran.err == "1 file is outside this project: added to your own store.\n"
    found = ctx("list", "--type=source", "--format", "json").json["nodes"]
    assert [(node["scope"], node["metadata"]["path"]) for node in found] == [
        ("user", str(tmp_path / "mine.md")),
        ("project", "docs/api.md"),
    ]
    again = ctx("ingest", str(folder / "docs" / "api.md"), "--format", "json").json["files"]
    assert [(file["path"], file["state"]) for file in again] == [("docs/api.md", "unchanged")]
    ctx("undo")
    assert ctx("list", "--type=source").out == "No nodes.\n"


def test_what_one_command_does_in_both_stores_is_one_change(ctx: Ctx, project: Path) -> None:
    ours = ctx("add", "--no-tier", "--type=fact", "Ours", "--format=json").json["node"]["id"]
    mine = ctx("add", "--no-tier", "--user", "--type=fact", "Mine", "--format=json").json["node"][
        "id"
    ]

    def tagged() -> list[list[str]]:
        return [ctx("show", each, "--format=json").json["node"]["tags"] for each in (ours, mine)]

    assert ctx("pin", ours, mine).code == 0
    assert tagged() == [["tier:pinned"], ["tier:pinned"]]
    assert ctx("undo").code == 0
    assert tagged() == [[], []]
    assert ctx("delete", ours, mine, "--yes").code == 0
    assert ctx("list").out == "No nodes.\n"
    assert ctx("undo").code == 0
    assert {node["id"] for node in ctx("list", "--format=json").json["nodes"]} == {ours, mine}


def test_what_is_at_rest_can_be_superseded(project: Path, ctx: Ctx) -> None:
    old = ctx("add", "--no-tier", "Deploy on Fridays", "--format=json").json["node"]["id"]
    for document in (project / ".ctx" / "narrative").rglob("*.md"):
        os.utime(document, (1_000_000_000, 1_000_000_000))
    # It brings the index up to date; the next command opens it for reading first.
    assert ctx("list").code == 0
    assert ctx("add", "--no-tier", "Deploy on Mondays", f"--supersedes={old}").code == 0
    assert "Fridays" not in ctx("list").out


def test_a_history_names_commits_and_documents(nodes: Nodes, ctx: Ctx, folder: Path) -> None:
    commit = ctx("log", "--format", "json").json["commits"][0]["commit"]
    ctx("update", nodes.kept, "--content", "Deploys run on Tuesdays", "--session", "other")
    history = ctx("show", nodes.kept, "--history", "--format", "json").json["history"]
    assert [(each["kind"], each["commit"], each["staged"]) for each in history] == [
        ("node.put", commit, None),
        ("tag.add", commit, None),
        ("node.put", None, "other"),
    ]
    lines = [
        line.split() for line in ageless(ctx("show", nodes.kept, "--history").out).splitlines()
    ]
    assert lines[-3][2:4] == ["add", commit[:12]]
    assert lines[-2][2:6] == ["add", commit[:12], "+", "x:a"]
    assert lines[-1][2:6] == ["update", "staged", "in", "other"]
    assert ["staged", "in", "other"] in lines
    assert "  store    user" in ctx("show", nodes.mine, "--history").out.splitlines()
    path = folder / ".ctx" / "narrative" / "decisions" / "0001-jitter-ab12.md"
    path.parent.mkdir()
    path.write_text("# Use jitter\n")
    [node] = ctx("list", "--type=decision", "--format", "json").json["nodes"]
    history = ctx("show", node["id"], "--history", "--format", "json").json["history"]
    assert {each["document"] for each in history} == {"narrative/decisions/0001-jitter-ab12.md"}


def test_reading_commands_see_this_project_and_what_is_in_none(
    repo: Path, ctx: Ctx, add: Add, tmp_path: Path
) -> None:
    theirs = add("--type=fact", "--tag=project:shop", "A token of theirs")
    mine = add("--type=fact", "A token of mine")
    everybodys = add("--type=fact", "--user", "A token of everybody's")

    def found(*words: str) -> list[str]:
        return sorted(node["id"][:12] for node in ctx(*words, "--json").json["nodes"])

    every = sorted([theirs, mine, everybodys])
    recall = ["recall", "token", "--only=nodes"]
    for words in (["list"], ["search", "token"], ["query", "type:fact"], recall):
        assert found(*words) == sorted([mine, everybodys])
        assert ctx(*words).err.count("1 more in other projects: --all-projects\n") == 1
        assert found(*words, "--all-projects") == every
        assert found(*words, "--project") == [mine]
        assert found("-C", str(tmp_path), *words) == every
    for words in (
        ["list", "--tag=project:shop"],
        ["search", "token", "--tag=project:shop"],
        ["query", "tag:project:shop"],
        ["recall", "token project:shop", "--only=nodes"],
    ):
        assert found(*words) == [theirs]
    assert [node["id"][:12] for node in ctx("export").json["nodes"]] == every
    assert ctx("status", "--json").json["nodes"] == 3
    assert "project:shop" in ctx("tags").out
    assert ctx("show", theirs).code == 0
    # Some of nearly all nodes are counted without reading them.
    add("--type=fact", "--tag=project:shop", "--tag=project:app", "Of both")
    add("--type=fact", f"--supersedes={theirs}", "--tag=project:shop", "Of theirs, newer")
    add("--type=file", "--tag=project:shop", "an/anchor")
    for limit in ("1", "0"):
        for words, numbers in ((["--type=fact"], (3, 1)), ([], (3, 1)), (["--anchors"], (3, 2))):
            listed = ctx("list", "-n", limit, *words, "--json").json
            assert (listed["total"], listed["other_projects"]) == numbers
        listed = ctx("list", "-n", limit, "--include-superseded", "--json").json
        assert (listed["total"], listed["other_projects"]) == (3, 2)
