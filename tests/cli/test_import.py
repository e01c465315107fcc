import json
import os
import shlex
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Add, Piped
from tests.conftest import Ctx
from tests.exchange.foreign import databases
from tests.exchange.foreign.databases import DECISION, FACT, OLDER
from tests.files import write

SECRET = "ghp_" + "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY1zA3"


def nodes(ctx: Ctx) -> dict[str, dict[str, Any]]:
    listed = ctx("list", "--limit=0", "--include-superseded", "--format=json").json["nodes"]
    return {node["id"]: node for node in listed}


def answer(ctx: Ctx, *words: str) -> dict[str, Any]:
    ran = ctx("import", *words, "--format", "json")
    assert ran.code == 0, ran.err
    found: dict[str, Any] = ran.json
    return found


# Our own documents


def test_a_backup_comes_back_from_stdin(ctx: Ctx, add: Add, piped: Piped, tmp_path: Path) -> None:
    one, two = add("--type=fact", "One"), add("--type=fact", "--tag=tier:pinned", "Two")
    ctx("link", one, two, "--type=DEPENDS_ON")
    whole = ctx("export").out
    piped(whole.encode())
    other = ("--db", str(tmp_path / "other.db"))
    ran = ctx(*other, "import")
    assert ran.out == "Imported 2 nodes from ctx:\n  fact  2\n1 edge linked.\n"
    assert ctx(*other, "export").out == whole
    piped(whole.encode())
    assert ctx(*other, "import").out == "Nothing new from ctx.\n2 nodes already here.\n"


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
    assert "error E024: 1 item already exists with different content." in ran.err
    node_id = document["nodes"][0]["id"]
    assert f"node {node_id}: content, summary" in ran.err
    assert "With --merge, the newer version wins." in ran.err
    for field, value in {"type": "task", "tags": ["a:b"], "metadata": {"k": "v"}}.items():
        ran = ctx("import", str(exported(ctx, path, **{field: value})))
        assert (ran.code, f": {field}\n" in ran.err) == (1, True)
    assert ctx("export").out == before


def test_a_dry_run_changes_nothing_and_an_undone_import_can_be_repeated(
    ctx: Ctx, tmp_path: Path
) -> None:
    path = str(databases.go_store(tmp_path / "go.db"))
    before = ctx("export").out
    ran = ctx("import", path, "--dry-run")
    assert ran.out == (
        "Would import 3 nodes from ctx:\n  decision  2\n  fact      1\n"
        "2 edges would be linked, 1 view would be added.\n"
        "The new nodes:\n"
        "  fact      Single binaries are preferred  project:viberent tier:reference\n"
        "  decision  SQLite\n"
        "  decision  We use files\n"
    )
    assert "Nothing changed." in ran.err
    assert ctx("export").out == before
    first = answer(ctx, path)
    assert first["added"] == {"decision": 2, "fact": 1}
    whole = ctx("export").out
    assert ctx("undo", first["change"]).code == 0
    assert nodes(ctx) == {}
    again = answer(ctx, "--from", "ctx", path)
    assert (again["added"], again["programs"]) == (first["added"], ["ctx"])
    assert ctx("export").out == whole
    # What changed there comes, and what changed here stays.
    ctx("update", FACT, "--content=Changed here")
    databases.go_node(tmp_path / "go.db", "01HM5Q0000EEEEEEEEEEEEEEEE", "New there")
    again = answer(ctx, path)
    unchanged = {"unchanged": 3, "kept": 0, "left_out": 0, "tags": 0, "updated": 0}
    assert again == again | unchanged | {"added": {"fact": 1}}
    assert nodes(ctx)[FACT]["content"] == "Changed here"
    assert nodes(ctx)[OLDER]["superseded_by"] == DECISION


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


