import io
import json
import os
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Add
from tests.conftest import Ctx
from tests.memory.foreign import databases
from tests.memory.foreign.databases import DECISION, FACT, OLDER

SECRET = "ghp_" + "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY1zA3"

Piped = Callable[[str], None]


@pytest.fixture
def piped(monkeypatch: pytest.MonkeyPatch) -> Piped:
    def pipe(text: str) -> None:
        data = text.encode("utf-8", "surrogatepass")
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    return pipe


def nodes(ctx: Ctx) -> dict[str, dict[str, Any]]:
    listed = ctx("list", "--limit=0", "--include-superseded", "--format=json").json["nodes"]
    return {node["id"]: node for node in listed}


def answer(ctx: Ctx, *words: str) -> dict[str, Any]:
    ran = ctx("import", *words, "--format", "json")
    assert ran.code == 0, ran.err
    found: dict[str, Any] = ran.json
    return found


NEW = {"unchanged": 0, "kept": 0, "left_out": 0, "tags": 0, "updated": 0}


# Our own documents


def test_a_backup_comes_back_from_stdin(ctx: Ctx, add: Add, piped: Piped, tmp_path: Path) -> None:
    one, two = add("--type=fact", "One"), add("--type=fact", "--tag=tier:pinned", "Two")
    ctx("link", one, two, "--type=DEPENDS_ON")
    whole = ctx("export").out
    piped(whole)
    other = ("--db", str(tmp_path / "other.db"))
    ran = ctx(*other, "import")
    assert ran.out == "Imported 2 nodes from ctx:\n  fact  2\n1 edge linked.\n"
    assert ctx(*other, "export").out == whole
    piped(whole)
    assert ctx(*other, "import").out == "Nothing new from ctx.\n2 nodes here already.\n"


def exported(ctx: Ctx, path: Path, **changes: Any) -> Path:
    """The graph as it is, with changes to its first node."""
    document = json.loads(ctx("export").out)
    document["nodes"][0].update(changes)
    path.write_text(json.dumps(document))
    return path


def test_what_differs_is_refused_as_a_whole(ctx: Ctx, add: Add, tmp_path: Path) -> None:
    add("--type=fact", "One")
    path = exported(ctx, tmp_path / "x.json", content="Other", summary="S")
    document = json.loads(path.read_text())
    document["nodes"].append({**document["nodes"][0], "id": FACT})
    path.write_text(json.dumps(document))
    before = ctx("export").out
    ran = ctx("import", str(path))
    assert ran.code == 1
    assert "error E024: 1 thing is here already, and different." in ran.err
    node_id = document["nodes"][0]["id"]
    assert f"node {node_id}: content, summary" in ran.err
    assert "With --merge, what is newer wins." in ran.err
    assert ctx("export").out == before


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"type": "task"}, "type"),
        ({"tags": ["a:b"]}, "tags"),
        ({"metadata": {"k": "v"}}, "metadata"),
        ({"content": "Other"}, "content"),
    ],
)
def test_every_field_counts(
    ctx: Ctx, add: Add, tmp_path: Path, changes: dict[str, Any], field: str
) -> None:
    add("--type=fact", "One")
    ran = ctx("import", str(exported(ctx, tmp_path / "x.json", **changes)))
    assert (ran.code, f": {field}\n" in ran.err) == (1, True)


def test_merging_takes_what_is_newer(ctx: Ctx, add: Add, tmp_path: Path) -> None:
    one = add("--type=fact", "--tag=here:only", "--meta", "k=v", "One")
    newer = exported(
        ctx,
        tmp_path / "newer.json",
        content="Newer",
        metadata={"m": 1},
        tags=["there:only"],
        updated_at="2999-01-01T00:00:00Z",
    )
    older = exported(
        ctx, tmp_path / "older.json", content="Older", updated_at="2000-01-01T00:00:00Z"
    )
    assert answer(ctx, "--merge", str(older))["kept"] == 1
    found = answer(ctx, "--merge", str(newer))
    assert (found["updated"], found["tags"]) == (1, 1)
    (node,) = nodes(ctx).values()
    assert node["content"] == "Newer"
    assert node["tags"] == ["here:only", "there:only"]
    assert node["metadata"] == {"m": 1}
    assert node["updated_at"] == "2999-01-01T00:00:00Z"
    again = answer(ctx, "--merge", str(newer))
    assert (again["unchanged"], again["change"]) == (1, None)
    ctx("undo")
    assert nodes(ctx)[node["id"]]["content"] == "One"
    assert ctx("untag", one, "here:only").code == 0


