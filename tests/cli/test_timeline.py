"""`ctx timeline`"""

import json
import subprocess
from pathlib import Path

from tests.cli.conftest import Add
from tests.conftest import Ctx, git
from tests.mcp.processes import CTX, environment


def test_around_a_node(project: Path, ctx: Ctx, add: Add) -> None:
    nodes = [add(f"Fact number {number}") for number in range(7)]
    found = ctx("timeline", nodes[3], "-n", "3", "--format", "json").json
    assert found["around"] == "node"
    assert [each["text"] for each in found["entries"]] == [
        "Fact number 2",
        "Fact number 3",
        "Fact number 4",
    ]
    assert (found["earlier"], found["later"]) == (2, 2)
    text = ctx("timeline", nodes[3], "-n", "3").out
    assert f"node {found['id']}: Fact number 3" in text
    assert "2 earlier (--before 2)" in text
    rest = ctx("timeline", nodes[3], "--before", "2", "--format", "json").json
    assert [each["id"] for each in rest["entries"]] == nodes[:2]


def test_changes_of_the_node_are_part_of_it(project: Path, ctx: Ctx, add: Add) -> None:
    node = add("Deploys run on Fridays")
    assert ctx("update", node, "Deploys run on Mondays").code == 0
    kinds = [each["kind"] for each in ctx("timeline", node, "--format", "json").json["entries"]]
    assert sorted(kinds) == ["change", "fact"]


def test_of_a_file(project: Path, ctx: Ctx) -> None:
    (project / "src").mkdir()
    (project / "src" / "net.py").write_text("def connect():\n    pass\n")
    git("add", ".")
    git("commit", "-qm", "Connect to the bank")
    assert ctx("add", "decision", "Connect once", "--mention", "src/net.py").code == 0
    found = ctx("timeline", "src/net.py", "--format", "json").json
    assert (found["around"], found["id"]) == ("file", "src/net.py")
    assert {each["kind"] for each in found["entries"]} == {"commit", "decision"}
    below = ctx("-C", str(project / "src"), "timeline", "net.py", "--format", "json").json
    assert below["id"] == "src/net.py"


def test_of_a_session_and_a_file_that_it_changed(repo: Path, surroundings: Path, ctx: Ctx) -> None:
    session = "11111111-2222-3333-4444-555555555555"
    (repo / "a.py").write_text("x = 2\n")
    edit = {"file_path": str(repo / "a.py"), "old_string": "x = 1", "new_string": "x = 2"}
    answer = {"filePath": str(repo / "a.py")}
    for word, payload in (
        ("session-start", {"source": "startup"}),
        ("prompt-submit", {"prompt": "Please change a.py so that x is 2"}),
        (
            "post-tool-use",
            {"tool_name": "Edit", "tool_use_id": "1", "tool_input": edit, "tool_response": answer},
        ),
    ):
        sent = {"session_id": session, "cwd": str(repo), "transcript_path": "", **payload}
        subprocess.run(
            [CTX, "hook", word],
            cwd=repo,
            env=environment(surroundings),
            input=json.dumps(sent).encode(),
            check=True,
            capture_output=True,
        )
    assert ctx("hook", "apply").code == 0
    found = ctx("timeline", session[:8], "--format", "json").json
    assert (found["around"], found["id"]) == ("session", session)
    lines = [(each["kind"], each["text"]) for each in found["entries"]]
    assert lines == [
        ("mark", "began"),
        ("prompt", "Please change a.py so that x is 2"),
        ("write", "a.py (+1 −1)"),
    ]
    of_file = ctx("timeline", "a.py", "--format", "json").json["entries"]
    assert [(each["kind"], each["session"]) for each in of_file] == [("write", session)]


def test_what_is_unknown_is_an_error(project: Path, ctx: Ctx) -> None:
    ran = ctx("timeline", "no/such/file.py")
    assert ran.code == 1
    assert ran.err.startswith("error E020: Nothing is known about 'no/such/file.py'.")