def test_a_dry_run_leaves_no_store(ctx: Ctx, folder: Path, surroundings: Path) -> None:
    (folder / "a.jsonl").write_text('{"content": "x"}\n' * 2)
    (folder / "b.jsonl").write_text(
        "".join(f'{{"content": "{number} {"word " * 30}"}}\n' for number in range(1001))
    )
    found = answer(ctx, "a.jsonl", "--dry-run")
    assert found["new"] == [{"type": "fact", "preview": "x", "tags": []}]
    assert len(answer(ctx, "b.jsonl", "--dry-run")["new"]) == 1000
    told = ctx("--db", "new.db", "import", "b.jsonl", "--dry-run").out.splitlines()
    assert told[:3] == ["Would import 1,001 nodes from jsonl:", "  fact  1,001", "The first 20:"]
    assert len(told) == 23
    assert told[3] == "  fact  0 " + "word " * 18 + "word wo…"
    assert {item.name for item in folder.iterdir()} == {"a.jsonl", "b.jsonl"}
    assert not (surroundings / ".ctx").exists()


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
        "it links a node to itself",
    ]
    # The same id for another edge: it comes under a new one.
    edges = [{**told, "from_id": two, "to_id": one, "type": "DEPENDS_ON"}]
    path.write_text(json.dumps({**document, "edges": edges}))
    assert answer(ctx, str(path))["edges"] == 1
    assert len({edge["id"] for edge in json.loads(ctx("export").out)["edges"]}) == 2


def test_views_come_too(ctx: Ctx, tmp_path: Path) -> None:
    ctx("view", "create", "mine", "--query=type:fact")
    ctx("view", "update", "default", "--budget=80000")
    path = tmp_path / "views.json"
    path.write_text(ctx("export").out)
    other = ("--db", str(tmp_path / "other.db"))
    assert ctx(*other, "import", str(path)).out.endswith("2 views added.\n")
    assert ctx(*other, "export").out == path.read_text()
    ctx("view", "update", "mine", "--query=type:task")
    ran = ctx("import", str(path))
    assert (ran.code, "view mine: type:task" in ran.err) == (1, True)
    assert answer(ctx, str(path), "--merge")["views"] == 0


def test_views_that_no_command_would_make(ctx: Ctx, tmp_path: Path) -> None:
    reasons = {
        ("bad name", "type:fact", None): "'bad name' cannot name a view",
        ("bad", "type:nonsense", None): "there is no node type 'nonsense'",
        ("small", "type:fact", 99): "a view cannot have a budget of 99 tokens",
        ("default", "type:fact", 10_000_001): "a view cannot have a budget of 10,000,001 tokens",
        ("good", "type:fact", 100): None,
    }
    views = [
        dict(zip(("name", "query", "budget"), view, strict=True))
        | {"created_at": databases.DAY, "updated_at": databases.DAY}
        for view in reasons
    ]
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"format": "ctx-graph", "version": 1, "views": views}))
    found = answer(ctx, str(path))
    assert found["views"] == 1
    assert {item["what"]: item["reason"] for item in found["skipped"]} == {
        f"view {name}": reason for (name, _, _), reason in reasons.items() if reason
    }
    names = [view["name"] for view in ctx("view", "list", "--format=json").json["views"]]
    assert names == ["default", "good"]
    go = databases.go_store(tmp_path / "go.db")
    databases.insert(go, "views", name="x", query="((", created_at="", updated_at="")
    assert [each["what"] for each in answer(ctx, str(go))["skipped"]] == ["view x"]


# Other programs


def test_claude_mem_from_its_usual_place(ctx: Ctx, surroundings: Path) -> None:
    path = databases.claude_mem(surroundings / ".claude-mem" / "claude-mem.db")
    databases.observation(path, "own-session", 5, project="other")
    databases.observation(path, "own-session", 10**7)
    some = answer(ctx, "--from", "claude-mem", "--project-name=other", "--dry-run")
    assert (some["added"], some["left_out"], some["edges"]) == ({"observation": 1}, 4, 0)
    late = answer(ctx, "--from", "claude-mem", "--since=2024-05-01")
    assert (late["added"], late["left_out"]) == ({"observation": 1}, 4)
    ran = ctx("import", "--from", "claude-mem")
    assert ran.out == (
        "Imported 4 nodes from claude-mem:\n  observation  3\n  summary      1\n4 edges linked.\n"
        "1 node already here.\nSkipped 1:\n"
        "  user prompts: 1  raw prompts are not knowledge (--with-prompts imports them)\n"
    )
    assert "ctx list --tag=source:claude-mem" in ran.err
    listed = ctx("list", "--tag=source:claude-mem", "--format=json").json["nodes"]
    assert len(listed) == 5
    assert not [tag for node in listed for tag in node["tags"] if tag.startswith("tier:")]
    assert ctx("import", "--from", "claude-mem").out.startswith("Nothing new from claude-mem.\n")
    prompts = answer(ctx, "--from", "claude-mem", "--with-prompts")
    assert (prompts["added"], prompts["unchanged"]) == ({"source": 1}, 5)


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