def test_what_was_taken_away_here_stays_away(ctx: Ctx, add: Add, tmp_path: Path) -> None:
    one = add("--type=fact", "--tag=a:b", "One")
    two = add("--type=fact", "Two")
    gone = add("--type=fact", "Gone")
    ctx("link", one, two, "--type=RELATES_TO")
    path = exported(ctx, tmp_path / "x.json")
    ctx("untag", one, "a:b")
    ctx("unlink", one, two)
    ctx("delete", gone, "-y")
    found = answer(ctx, "--merge", str(path))
    assert (found["tags"], found["edges"], found["added"], found["change"]) == (0, 0, {}, None)
    (skipped,) = found["skipped"]
    assert skipped["reason"].startswith("it was deleted here (`ctx restore ")
    assert ctx("restore", gone).code == 0
    assert answer(ctx, "--merge", str(path))["skipped"] == []


def test_an_import_that_was_undone_can_be_done_again(ctx: Ctx, tmp_path: Path) -> None:
    path = str(databases.go_store(tmp_path / "go.db"))
    first = answer(ctx, path)
    whole = ctx("export").out
    assert ctx("undo", first["change"]).code == 0
    assert nodes(ctx) == {}
    again = answer(ctx, path)
    assert again["added"] == first["added"]
    assert ctx("export").out == whole


def test_a_dry_run_changes_nothing(ctx: Ctx, tmp_path: Path) -> None:
    path = str(databases.go_store(tmp_path / "go.db"))
    before = ctx("export").out
    ran = ctx("import", path, "--dry-run")
    assert ran.out == (
        "Would import 3 nodes from ctx:\n  decision  2\n  fact      1\n"
        "2 edges linked, 1 view added.\n"
    )
    assert "Nothing was changed." in ran.err
    assert ctx("export").out == before
    assert answer(ctx, path)["added"] == {"decision": 2, "fact": 1}


def test_edges_without_an_end_and_ids_that_are_taken(ctx: Ctx, add: Add, tmp_path: Path) -> None:
    add("--type=fact", "One")
    add("--type=fact", "Two")
    document = json.loads(ctx("export").out)
    one, two = (node["id"] for node in document["nodes"])
    told = {"id": databases.EDGE, "created_at": databases.DAY, "metadata": {}}
    edges = [
        {**told, "from_id": one, "to_id": two, "type": "DEPENDS_ON"},
        {**told, "id": FACT, "from_id": one, "to_id": DECISION, "type": "DEPENDS_ON"},
        {**told, "id": OLDER, "from_id": one, "to_id": one, "type": "DEPENDS_ON"},
    ]
    path = tmp_path / "x.json"
    path.write_text(json.dumps({**document, "edges": edges}))
    found = answer(ctx, str(path))
    assert found["edges"] == 1
    assert [item["reason"] for item in found["skipped"]] == [
        f"{DECISION} is not here",
        "it leads to where it begins",
    ]
    # The same id for another edge: it comes under a new one.
    edges = [{**told, "from_id": two, "to_id": one, "type": "DEPENDS_ON"}]
    path.write_text(json.dumps({**document, "edges": edges}))
    assert answer(ctx, str(path))["edges"] == 1
    assert len({edge["id"] for edge in json.loads(ctx("export").out)["edges"]}) == 2


def test_views_come_too(ctx: Ctx, tmp_path: Path) -> None:
    ctx("view", "create", "mine", "--query=type:fact")
    ctx("view", "update", "default", "--budget=80000")
    path = exported_views(ctx, tmp_path)
    other = ("--db", str(tmp_path / "other.db"))
    assert ctx(*other, "import", path).out.endswith("2 views added.\n")
    assert ctx(*other, "export").out == ctx("export").out
    ctx("view", "update", "mine", "--query=type:task")
    ran = ctx("import", path)
    assert (ran.code, "view mine: type:task" in ran.err) == (1, True)
    assert answer(ctx, path, "--merge")["views"] == 0


def exported_views(ctx: Ctx, folder: Path) -> str:
    path = folder / "views.json"
    path.write_text(ctx("export").out)
    return str(path)


# Other programs


def test_a_store_of_the_go_program(ctx: Ctx, tmp_path: Path) -> None:
    path = str(databases.go_store(tmp_path / "go.db"))
    assert answer(ctx, "--from", "ctx", path)["programs"] == ["ctx"]
    found = nodes(ctx)
    assert found[OLDER]["superseded_by"] == DECISION
    assert found[DECISION]["metadata"] == {"rationale": "no servers", "confidence": 0.9}
    document = json.loads(ctx("export").out)
    assert [view["name"] for view in document["views"]] == ["default", "facts"]
    assert document["edges"][0]["id"] == databases.EDGE
    # What changed there comes, and what changed here stays.
    ctx("update", FACT, "--content=Changed here")
    databases.go_node(tmp_path / "go.db", "01HM5Q0000EEEEEEEEEEEEEEEE", "New there")
    again = answer(ctx, path)
    assert {**again, "skipped": ()} == {
        **again,
        **NEW,
        "skipped": (),
        "added": {"fact": 1},
        "unchanged": 3,
    }
    assert nodes(ctx)[FACT]["content"] == "Changed here"


