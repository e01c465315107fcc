"""`ctx search` and `ctx query`."""

from pathlib import Path

import pytest

from tests.cli.conftest import Add
from tests.conftest import Ctx, git


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("const refreshToken = rotate()", "refresh token"),
        ("refresh_tokens are rotated", "refreshToken"),
        ("リフレッシュトークンを更新する", "リフレッシュ"),
        ("リフレッシュトークンを更新する", "フレッシ"),
        ("Zürich has a datacentre", "zurich"),
        ("Queries are cached", "query cache"),
        ("see src/net/http_server.py", "httpServer"),
        ("AND is an operator", "AND"),
        ("call (foo) TypeError: x", "(foo) TypeError:"),
    ],
)
def test_what_is_found(ctx: Ctx, add: Add, content: str, words: str) -> None:
    node_id = add("--type=fact", content)
    add("--type=fact", "Something else entirely")
    found = ctx("search", words, "--format=json").json
    assert [node["id"][:12] for node in found["nodes"]] == [node_id]
    assert found["partial"] is False


def test_the_best_match_comes_first(ctx: Ctx, add: Add) -> None:
    add("--type=fact", "The cache is warm, the sun is out, and the database and its pages are idle")
    best = add("--type=fact", "Database cache")
    assert ctx("search", "database cache").out.splitlines()[0].split()[0] == best


def test_where_nothing_has_all_words_some_are_enough(ctx: Ctx, add: Add) -> None:
    node_id = add("--type=fact", "The database is slow")
    ran = ctx("search", "database zebra")
    assert ran.out.split()[0] == node_id
    assert ran.err == "No node has all of these words; these have some.\n"


@pytest.mark.parametrize("word", ["post", "servi", "servi post"])
def test_where_nothing_has_the_words_their_beginnings_are_enough(
    ctx: Ctx, add: Add, word: str
) -> None:
    node_id = add("--type=fact", "PostgreSQL for the ordering service")
    ran = ctx("search", word)
    assert ran.out.split()[0] == node_id
    assert ran.err == ("No node has any of these words; these have words that begin with them.\n")
    assert ctx("search", "zebra").out == "No matching nodes.\n"
    assert ctx("forget", word, "-y").out == "Nothing to delete.\n"
    assert ctx("search", "zebra", "--format=json").json["beginnings"] is False


def test_beginnings_of_words_are_counted_too(ctx: Ctx, add: Add) -> None:
    for number in range(4):
        add("--type=fact", f"PostgreSQL {number}")
    assert ctx("search", "post", "--limit=3").out.splitlines()[-1] == "  … and 1 more (--limit)"


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


def test_a_mistake_in_a_query_is_shown_where_it_is(ctx: Ctx) -> None:
    ran = ctx("query", "type:fact AND tpye:decision")
    assert ran.code == 2
    assert (
        ran.err.splitlines()[1:4]
        == [
            "  type:fact AND tpye:decision",
            "                ^^^^",
            "  Did you mean `type`?",
        ]
        or "^" in ran.err
    )
    assert ran.err.startswith("error E022: ")


def test_the_limit_says_how_many_more(ctx: Ctx, add: Add) -> None:
    for number in range(4):
        add("--type=fact", f"Fact {number}")
    ran = ctx("query", "type:fact", "--limit=3")
    assert ran.out.splitlines()[-1] == "  … and 1 more (--limit)"


@pytest.mark.parametrize("words", [[""], [" "], ["", "--json"]])
def test_a_search_without_words_is_refused(ctx: Ctx, words: list[str]) -> None:
    ran = ctx("search", *words)
    assert ran.code == 2
    assert "There are no words to search for." in ran.out + ran.err
    assert "No matching" not in ran.out


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