def contents(ctx: Ctx, *words: str) -> list[str]:
    return [node["content"] for node in ctx("list", "--format=json", *words).json["nodes"]]


def test_what_a_page_says_no_more_is_archived(ctx: Ctx, folder: Path) -> None:
    page = folder / "CLAUDE.md"

    def write(text: str, at: int) -> None:
        page.write_text(text)
        os.utime(page, (at, at))

    write("# One\na\n# Two\nb\n# Three\nc\n", 1000)
    answer(ctx, "--from", "claude-code")
    by_content = {node["content"]: id for id, node in nodes(ctx).items()}
    ctx("tag", by_content["Three\n\nc"], "tier:working")
    ctx("add", "--type=fact", "--tag=tier:reference", f"--meta=path={page}", "Not of the page")
    write("# One\nchanged\n", 2000)
    dry = ctx("import", "--from", "claude-code", "--dry-run")
    assert dry.out == (
        "Would change existing nodes, from claude-code:\n1 node would be updated.\n"
        "2 sections are no longer in their files: would be archived.\n"
    )
    # What is left out is not looked at.
    assert answer(ctx, "--from", "claude-code", "--since=1d")["archived"] == 0
    ran = ctx("import", "--from", "claude-code")
    assert ran.out == (
        "Changed existing nodes, from claude-code:\n1 node updated.\n"
        "2 sections are no longer in their files: archived.\n"
    )
    assert set(contents(ctx, "--tag=tier:off-context")) == {"Two\n\nb", "Three\n\nc"}
    assert answer(ctx, "--from", "claude-code")["change"] is None
    # A person wants one of them all the same, and the page says the other again.
    ctx("tag", by_content["Three\n\nc"], "tier:reference")
    assert answer(ctx, "--from", "claude-code")["change"] is None
    write("# One\nchanged\n# Two\nb\n", 3000)
    assert answer(ctx, "--from", "claude-code")["tags"] == 1
    assert nodes(ctx)[by_content["Two\n\nb"]]["tags"] == [
        "project:app",
        "source:claude-code",
        "tier:reference",
    ]
    write("# One\nchanged\n", 4000)
    change = answer(ctx, "--from", "claude-code")["change"]
    assert contents(ctx, "--tag=tier:off-context") == ["Two\n\nb"]
    assert ctx("undo", change).code == 0
    assert contents(ctx, "--tag=tier:off-context") == []


def test_very_large_numbers_and_deep_metadata(ctx: Ctx, piped: Piped) -> None:
    digits = "9" * 4000
    deep = "[" * 900 + "]" * 900
    piped(
        (
            f'{{"content": "Large", "n": {digits}, "path": {digits}}}\n'
            f'{{"content": "Too large", "n": {digits}{digits}}}\n'
            f'{{"content": "Deep", "type": "note", "metadata": {{"deep": {deep}}}}}\n'
        ).encode()
    )
    found = answer(ctx, "--from", "jsonl")
    assert sum(found["added"].values()) == 2
    assert [each["what"] for each in found["skipped"]] == ["line 2"]
    kept = {node["content"]: node["metadata"] for node in nodes(ctx).values()}
    assert str(kept["Large"]["n"]) == digits
    assert ctx("store", "check").code == ctx("export").code == 0


