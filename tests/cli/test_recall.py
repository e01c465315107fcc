"""`ctx recall`"""

from pathlib import Path

from ctx import clock, tokens
from tests.cli.conftest import Add
from tests.conftest import Ctx, git


def test_words_and_filters(folder: Path, ctx: Ctx, add: Add) -> None:
    one = add("--type=fact", "--tag=tier:reference", "Refresh tokens live on the server")
    two = add("--type=decision", "Tokens expire after a day\nand are refreshed")
    add("--type=fact", "A TypeError: cannot read (AND more")
    found = ctx("recall", "refresh", "token")
    assert sorted(found.out.splitlines()) == [
        f"  {one}  fact      Refresh tokens live on the server",
        f"  {two}  decision  Tokens expire after a day and are refreshed",
    ]
    assert found.err == ""
    for query in ("type:decision", "type:decision refresh"):
        assert ctx("recall", query).out.startswith(f"  {two}  decision  Tokens expire after a day")
    assert ctx("recall", "type:task").out == "No matching nodes.\n"
    # A mistake in filters is shown, and one in words is none.
    ran = ctx("recall", "type:fcat")
    assert (ran.code, "  type:fcat\n       ^^^^\n" in ran.err) == (2, True)
    assert "TypeError" in ctx("recall", "TypeError: cannot AND (").out
    some = ctx("recall", "expire", "zebra")
    assert some.out.startswith(f"  {two}")
    assert some.err == "No node has all of these words; these have some.\n"
    assert ctx("recall", "expire", "zebra", "--format=json").json["partial"] is True
    block = ctx("recall", "expire", "zebra", "--format=markdown")
    assert "\nNo node has all of these words. Found 1 node with some of them:\n" in block.out
    assert block.err == ""


def test_the_block_for_agents(folder: Path, ctx: Ctx, add: Add) -> None:
    one = add("--type=fact", "--tag=tier:reference", "--tag=project:auth", "The API uses OAuth 2.0")
    two = add("--type=decision", "--meta=rationale=simple", "Tokens live\non the server")
    assert ctx("recall", "type:fact OR type:decision", "--format=markdown").out == (
        f"""## Recall Results

Query: `type:fact OR type:decision`

Found 2 nodes:

- [decision:{two}] Tokens live
  on the server
  - Rationale: simple

- [fact:{one}] The API uses OAuth 2.0
  - Tags: project:auth, tier:reference

---
"""
    )
    none = ctx("recall", "say `x` <!-- ctx:end -->", "--format=markdown").out
    assert "Query: ``say `x` <\\!-- ctx:end -->``\n\nNo matching nodes found.\n" in none
    limited = ctx("recall", "type:fact OR type:decision", "--limit=1", "--format=markdown").out
    assert "Found 2 nodes, here the first 1:\n" in limited


def test_limits(folder: Path, ctx: Ctx, add: Add) -> None:
    for number in range(12):
        add("--type=fact", f"Fact {number} {'word ' * 200}")
    lines = ctx("recall", "type:fact").out.splitlines()
    assert lines[-1] == "  … and 2 more (--limit)"
    assert all(len(line) < 450 for line in lines)
    assert len(ctx("recall", "type:fact", "--limit=0").out.splitlines()) == 12
    for budget in (70, 400, 1500):
        ran = ctx("recall", "type:fact", f"--budget={budget}", "--format=markdown")
        assert tokens.estimate(ran.out) <= budget
        assert ran.out.count("- [fact:") > 0
    answer = ctx("recall", "type:fact", "--budget=400", "--format=json").json
    assert answer["total"] == 12
    assert set(answer["shortened"]) <= {node["id"] for node in answer["nodes"]}
    assert answer["nodes"][0]["content"].startswith("Fact 11")
    refused = ctx("recall", "type:fact", "--budget=5").err
    assert refused.startswith("error E010: A budget of 5 tokens is too small")
    least = refused.split()[-4]
    none = ctx("recall", "type:fact", f"--budget={int(least) + 1}", "--format=markdown")
    assert "Found 12 nodes, but none fits.\n" in none.out


def test_projects_and_tasks(repo: Path, ctx: Ctx, add: Add) -> None:
    add("--type=fact", "--tag=project:shop", "Token of theirs")
    mine = add("--type=fact", "--tag=project:app", "Token of mine")
    add("--type=fact", "--tag=tier:working", "--tag=task:other", "Token of another task")
    ctx("task", "start", "this")
    for query in ("token", "type:fact"):
        ran = ctx("recall", query)
        assert ran.out == f"  {mine}  fact  Token of mine\n"
        assert ran.err == "1 more in other projects: --all-projects\n"
    assert "theirs" in ctx("recall", "token", "--all-projects").out
    assert "theirs" in ctx("recall", "token", "--project-name=shop").out