def test_claude_mem_from_its_usual_place(ctx: Ctx, surroundings: Path) -> None:
    databases.claude_mem(surroundings / ".claude-mem" / "claude-mem.db")
    ran = ctx("import", "--from", "claude-mem")
    assert ran.out == (
        "Imported 3 nodes from claude-mem:\n  observation  2\n  summary      1\n2 edges linked.\n"
        "Skipped 1:\n"
        "  user prompts: 1  raw prompts are not knowledge (--with-prompts imports them)\n"
    )
    assert "ctx list --tag=source:claude-mem" in ran.err
    listed = ctx("list", "--tag=source:claude-mem", "--format=json").json["nodes"]
    assert len(listed) == 3
    assert not [tag for node in listed for tag in node["tags"] if tag.startswith("tier:")]
    assert ctx("import", "--from", "claude-mem").out.startswith("Nothing new from claude-mem.\n")
    prompts = answer(ctx, "--from", "claude-mem", "--with-prompts")
    assert (prompts["added"], prompts["unchanged"]) == ({"source": 1}, 3)


def test_claude_mem_by_project_and_time(ctx: Ctx, tmp_path: Path) -> None:
    path = databases.claude_mem(tmp_path / "claude-mem.db")
    databases.observation(path, "own-session", 5, project="other")
    databases.observation(path, "own-session", 10**7)
    some = answer(ctx, str(path), "--project=other", "--dry-run")
    assert (some["added"], some["left_out"], some["edges"]) == ({"observation": 1}, 4, 0)
    late = answer(ctx, str(path), "--since=2024-05-01")
    assert (late["added"], late["left_out"]) == ({"observation": 1}, 4)
    rest = answer(ctx, str(path), "--since=2024-01-01")
    assert (rest["added"], rest["unchanged"], rest["edges"]) == (
        {"observation": 3, "summary": 1},
        1,
        4,
    )


def test_claude_code_from_its_usual_places(
    ctx: Ctx, folder: Path, surroundings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(surroundings / "elsewhere"))
    (surroundings / "elsewhere").mkdir()
    (surroundings / "elsewhere" / "CLAUDE.md").write_text("Be brief.")
    page = folder / "CLAUDE.md"
    page.write_text("# Commands\nmake test\n\n# Rules\n- no mocks\n")
    os.utime(page, (1000, 1000))
    assert answer(ctx, "--from", "claude-code")["added"] == {"fact": 2, "pattern": 1}
    rules = next(id for id, node in nodes(ctx).items() if node["type"] == "pattern")
    ctx("update", rules, "--content=Changed here")
    # The page changes elsewhere: what a person made of its rules here stays.
    page.write_text("# New\nx\n\n# Commands\nmake check\n\n# Rules\n- no mocks\n")
    os.utime(page, (2000, 2000))
    again = answer(ctx, "--from", "claude-code")
    assert (again["added"], again["updated"]) == ({"fact": 1}, 1)
    contents = {node["content"] for node in nodes(ctx).values()}
    assert contents == {"Be brief.", "New\n\nx", "Commands\n\nmake check", "Changed here"}
    assert answer(ctx, "--from", "claude-code")["change"] is None


def test_lines_of_json(ctx: Ctx, piped: Piped) -> None:
    lines = '{"content": "One"}\nnonsense\n{"content": "Two", "tags": ["project:x"]}\n'
    piped(lines)
    ran = ctx("import", "--from", "jsonl", "--project", "shop")
    assert ran.out == (
        "Imported 1 node from jsonl:\n  fact  1\n1 node left out by --since or --project.\n"
        "Skipped 1:\n  line 2  it is not a JSON object\n"
    )
    (node,) = nodes(ctx).values()
    assert node["tags"] == ["project:shop"]
    piped('{"id": "7", "content": "First"}')
    answer(ctx)
    piped('{"id": "7", "content": "Second"}')
    assert answer(ctx)["updated"] == 1


def test_what_a_file_is_is_found_out(ctx: Ctx, folder: Path) -> None:
    (folder / "a.jsonl").write_text('{"content": "A line"}\n')
    (folder / "notes.md").write_text("# Style\nTabs.\n")
    (folder / "whole.json").write_text(ctx("export").out)
    databases.go_store(folder / "go.db")
    databases.claude_mem(folder / "mem.db")
    names = ["a.jsonl", "notes.md", "whole.json", "go.db", "mem.db"]
    found = answer(ctx, *names)
    assert found["programs"] == ["jsonl", "ctx", "claude-mem", "claude-code"]
    assert sum(found["added"].values()) == 8
    assert ctx("undo").code == 0
    assert nodes(ctx) == {}


