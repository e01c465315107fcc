"""`ctx search` and `ctx query`."""

from pathlib import Path

from tests.cli.conftest import Add
from tests.conftest import Ctx, git


def test_what_is_found(ctx: Ctx, add: Add) -> None:
    add("--type=fact", "Something else entirely")
    for content, *searches in (
        ("const refreshToken = rotate()", "refresh token"),
        ("refresh_keys are rotated", "refreshKeys"),
        ("リフレッシュトークンを更新する", "リフレッシュ", "フレッシ"),
        ("Zürich has a datacentre", "zurich"),
        ("Queries are cached", "query cache"),
        ("see src/net/http_server.py", "httpServer"),
        ("AND is an operator", "AND"),
        ("call (foo) TypeError: x", "(foo) TypeError:"),
    ):
        node_id = add("--type=fact", content)
        for words in searches:
            found = ctx("search", words, "--format=json").json
            assert [node["id"][:12] for node in found["nodes"]] == [node_id], words
            assert found["partial"] is False


def test_the_best_match_comes_first(ctx: Ctx, add: Add) -> None:
    add("--type=fact", "The cache is warm, the sun is out, and the database and its pages are idle")
    best = add("--type=fact", "Database cache")
    assert ctx("search", "database cache").out.splitlines()[0].split()[0] == best


def test_search_and_recall_have_one_order(ctx: Ctx, add: Add) -> None:
    for number in range(12):
        add(
            "--type=fact",
            f"Note {number}. Pools, leases and how they are drained: {'sockets ' * 9}",
        )
    add("--type=fact", f"How pools of sockets are drained. {'It takes a while. ' * 90}")
    words = "how do we drain pools of sockets"
    found, recalled = (
        [node["id"] for node in ctx(command, words, "--json").json["nodes"][:8]]
        for command in ("search", "recall")
    )
    assert found == recalled


def test_filters_and_words_together(ctx: Ctx, add: Add) -> None:
    add("--type=fact", "Token rotation")
    decision = add("--type=decision", "--tag=project:shop", "Token rotation")
    for words in (
        ["query", "type:decision token rotation", "--as=nodes"],
        ["search", "token rotation", "--type=decision"],
        ["search", "token", "--tag=project:shop"],
        ["query", "type:decision AND tag:project:*"],
    ):
        assert [n["id"][:12] for n in ctx(*words, "--format=json").json["nodes"]] == [decision]


def test_it_says_what_recall_would_find(ctx: Ctx, repo: Path, add: Add) -> None:
    (repo / "deploy.py").write_text("def deploy(): ...\n")
    git("add", "-A")
    git("commit", "-qm", "Deploy by hand")
    told = "`ctx recall` finds more: 1 commit, 1 file.\n"
    assert ctx("search", "deploy").err == told
    assert ctx("search", "deploy", "--json").err == ""
    assert ctx("-q", "search", "deploy").err == ""
    for number in range(3):
        add("--type=fact", f"Server {number} has its own deploy")
    assert ctx("search", "deploy").err == "", "enough was found"
    assert ctx("search", "zebra").err == ""


def test_where_nothing_has_all_words_some_or_their_beginnings_are_enough(
    ctx: Ctx, add: Add
) -> None:
    node_id = add("--type=fact", "PostgreSQL for the ordering service")
    ran = ctx("search", "ordering zebra")
    assert ran.out.split()[0] == node_id
    assert ran.err == "No node has all of these words; these have some.\n"
    for word in ("post", "servi", "servi post"):
        ran = ctx("search", word)
        assert ran.out.split()[0] == node_id
        assert ran.err.startswith("No node has any of these words; these have words that begin ")
        assert ctx("forget", word, "-y").out == "Nothing to delete.\n"
    assert ctx("search", "zebra").out == "No matching nodes.\n"
    assert ctx("search", "zebra", "--format=json").json["beginnings"] is False
    for number in range(3):
        add("--type=fact", f"PostgreSQL {number}")
    assert ctx("search", "post", "--limit=3").out.splitlines()[-1] == "  … and 1 more (--limit)"
    listed = ctx("query", "type:fact", "--limit=3").out
    assert listed.splitlines()[-1] == "  … and 1 more (--limit)"
    for words in ([""], [" "], ["", "--json"]):
        ran = ctx("search", *words)
        assert (ran.code, ran.out) == (2, "")
        assert "There are no words to search for." in ran.err
    ran = ctx("query", "type:fact AND tpye:decision")
    assert (ran.code, ran.err[:12]) == (2, "error E022: ")
    assert "\n                ^^^^\n  Did you mean `type:decision`?" in ran.err
