"""`ctx timeline`"""

from pathlib import Path

from tests.cli.conftest import Add
from tests.conftest import Ctx, git


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


def test_what_is_unknown_is_an_error(project: Path, ctx: Ctx) -> None:
    ran = ctx("timeline", "no/such/file.py")
    assert ran.code == 1
    assert ran.err.startswith("error E020: Nothing is known about 'no/such/file.py'.")