def test_what_cannot_be_imported(ctx: Ctx, add: Add, folder: Path, surroundings: Path) -> None:
    add("--type=fact", "One")
    (folder / "x.txt").write_text("hello")
    (folder / "empty.json").write_text("")
    (folder / "bad.json").write_text('{"format": "ctx-graph",\n"nodes": [}')
    (folder / "other.db").write_bytes(
        databases.make(folder / "y.db", "CREATE TABLE t(x)").read_bytes()
    )
    os.mkfifo(folder / "pipe")
    for name, message in {
        "x.txt": "x.txt is none of the files that can be imported.",
        "empty.json": "empty.json is none of the files that can be imported.",
        "bad.json": "This is not JSON: Expecting value in line 2, column 11.",
        "other.db": "other.db is a database that cannot be imported.",
        "pipe": "pipe is not a plain file.",
        "missing": "missing does not exist.",
        str(surroundings / ".ctx" / "store.db"): "store.db is a store of ctx itself.",
    }.items():
        ran = ctx("import", name)
        assert ran.code > 0, name
        assert message in ran.err
    assert ctx("import", "--from", "ctx", "x.txt").code > 0
    assert ctx("import", "--from", "claude-mem", "y.db").code == 1
    assert len(nodes(ctx)) == 1


def test_secrets_and_characters_that_no_text_may_hold(ctx: Ctx, piped: Piped) -> None:
    lines = [
        {"content": f"the token {SECRET}", "metadata": {"password": "hunter2-Xk9"}},
        {"content": "a\0b\ud800c", "tags": [SECRET]},
    ]
    piped("\n".join(map(json.dumps, lines)))
    ran = ctx("import", "--from", "jsonl")
    assert "warning: 2 secrets not kept: github-token, " in ran.err
    assert "warning: 2 characters that no text may hold: replaced by U+FFFD." in ran.err
    whole = ctx("export").out
    assert "a\ufffdb\ufffdc" in whole
    assert SECRET not in whole
    assert "hunter2" not in whole
    piped("\n".join(map(json.dumps, lines)))
    again = ctx("import", "--from", "jsonl")
    assert again.out.startswith("Nothing new from jsonl.\n2 nodes here already.\n")


def test_only_the_first_skipped_items_are_shown(ctx: Ctx, piped: Piped) -> None:
    piped("x\n" * 25)
    ran = ctx("import", "--from", "jsonl")
    assert "Skipped 25:" in ran.out
    assert "  … and 5 more\n" in ran.out
    piped("x\n" * 25)
    assert len(answer(ctx, "--from", "jsonl")["skipped"]) == 25


def test_a_large_source_is_one_change(ctx: Ctx, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f'{{"content": "{n}", "tags": ["a:b"]}}\n' for n in range(1500)))
    found = answer(ctx, str(path))
    assert found["added"] == {"fact": 1500}
    changes = ctx("undo", "--list", "--format=json").json["changes"]
    assert [change["action"] for change in changes] == ["import"]
    ctx("undo")
    assert nodes(ctx) == {}


def test_what_is_too_large_is_left_out(
    ctx: Ctx, piped: Piped, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ctx.memory.model.LARGEST_CONTENT", 1000)
    piped(json.dumps({"content": "x" * 1001}) + '\n{"content": "small"}')
    found = answer(ctx)
    assert found["added"] == {"fact": 1}
    assert [item["reason"] for item in found["skipped"]] == [
        "the content has 1,001 characters, and 1,000 are the most"
    ]


def test_metadata_that_goes_deep(ctx: Ctx, piped: Piped) -> None:
    deep = "[" * 900 + "]" * 900
    piped(f'{{"content": "x", "metadata": {{"deep": {deep}}}}}')
    assert answer(ctx)["added"] == {"fact": 1}
    assert ctx("export").code == 0


def test_a_source_that_breaks_off_brings_nothing(ctx: Ctx, tmp_path: Path) -> None:
    path = databases.go_store(tmp_path / "go.db")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE nodes SET content = hex(zeroblob(100000))")
    data = bytearray(path.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 8192] = b"\xff" * 8192
    path.write_bytes(data)
    ran = ctx("import", str(path))
    assert ran.code == 1
    assert "go.db cannot be read to its end" in ran.err
    assert "Nothing was imported." in ran.err
    assert nodes(ctx) == {}


def test_a_store_of_the_go_program_in_our_own_place(ctx: Ctx, surroundings: Path) -> None:
    databases.go_store(surroundings / ".ctx" / "store.db")
    ran = ctx("import", "--from", "ctx")
    assert (ran.code, ran.out) == (0, "Nothing new.\n")
    assert "Took over 3 nodes and 2 edges" in ran.err
    assert set(nodes(ctx)) == {FACT, DECISION, OLDER}
    assert "is a store of ctx itself" in ctx("import", "--from", "ctx").err