def test_the_position_of_a_secret_is_reported(ctx: Ctx, folder: Path) -> None:
    # The name of its folder is not UTF-8.
    inner = folder / os.fsdecode(b"caf\xe9")
    inner.mkdir()
    page = inner / "CLAUDE.md"
    for number, secret in ((1, SECRET), (2, SECRET.swapcase().replace("GHP_", "ghp_"))):
        page.write_text(f"# Host\nexample.org\n\n# Key\n\nUse this:\n{secret}\n")
        os.utime(page, (number * 1000, number * 1000))
        ran = ctx("import", str(folder))
        told = "CLAUDE.md:6 content, line 4 (github-token).\n"
        assert (told in ran.err, secret in ctx("export").out) == (number == 1, False)
    page.write_text(f"# Host\nexample.org\n\n# Key\nNow {SECRET}\n")
    os.utime(page, (3000, 3000))
    assert "CLAUDE.md:5 content, line 3 (github-token)" in ctx("import", str(folder)).err
    page.write_text("# Host\nexample.org\n")
    assert answer(ctx, str(folder))["archived"] == 1


def test_what_has_no_date_is_as_new_as_its_import(ctx: Ctx, add: Add, tmp_path: Path) -> None:
    add("--type=fact", "Before")
    time.sleep(0.02)  # Items are dated a millisecond apart.
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f'{{"content": "{word}"}}\n' for word in ("One", "Two", "Three")))
    assert answer(ctx, str(path))["added"] == {"fact": 3}
    assert contents(ctx) == ["Three", "Two", "One", "Before"]
    first = nodes(ctx)
    time.sleep(0.02)
    path.write_text('{"content": "Four"}\n' + path.read_text())
    again = answer(ctx, str(path))
    assert (again["added"], again["unchanged"]) == ({"fact": 1}, 3)
    assert contents(ctx) == ["Four", "Three", "Two", "One", "Before"]
    assert first.keys() < nodes(ctx).keys()
    two = next(id for id, node in first.items() if node["content"] == "Two")
    ctx("delete", two, "-y")
    (skipped,) = answer(ctx, str(path))["skipped"]
    assert skipped["what"] == f"node {two}"
    ctx("undo", again["change"])
    assert answer(ctx, str(path))["added"] == {"fact": 1}
    assert set(contents(ctx)) == {"Four", "Three", "One", "Before"}


def test_edges_find_what_has_no_date(ctx: Ctx, tmp_path: Path) -> None:
    path = databases.make(tmp_path / "go.db", databases.GO_SCHEMA)
    databases.go_node(path, "older", "Older", created_at="", superseded_by="newer")
    databases.go_node(path, "newer", "Newer", created_at="")
    databases.insert(
        path, "edges", id="e", from_id="newer", to_id="older", type="RELATES_TO", created_at=""
    )
    mem = databases.make(tmp_path / "mem.db", databases.CLAUDE_MEM_SCHEMA)
    databases.observation(mem, "s", 1, created_at_epoch=0)
    databases.summary(mem, "s", 2, created_at_epoch=0)
    assert answer(ctx, str(path), str(mem))["edges"] == 3
    document = json.loads(ctx("export").out)
    by_id = {node["id"]: node for node in document["nodes"]}
    assert {
        (by_id[e["from_id"]]["content"], e["type"], by_id[e["to_id"]]["content"])
        for e in document["edges"]
    } == {
        ("Newer", "RELATES_TO", "Older"),
        ("Newer", "SUPERSEDES", "Older"),
        ("Request: Request 2", "DERIVED_FROM", "Title 1"),
    }
    assert all(each["id"] > "01HM" for each in (*document["nodes"], *document["edges"]))
    assert answer(ctx, str(path), str(mem))["change"] is None


NOT_FINITE = '{"a": 1e999, "b": [-1e999], "c": 0.5}'


