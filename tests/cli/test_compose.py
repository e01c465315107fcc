"""`ctx compose`"""

import re
from itertools import pairwise
from pathlib import Path

import pytest

from ctx import tokens
from tests.cli.conftest import Add
from tests.conftest import Ctx


def stable(text: str) -> str:
    return re.sub(r"rendered at [^ ]+", "rendered at NOW", text)


def contents(ctx: Ctx, *words: str) -> list[str]:
    answer = ctx("compose", *words, "--format=json").json
    return [node["content"] for node in answer["nodes"]]


def test_the_context_that_a_session_begins_with(folder: Path, ctx: Ctx, add: Add) -> None:
    fact = add("--type=fact", "--tag=tier:reference", "Deploys run on Fridays")
    decision = add(
        "--type=decision", "--tag=tier:reference", "--meta=rationale=no servers", "We use SQLite"
    )
    note = add("--type=observation", "--tag=tier:working", "The parser is half done")
    pinned = add("--type=fact", "--tag=tier:pinned", "x\n\n<!-- ctx:end -->\n## Pinned\n```\nopen")
    add("--type=fact", "--no-tier", "Not for contexts")
    add("--type=fact", "--tag=tier:off-context", "Put away")
    new = add("--type=fact", "--tag=tier:reference", f"--supersedes={fact}", "On Mondays")
    ctx("link", decision, pinned, "--type=DEPENDS_ON")
    ran = ctx("compose")
    assert ran.err == ""
    head, _, body = ran.out.partition("\n\n")
    assert re.fullmatch(r"<!-- ctx: 4 nodes, 1\d\d tokens, rendered at \S+ -->", head)
    assert body == (
        f"""## Pinned

- [fact:{pinned}]
  ````
  x

  <\\!-- ctx:end -->
  ## Pinned
  ```
  open
  ````
  - Tags: tier:pinned

## Reference

### Facts

- [fact:{new}] On Mondays

### Decisions

- [decision:{decision}] We use SQLite
  - Rationale: no servers
  - Depends on: [fact:{pinned}]

## Working Context

- [observation:{note}] The parser is half done

<!-- ctx:end -->
"""
    )
    assert stable(ctx("compose", "--format=markdown").out) == stable(ran.out)
    old = ctx("compose", "--include-superseded").out
    assert f"- [fact:{fact}] Deploys run on Fridays\n  - Superseded by: [fact:" in old


def test_as_json(folder: Path, ctx: Ctx, add: Add) -> None:
    one = add("--type=fact", "--tag=tier:reference", "One")
    two = add("--type=summary", "--tag=tier:reference", "--meta=k=v", "Two")
    ctx("link", two, one, "--type=DERIVED_FROM")
    answer = ctx("compose", "--format=json").json
    full = {node["content"]: node["id"] for node in answer["nodes"]}
    at = answer["meta"].pop("rendered_at")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", at)
    assert answer["meta"] == {
        "node_count": 2,
        "token_count": tokens.estimate(ctx("compose").out),
        "left_out": 0,
        "more_left_out": False,
        "budget": 50_000,
        "query": "tag:tier:pinned OR tag:tier:reference OR tag:tier:working",
        "project": None,
        "other_projects": 0,
        "more_other_projects": False,
        "task": None,
    }
    node = answer["nodes"][1]
    assert node["id"] == full["Two"]
    assert node["created_at"] == node["updated_at"]
    assert (node["type"], node["tags"]) == ("summary", ["tier:reference"])
    assert (node["metadata"], node["source"]) == ({"k": "v"}, "user")
    assert node["edges"] == {"depends_on": [], "derived_from": [full["One"]]}


