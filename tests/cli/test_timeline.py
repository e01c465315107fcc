"""`ctx timeline`"""

from pathlib import Path

from tests.capture.conversations import SESSION, Client
from tests.cli.conftest import Add
from tests.conftest import Ctx, git


def test_around_a_node(project: Path, ctx: Ctx, add: Add) -> None:
    nodes = [add(f"Fact number {number}") for number in range(7)]
    found = ctx("timeline", nodes[3], "-n", "3", "--format", "json").json
    assert found["around"] == "node"
    texts = [each["text"] for each in found["entries"]]
    assert texts == ["Fact number 2", "Fact number 3", "Fact number 4"]
    assert (found["earlier"], found["later"]) == (2, 2)
    text = ctx("timeline", nodes[3], "-n", "3").out
    assert f"node {found['id']}: Fact number 3" in text
    assert "2 earlier (--before 2)" in text
    rest = ctx("timeline", nodes[3], "--before", "2", "--format", "json").json
    assert [each["id"] for each in rest["entries"]] == nodes[:2]
    # Changes of the node are part of it.
    assert ctx("update", nodes[6], "Deploys run on Mondays").code == 0
    changed = ctx("timeline", nodes[6], "-n", "2", "--format", "json").json["entries"]
    assert sorted(each["kind"] for each in changed) == ["change", "fact"]
    ran = ctx("timeline", "no/such/file.py")
    assert ran.code == 1
    assert ran.err.startswith("error E020: Nothing is known about 'no/such/file.py'.")


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
    (repo / "a.py").write_text("x = 2\n")
    client = Client(surroundings / ".ctx", repo)
    talk = client.talk()
    talk.start()
    talk.submit("Please change a.py so that x is 2")
    edit = {"file_path": str(repo / "a.py"), "old_string": "x = 1", "new_string": "x = 2"}
    used = {"tool_name": "Edit", "tool_use_id": "1", "tool_input": edit}
    answer = {"tool_response": {"filePath": str(repo / "a.py")}}
    client.hook("post-tool-use", talk.payload("PostToolUse", **used, **answer))
    assert ctx("hook", "apply").code == 0
    found = ctx("timeline", SESSION[:8], "--format", "json").json
    assert (found["around"], found["id"]) == ("session", SESSION)
    lines = [(each["kind"], each["text"]) for each in found["entries"]]
    assert lines == [
        ("mark", "began"),
        ("prompt", "Please change a.py so that x is 2"),
        ("write", "a.py (+1 −1)"),
    ]
    of_file = ctx("timeline", "a.py", "--format", "json").json["entries"]
    assert [(each["kind"], each["session"]) for each in of_file] == [("write", SESSION)]