def test_everything_that_speaks_of_it(project: Path, ctx: Ctx, add: Add) -> None:
    (project / "tokens.py").write_text("def refresh_token():\n    pass\n")
    fact = add("--type=fact", "A token lives an hour")
    assert ctx("commit", "-m", "Tokens").code == 0
    git("add", "-A")
    git("commit", "-qm", "Refresh tokens")
    commit = git("rev-parse", "HEAD").strip()
    assert ctx("code", "index").code == 0
    found = ctx("recall", "refresh token").out.splitlines()
    [log] = [line.split()[0] for line in found if ".ctx/narrative/log/" in line]
    day = clock.iso(clock.now_ms())[:10]
    assert [line for line in found if ".ctx/narrative/" not in line] == [
        f"  {fact}  fact  A token lives an hour",
        "Narrative",
        "Commits",
        f"  {commit[:12]}  {day} Refresh tokens",
        "Files",
        "  tokens.py  text, path, names, history, meaning, recent",
    ]
    assert log.startswith(".ctx/narrative/log/")
    whole = ctx("recall", "refresh token", "--format=json").json
    assert [each["kind"] for each in whole["beside"]] == ["narrative", "commit", "file"]
    assert ctx("recall", "refresh token", "--only=files").out == (
        "Files\n  tokens.py  text, path, names, history, meaning, recent\n"
    )
    only = ctx("recall", "refresh token", "--only=commits", "--only=nodes", "--format=json").json
    assert ([node["type"] for node in only["nodes"]], [b["id"] for b in only["beside"]]) == (
        ["fact"],
        [commit],
    )
    # Filters are about nodes.
    assert ctx("recall", "type:fact token", "--format=json").json["beside"] == []
    block = ctx("recall", "refresh token", "--format=markdown").out
    assert f"\n- [commit] `{commit[:12]}` Refresh tokens\n" in block
    assert "\n- [file] `tokens.py`\n" in block
    for budget in (60, 80, 120, 400):
        ran = ctx("recall", "refresh token", f"--budget={budget}", "--format=markdown")
        assert tokens.estimate(ran.out) <= budget
    assert ctx("recall", "elephants").out == "No matching nodes.\n"
    for kind, told in (("commits", "commits"), ("narrative", "sections of the narrative")):
        assert ctx("recall", "elephants", f"--only={kind}").out == f"No matching {told}.\n"
    assert ctx("recall", "refresh token", "--only=commits", "--format=markdown").out == (
        f"## Recall Results\n\nQuery: `refresh token`\n\n- [commit] `{commit[:12]}`"
        " Refresh tokens\n\n---\n"
    )


def test_what_stands_for_code_is_no_answer(project: Path, ctx: Ctx, add: Add) -> None:
    (project / "cart.py").write_text("def cart():\n    pass\n")
    fact = add("--type=fact", "A cart is a promise")
    assert ctx("relate", "cart.py", "MENTIONS", fact).code == 0
    assert [node["type"] for node in ctx("recall", "type:file cart", "--format=json").json["nodes"]]
    found = ctx("recall", "cart", "--format=json").json
    assert [node["type"] for node in found["nodes"]] == ["fact"]
    assert list(found["scores"].values()) == [1.0]


def test_a_limit_is_for_the_whole_answer(ctx: Ctx, repo: Path, add: Add) -> None:
    for number in range(2):
        (repo / f"deploy{number}.py").write_text("def deploy(): ...\n")
        git("add", "-A")
        git("commit", "-qm", f"Deploy {number}")
        add("--type=fact", f"Server {number} has its own deploy")

    def answer(*words: str) -> list[str]:
        found = ctx("recall", "deploy", *words, "--json").json
        return [each["id"] for each in (*found["nodes"], *found["beside"])]

    every = answer()
    assert len(every) == 6
    for limit in range(1, 7):
        assert answer("--limit", str(limit)) == every[:limit]
    assert answer("-n", "0") == every
    # The code is as fresh as in a pack.
    git("mv", "deploy0.py", "deploy9.py")
    found = ctx("recall", "deploy", "--json").json
    assert found["code_index"]["state"] == "fresh"
    assert {each["title"] for each in found["beside"] if each["kind"] == "file"} == {
        "deploy1.py",
        "deploy9.py",
    }
