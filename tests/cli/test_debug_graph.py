"""`ctx debug graph`: memory and code in one picture, for programs that draw."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Add
from tests.conftest import Ctx, git

HOSTILE = 'Say "no" <b>& \\N #35; `x` %%{init: 1}%% ]); drop'


@pytest.fixture
def shop(repo: Path, ctx: Ctx) -> Path:
    (repo / "net.py").write_text(
        "import log\n\nclass Client:\n    def go(self):\n        log.say()\n"
    )
    (repo / "log.py").write_text("def say():\n    pass\n")
    (repo / "far.py").write_text("import net\n\ndef run():\n    net.Client().go()\n")
    git("add", "-A")
    assert ctx("init").code == 0
    return repo


def edges(ctx: Ctx, *words: str) -> set[tuple[str, str, str]]:
    drawn = ctx("debug", "graph", *words, "--format", "json").json
    labels = {vertex["id"]: vertex["label"] for vertex in drawn["vertices"]}
    return {
        (labels[edge["source"]], edge["type"], labels[edge["target"]]) for edge in drawn["edges"]
    }


IMPORTS = {("net.py", "IMPORTS", "log.py"), ("far.py", "IMPORTS", "net.py")}


def test_memory_meets_code_in_its_anchors(shop: Path, ctx: Ctx, add: Add) -> None:
    decision = add("--type=decision", "Log everything")
    ctx("relate", decision, "mentions", "net.py")
    ctx("relate", decision, "mentions", "log.say")
    assert edges(ctx) == {
        *IMPORTS,
        ("Log everything", "MENTIONS", "net.py"),
        ("Log everything", "MENTIONS", "log.say"),
    }
    drawn = ctx("debug", "graph", "--format", "json").json
    assert drawn["left_out"] == 0
    assert drawn["age"]["state"] == "fresh"
    both = {each["id"]: each for each in drawn["vertices"]}
    assert both["file:net.py"]["node"] is not None
    assert both["item:log.py:1:log.say"]["kind"] == "function"
    assert len(both) == 5


def test_around_something_steps_are_counted(shop: Path, ctx: Ctx, add: Add) -> None:
    near = edges(ctx, "--around", "log.say")
    assert near == {("net.Client.go", "CALLS", "log.say"), ("log.py", "DEFINES", "log.say")}
    further = edges(ctx, "--around", "log.say", "--depth", "2")
    assert further == {
        *near,
        ("net.Client", "DEFINES", "net.Client.go"),
        ("far.run", "CALLS", "net.Client.go"),
        ("net.py", "IMPORTS", "log.py"),
    }
    fact = add("--type=fact", "Logs are kept for a week")
    ctx("relate", fact, "mentions", "log.py")
    assert ("Logs are kept for a week", "MENTIONS", "log.py") in edges(ctx, "--around", "log.py")
    assert edges(ctx, "--around", fact) == {("Logs are kept for a week", "MENTIONS", "log.py")}
    assert edges(ctx, "--around", fact, "--depth", "0") == set()


def test_a_limit_says_what_it_left_out(shop: Path, ctx: Ctx) -> None:
    drawn = ctx("debug", "graph", "--limit", "2", "--format", "json").json
    # The file that has most to do with others comes first.
    assert [vertex["id"] for vertex in drawn["vertices"]] == ["file:far.py", "file:net.py"]
    assert drawn["left_out"] == 1
    ran = ctx("debug", "graph", "--limit", "2", "--depth", "20", "--format", "dot")
    assert "// 1 more left out (--limit)\n}\n" in ran.out
    assert "%% 1 more" in ctx("debug", "graph", "--limit", "2", "--format", "mermaid").out
    assert "1 more left out" in ctx("debug", "graph", "--limit", "2").out
    for wrong in (
        ("graph", "--limit", "0"),
        ("graph", "--depth", "21"),
        ("refs", "--format", "dot"),
    ):
        assert ctx("debug", *wrong).code == 2
    ran = ctx("--format", "mermaid", "debug", "refs")
    assert ran.code == 2
    assert "Only `ctx debug graph` has --format mermaid." in ran.err
    ran = ctx("debug", "graph", "--around", "sai")
    assert ran.code == 1
    assert "Did you mean `say`?" in ran.err


def test_dot(shop: Path, ctx: Ctx, add: Add) -> None:
    add("--type=fact", HOSTILE)
    said = ctx("debug", "graph", "--format", "dot").out
    assert said == ctx("--format", "dot", "debug", "graph").out
    lines = said.splitlines()
    assert (lines[0], lines[-1]) == ("digraph ctx {", "}")
    quoted = r'"(?:[^"\\]|\\.)*"'
    vertex = re.compile(rf"  n\d+ \[label={quoted}, shape=\w+\];")
    arrow = re.compile(rf"  n\d+ -> n\d+ \[label={quoted}(?:, style=dashed)?\];")
    assert all(vertex.fullmatch(line) or arrow.fullmatch(line) for line in lines[3:-1])
    assert r'"fact\nSay \"no\" <b>&amp; \\N #35; `x` %%{init: 1}%% ]); drop"' in said
    if shutil.which("dot"):
        subprocess.run(["dot", "-Tsvg"], input=said.encode(), capture_output=True, check=True)


def test_mermaid(shop: Path, ctx: Ctx, add: Add) -> None:
    add("--type=fact", HOSTILE)
    said = ctx("debug", "graph", "--format", "mermaid").out
    lines = said.splitlines()
    assert lines[0] == "flowchart LR"
    plain = r'"[\w ./,:()=*+#;-]*"'
    vertex = re.compile(rf"  n\d+(?:\[{plain}\]|\({plain}\))")
    arrow = re.compile(rf"  n\d+ (?:-->|-\.->)\|{plain}\| n\d+")
    assert all(vertex.fullmatch(line) or arrow.fullmatch(line) for line in lines[1:])
    assert '  n0("fact: Say #34;no#34; #60;b#62;#38; #92;N #35;35#59; #96;x#96;' in said
    page = ctx("debug", "graph", "--format", "markdown").out
    assert page == f"```mermaid\n{said}```\n"


def test_without_a_project_memory_alone_is_drawn(surroundings: Path, ctx: Ctx, add: Add) -> None:
    one, other = add("--type=fact", "One"), add("--type=fact", "Other")
    ctx("link", one, other, "--type", "RELATES_TO")
    assert edges(ctx) == {("One", "RELATES_TO", "Other")}
    assert ctx("debug", "graph", "--format", "json").json["age"] is None
    assert "  One  RELATES_TO  Other\n" in ctx("debug", "graph").out
    assert ctx("delete", one, other, "--yes").code == 0
    assert ctx("debug", "graph").out == "There is nothing to draw.\n"