def test_numbers_that_are_not_finite(ctx: Ctx, folder: Path) -> None:
    (folder / "a.jsonl").write_text(f'{{"content": "Of a line", "metadata": {NOT_FINITE}}}\n')
    node = {"type": "fact", "created_at": databases.DAY, "updated_at": databases.DAY}
    documents: list[tuple[str, dict[str, Any], str]] = [
        ("ours", {"format": "ctx-graph", "version": 1}, FACT),
        ("theirs", {}, OLDER),
    ]
    for name, head, node_id in documents:
        told = {**node, "id": node_id, "content": name, "metadata": "HERE"}
        whole = json.dumps({**head, "nodes": [told]}).replace('"HERE"', NOT_FINITE)
        (folder / f"{name}.json").write_text(whole)
    databases.make(folder / "go.db", databases.GO_SCHEMA)
    databases.go_node(folder / "go.db", DECISION, "Of the Go program", metadata=NOT_FINITE)
    databases.make(folder / "mem.db", databases.CLAUDE_MEM_SCHEMA)
    databases.observation(folder / "mem.db", "s", 1, prompt_number=float("inf"))
    databases.observation(folder / "mem.db", "s", 2, prompt_number=b"\xff\0")
    names = ["a.jsonl", "ours.json", "theirs.json", "go.db", "mem.db"]
    assert sum(answer(ctx, *names)["added"].values()) == 6
    found = {node["content"]: node["metadata"] for node in nodes(ctx).values()}
    kept = {"a": "inf", "b": ["-inf"], "c": 0.5}
    for content in ("Of a line", "ours", "theirs", "Of the Go program"):
        assert found[content] == kept
    assert found["Title 1"]["prompt_number"] == "inf"
    assert found["Title 2"]["prompt_number"] == "\ufffd\ufffd"
    assert ctx("store", "check").code == 0
    assert answer(ctx, *names)["change"] is None


def test_lines_of_json(ctx: Ctx, piped: Piped) -> None:
    lines = '{"content": "One"}\nnonsense\n{"content": "Two", "tags": ["project:x"]}\n'
    piped(lines.encode())
    ran = ctx("import", "--from", "jsonl", "--project-name", "shop")
    assert ran.out == (
        "Imported 1 node from jsonl:\n  fact  1\n1 node left out by --since or --project-name.\n"
        "Skipped 1:\n  line 2  it is not a JSON object\n"
    )
    (node,) = nodes(ctx).values()
    assert node["tags"] == ["project:shop"]
    piped(b'{"id": "7", "content": "First"}')
    answer(ctx)
    piped(b'{"id": "7", "content": "Second"}')
    assert answer(ctx)["updated"] == 1


def test_what_a_file_is_is_found_out(ctx: Ctx, folder: Path, piped: Piped) -> None:
    long = json.dumps({"content": "x" * 100_000})
    write(
        folder,
        {
            "a.jsonl": '{"nodes": "none"}\n{"content": "One"}\n',
            "b.ndjson": 'nonsense\n{"content": "Two"}\n',
            "c.txt": f'{long}\n{{"content": "Three"}}\n',
            "d.txt": '{"version": 1}\n{"content": "Four"}\n',
            "e.txt": '{"text": "no content"}',
            "notes.md": "# Style\nTabs.\n",
            "whole.json": ctx("export").out,
        },
    )
    databases.go_store(folder / "go.db")
    databases.claude_mem(folder / "mem.db")
    lines = ["a.jsonl", "b.ndjson", "c.txt", "d.txt"]
    found = answer(ctx, *lines, "notes.md", "whole.json", "go.db", "mem.db")
    assert found["programs"] == ["jsonl", "ctx", "claude-mem", "claude-code"]
    assert sum(found["added"].values()) == 12
    piped(f"\n{long}\n".encode())
    assert answer(ctx)["unchanged"] == 1
    changes = ctx("undo", "--list", "--format=json").json["changes"]
    assert [change["action"] for change in changes] == ["import"]
    assert ctx("undo").code == 0
    assert nodes(ctx) == {}
    ran = ctx("import", "e.txt")
    assert ran.code == 2
    assert "The document contains no nodes." in ran.err
    assert "For one JSON object per line, use --from jsonl." in ran.err


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
        "x.txt": "x.txt is not a file that ctx can import.",
        "empty.json": "empty.json is not a file that ctx can import.",
        "bad.json": "This is not JSON: Expecting value in line 2, column 11.",
        "other.db": "other.db is a database that ctx cannot import.",
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
    piped("\n".join(map(json.dumps, lines)).encode())
    ran = ctx("import", "--from", "jsonl")
    assert (
        "warning: 2 secrets removed: line 1 content, line 1 (github-token); "
        "line 1 metadata password, line 1 (password).\n"
    ) in ran.err
    assert "warning: 2 characters replaced by U+FFFD: not allowed in a text." in ran.err
    whole = ctx("export").out
    assert "a\ufffdb\ufffdc" in whole
    assert SECRET not in whole
    assert "hunter2" not in whole
    piped("\n".join(map(json.dumps, lines)).encode())
    again = ctx("import", "--from", "jsonl")
    assert again.out.startswith("Nothing new from jsonl.\n2 nodes already here.\n")