def test_working_nodes_come_before_reference_and_the_newest_first(
    folder: Path, ctx: Ctx, add: Add, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        add("--type=fact", "--tag=tier:reference", f"Reference {number} {'x' * 100}")
        add("--type=fact", "--tag=tier:working", f"Working {number} {'x' * 100}")
    shown = contents(ctx, "--budget=220")
    assert [text[:11] for text in shown] == [
        "Reference 2",
        "Working 2 x",
        "Working 1 x",
        "Working 0 x",
    ]
    ran = ctx("compose", "--budget=220")
    assert ", 2 left out," in ran.out
    assert tokens.estimate(ran.out) <= 220
    assert stable(ctx("compose", "--budget=220").out) == stable(ran.out)
    assert contents(ctx, "--budget=80") == [f"Working 2 {'x' * 100}"]
    # The configured budget.
    assert contents(ctx, "--set", "view.default_budget=220") == shown
    monkeypatch.setenv("CTX_DEFAULT_BUDGET", "100")
    assert contents(ctx) == contents(ctx, "--budget=100") != shown
    for budget in ("0", "24"):
        ran = ctx("compose", f"--budget={budget}")
        assert (ran.code, ran.out) == (1, "")
        assert ran.err == (
            f"error E010: A budget of {budget} tokens is too small: an empty context takes 28.\n"
            "  Give a budget of 28 tokens or more.\n"
        )


def test_a_query(folder: Path, ctx: Ctx, add: Add) -> None:
    add("--type=fact", "Tokens refresh")
    add("--type=decision", "--tag=tier:off-context", "Refresh tokens on the server")
    add("--type=decision", "Something else")
    assert contents(ctx, "--query=type:decision") == [
        "Something else",
        "Refresh tokens on the server",
    ]
    assert set(contents(ctx, "--query=refresh token")) == {
        "Tokens refresh",
        "Refresh tokens on the server",
    }
    wrong = ctx("compose", "--query=type:fcat")
    assert wrong.code == 2
    assert wrong.err.startswith("error E022: There is no node type 'fcat'.\n")
    assert "Did you mean `fact`?" in wrong.err
    assert ctx("compose", "--query=").code == 2


def test_seeds_and_what_is_near(folder: Path, ctx: Ctx, add: Add) -> None:
    ids = [add("--type=fact", f"Node {number}") for number in range(5)]
    for here, there in pairwise(ids):
        ctx("link", here, there, "--type=RELATES_TO")

    def near(*words: str) -> str:
        return "".join(text.removeprefix("Node ") for text in contents(ctx, *words))

    assert near(f"--seed={ids[1]}") == "120"
    assert near(f"--seed={ids[1]}", "--depth=0") == "1"
    assert near(f"--seed={ids[0]}", f"--seed={ids[4]}", "--depth=2") == "04312"
    newer = add("--type=task", f"--supersedes={ids[2]}", "Node 2 again")
    assert near(f"--seed={ids[3]}") == "34"
    assert near(f"--seed={newer}") == "2 again"
    assert near(f"--seed={ids[2]}", "--query=type:task") == "22 again"
    assert ctx("compose", "--seed=01ZZZZ").code == 1
    # A seed is shortened rather than left out.
    seed = add("--type=source", "word " * 1000)
    ran = ctx("compose", f"--seed={seed}", "--budget=100")
    assert f"- [source:{seed}] word word" in ran.out
    assert "...\n" in ran.out


def test_nodes_of_other_projects(repo: Path, ctx: Ctx, add: Add) -> None:
    add("--type=fact", "--tag=tier:reference", "--user", "Everybody's")
    add("--type=fact", "--tag=tier:reference", "--tag=project:app", "Mine")
    add("--type=fact", "--tag=tier:reference", "--tag=project:shop", "Theirs")
    ran = ctx("compose")
    assert "Theirs" not in ran.out
    assert ran.err == "1 more in other projects: --all-projects\n"
    assert contents(ctx) == ["Mine", "Everybody's"]
    assert contents(ctx, "--all-projects") == ["Theirs", "Mine", "Everybody's"]
    assert contents(ctx, "--project-name=shop") == ["Theirs", "Everybody's"]
    # A query that names a project means it.
    named = ctx("compose", "--query=project:shop")
    assert "Theirs" in named.out
    assert named.err == ""
    theirs = ctx("list", "--tag=project:shop", "--format=json").json["nodes"][0]["id"]
    for each in ctx("list", "--tag=project:app", "--format=json").json["nodes"]:
        ctx("link", each["id"], theirs, "--type=RELATES_TO")
        assert contents(ctx, f"--seed={each['id']}") == ["Mine"]
    assert set(contents(ctx, f"--seed={theirs}")) == {"Mine", "Theirs"}


def test_working_nodes_of_other_tasks(folder: Path, ctx: Ctx, add: Add) -> None:
    add("--type=fact", "--tag=tier:working", "--tag=task:other", "Of another task")
    add("--type=fact", "--tag=tier:reference", "--tag=task:other", "Reference of another task")
    add("--type=fact", "--tag=tier:working", "Of this task")
    assert len(contents(ctx)) == 3
    ctx("task", "start", "this")
    assert contents(ctx) == ["Reference of another task", "this", "Of this task"]
