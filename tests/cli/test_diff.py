import re
from pathlib import Path

import pytest

from tests.cli.conftest import Add, Piped
from tests.conftest import Ctx


@pytest.fixture
def project(folder: Path, ctx: Ctx) -> Path:
    assert ctx("init").code == 0
    return folder


def normalized(text: str) -> str:
    return re.sub(r"\b[0-9a-f]{12}\b", "COMMIT", re.sub(r"\b0[0-9A-Z]{11}\b", "NODE", text))


def test_what_is_staged_against_what_is_committed(project: Path, ctx: Ctx, add: Add) -> None:
    assert normalized(ctx("diff").out) == "Nothing differs: HEAD (COMMIT) → STAGED.\n"
    kept = add("--type=fact", "--tag=x:a", "Deploys run on Mondays")
    gone = add("--type=hypothesis", "The cache is cold")
    ctx("commit", "-m", "One")
    ctx("update", kept, "--content", "Deploys run on Fridays", "--meta", "why=a freeze")
    ctx("untag", kept, "x:a")
    ctx("tag", kept, "x:b")
    ctx("delete", gone)
    new = add("--type=task", "--tag=x:c", "Tell everybody")
    ctx("link", new, kept, "--type=DEPENDS_ON")
    ctx("view", "create", "days", "--query=type:fact", "--budget=500")
    assert (
        normalized(ctx("diff").out)
        == """\
HEAD (COMMIT) → STAGED
~ fact NODE: Deploys run on Fridays
    content: Deploys run on Mondays → Deploys run on Fridays
    metadata why: nothing → a freeze
    tags: +x:b -x:a
- hypothesis NODE: The cache is cold
+ task NODE: Tell everybody (x:c)
> task NODE DEPENDS_ON fact NODE
+ view days: type:fact, 500 tokens
"""
    )


def test_two_commits_either_way(project: Path, ctx: Ctx, add: Add) -> None:
    node = add("--type=fact", "Line 1\nLine 2\nLine 3")
    first = ctx("commit", "-m", "One", "--format", "json").json["commit"]
    ctx("update", node, "--content", "Line 1\nLine two\nLine 3")
    second = ctx("commit", "-m", "Two", "--format", "json").json["commit"]
    add("--type=fact", "Staged, and of no commit")
    before = ctx("list", "--format", "json").out
    assert normalized(ctx("diff", first[:8], second[:8]).out) == (
        "COMMIT → COMMIT\n"
        "~ fact NODE: Line 1\n"
        "    content:\n"
        "        Line 1\n"
        "      - Line 2\n"
        "      + Line two\n"
        "        Line 3\n"
    )
    back = ctx("diff", second, first, "--format", "json").json
    assert back["before"] == {"name": second, "commits": [second], "staged": False}
    [difference] = back["nodes"]
    assert difference["kind"] == "changed"
    assert difference["fields"] == [
        {
            "name": "content",
            "before": "Line 1\nLine two\nLine 3",
            "after": "Line 1\nLine 2\nLine 3",
        }
    ]
    assert difference["before"]["id"] == difference["after"]["id"]
    assert difference["after"]["content"] == "Line 1\nLine 2\nLine 3"
    assert ctx("diff", "HEAD~1", "HEAD", "--format=json").json["nodes"][0]["kind"] == "changed"
    assert normalized(ctx("diff", "head~2", "head~1").out) == (
        "head~2 (COMMIT) → head~1 (COMMIT)\n+ fact NODE: Line 1\n"
    )
    assert ctx("diff", first, first).out.startswith("Nothing differs: ")
    refusals = [ctx("diff", word) for word in ("HEAD~9", "HEAD~x", "0123abcd", "zz", "STAGED~1")]
    assert [(ran.code, ran.out) for ran in refusals] == [
        *((2, ""), (2, ""), (1, ""), (2, ""), (2, ""))
    ]
    # Looking back changes nothing.
    assert ctx("list", "--format", "json").out == before


def test_documents_are_what_they_were_when_they_were_kept(project: Path, ctx: Ctx) -> None:
    decision = project / ".ctx" / "narrative" / "decisions" / "0001-jitter-ab12.md"
    decision.parent.mkdir()
    decision.write_text("# Use jitter\n")
    ctx("commit", "-m", "One")
    decision.write_text("# Use no jitter\n")
    assert normalized(ctx("diff").out).endswith(
        "~ decision NODE: Use no jitter\n    content: Use jitter → Use no jitter\n"
    )
    ctx("commit", "-m", "Two")
    [node] = ctx("diff", "HEAD~1", "HEAD", "--format", "json").json["nodes"]
    assert (node["before"]["content"], node["after"]["content"]) == (
        "Use jitter",
        "Use no jitter",
    )


MYPY = 'src/shop.py:2: error: Name "x" is not defined  [name-defined]\nFound 1 error in 1 file\n'


def test_functions_and_errors_that_came_and_went(project: Path, ctx: Ctx, piped: Piped) -> None:
    def run(text: str) -> None:
        piped(text.encode())
        assert ctx("add", "command", "--stdin", "--name=mypy src").code == 0

    source = project / "src" / "shop.py"
    source.parent.mkdir()
    source.write_text("def total(items):\n    return x\n\n\ndef gone():\n    pass\n")
    assert ctx("add", "code", "--snapshot").code == 0
    run(MYPY)
    first = ctx("diff").out
    assert "+ function shop.total (src/shop.py:1): def total(items)\n" in first
    assert "+ mypy error[name-defined] src/shop.py:2: " in first
    assert ctx("commit", "-m", "One").code == 0
    # An error on another line is the same error.
    run(MYPY.replace(":2:", ":3:"))
    assert ctx("diff", "--format=json").json["diagnostics"] == []
    source.write_text("def total(items, tax):\n    return 1\n\n\ndef new():\n    pass\n")
    assert ctx("add", "code", "--snapshot").code == 0
    run("Success: no issues found in 1 source file\n")
    lines = ctx("diff").out.splitlines()
    expected = [
        "~ function shop.total (src/shop.py:1): def total(items) → def total(items, tax)",
        "+ function shop.new (src/shop.py:5): def new()",
        "- function shop.gone (src/shop.py:5): def gone()",
        '- mypy error[name-defined] src/shop.py:2: Name "x" is not defined',
    ]
    assert [line for line in lines if line[2:].startswith(("function", "mypy"))] == expected
    assert ctx("commit", "-m", "Two").code == 0
    there = ctx("diff", "HEAD~1", "HEAD").out.splitlines()
    assert [line for line in there if line in expected] == expected
    back = ctx("diff", "HEAD", "HEAD~1", "--format=json").json
    assert [(each["kind"], each["name"]) for each in back["items"]] == [
        ("changed", "shop.total"),
        ("added", "shop.gone"),
        ("removed", "shop.new"),
    ]
    [error] = back["diagnostics"]
    assert (error["kind"], error["tool"], error["line"]) == ("added", "mypy", 2)
    # What did not change between two commits is not listed.
    ctx("add", "--type=fact", "Something")
    ctx("commit", "-m", "Three")
    last = ctx("diff", "HEAD~1", "HEAD", "--format=json").json
    assert (last["items"], last["diagnostics"], last["packages"]) == ([], [], [])