def test_only_the_first_skipped_items_are_shown(
    ctx: Ctx, piped: Piped, monkeypatch: pytest.MonkeyPatch
) -> None:
    piped(b"x\n" * 25)
    ran = ctx("import", "--from", "jsonl")
    assert "Skipped 25:" in ran.out
    assert "  … and 5 more\n" in ran.out
    monkeypatch.setattr("ctx.memory.model.LARGEST_CONTENT", 1000)
    large = json.dumps({"content": "x" * 1001}).encode()
    piped(large + b'\n{"content": "small"}' + b"\nx" * 25)
    found = answer(ctx, "--from", "jsonl")
    assert found["added"] == {"fact": 1}
    assert len(found["skipped"]) == 26
    assert {
        "the content has 1,001 characters; the limit is 1,000",
        "it is not a JSON object",
    } == {item["reason"] for item in found["skipped"]}


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


def test_a_store_of_the_go_program_that_was_named_as_ours(
    ctx: Ctx, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = databases.go_store(folder / "a store.db")
    monkeypatch.setenv("CTX_DB", str(path))
    before = path.read_bytes()
    for words in (("list",), ("import", "--from", "ctx", str(path))):
        ran = ctx(*words)
        assert ran.code == 1
        assert f"{path} is a store of the Go program `ctx`; it was not touched." in ran.err
    command = shlex.split(ran.err.split("`")[3])
    assert command[0] == "ctx"
    assert ctx(*command[1:]).code == 0
    monkeypatch.setenv("CTX_DB", command[2])
    assert set(nodes(ctx)) == {FACT, DECISION, OLDER}
    assert path.read_bytes() == before


@pytest.mark.parametrize("words", [("list", "-q"), ("list", "--format=json")])
def test_a_conversion_is_always_reported(
    ctx: Ctx, surroundings: Path, words: tuple[str, ...]
) -> None:
    path = databases.go_store(surroundings / ".ctx" / "store.db")
    databases.go_node(path, "secret", f"the token {SECRET}")
    for number in range(6):
        databases.go_node(path, f"empty-{number}", " ")
    ran = ctx(*words)
    (backup,) = path.parent.glob("store.db.go-*")
    skipped = "; ".join(f"node empty-{number}: it has no content" for number in range(5))
    shows_all = f"`ctx import --from ctx {backup} --dry-run` shows all."
    said = [
        f"Imported 4 nodes and 2 edges from the Go program's store, which is now {backup}.",
        f"6 items could not be imported: {skipped}; … {shows_all}",
    ]
    lines = ran.err.splitlines()
    if words[-1] == "--format=json":
        assert [json.loads(line)["warning"] for line in lines[:2]] == said
    else:
        assert lines[:2] == [f"warning: {each}" for each in said]
    assert "1 secret removed: node " in lines[2]
    assert f"What was not imported is still in {backup}." in lines[3]
    assert len(lines) == 4
    dry = ctx("import", "--from", "ctx", str(backup), "--dry-run")
    assert "node empty-5  it has no content" in dry.out


def test_a_store_of_the_go_program_in_our_own_place(ctx: Ctx, surroundings: Path) -> None:
    databases.go_store(surroundings / ".ctx" / "store.db")
    ran = ctx("import", "--from", "ctx")
    assert (ran.code, ran.out) == (0, "Nothing new.\n")
    assert "Imported 3 nodes and 2 edges" in ran.err
    assert set(nodes(ctx)) == {FACT, DECISION, OLDER}
    assert "is a store of ctx itself" in ctx("import", "--from", "ctx").err
