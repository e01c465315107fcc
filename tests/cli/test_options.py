"""One meaning of `--project`, one way to give a text or a query."""

import argparse
from pathlib import Path

import pytest

from ctx.cli import commands, options
from tests.cli.conftest import Add, Piped
from tests.conftest import Ctx
from tests.e2e.terminals import on_a_terminal


def parsers() -> dict[str, argparse.ArgumentParser]:
    """The parsers of all commands and subcommands, by what is typed."""
    known: dict[str, argparse.ArgumentParser] = {}
    for name in set(commands.COMMANDS) - {"help"}:
        parser = commands.command_named(name)[1]
        known[name] = parser
        for inner, subparser in options.subcommands_of(parser).items():
            known[f"{name} {inner}"] = subparser
    return known


def test_options_mean_the_same_everywhere() -> None:
    for typed, parser in parsers().items():
        known = {
            name: action
            for name, action in parser._option_string_actions.items()
            if action.help != argparse.SUPPRESS
        }
        if "--project" in known:
            assert known["--project"].nargs == 0, f"`{typed} --project` takes a value"
        if "--user" in known:
            assert known["--user"].nargs == 0, f"`{typed} --user` takes a value"
        for older in ("--query", "--content", "--text", "--scope"):
            assert older not in known or typed == "rebuild", f"`{typed} {older}`"


@pytest.mark.parametrize(
    "words",
    [
        ("search", "--project", "shop", "wal"),
        ("search", "--project=shop", "wal"),
        ("recall", "--project", "shop", "wal"),
        ("query", "--as=nodes", "--project", "shop"),
        ("compose", "--project", "shop"),
        ("list", "--project", "shop"),
        ("sessions", "list", "--project", "shop"),
        ("learnings", "list", "--project", "shop"),
        ("import", "--from=jsonl", "--project", "shop"),
    ],
    ids=" ".join,
)
def test_project_takes_no_name(project: Path, ctx: Ctx, add: Add, words: tuple[str, ...]) -> None:
    add("--type=fact", "--tag=project:shop", "The shop wal is large")
    ran = ctx(*words)
    assert (ran.code, ran.out) == (2, "")
    assert "write --project-name shop" in ran.err


def test_a_word_after_project_that_names_none(project: Path, ctx: Ctx, add: Add) -> None:
    add("--type=fact", "--tag=project:shop", "The shop wal is large")
    add("--type=fact", "The wal of this shop is small")
    for words in (["--project", "wal"], ["shop", "--project"], ["--project", "--", "shop"]):
        assert "is small" in ctx("search", *words).out
    (project / "shop").write_text('{"content": "Of a file"}')
    assert ctx("import", "--from=jsonl", "--project", "shop").code == 0
    ran = ctx("pause", "--project", "shop")
    assert (ran.code, "--project-name" in ran.err) == (2, False)


def test_hints_are_for_people(folder: Path, ctx: Ctx) -> None:
    ctx("add", "--type=fact", "One")
    for words, hint in (
        (["compose", "--query=type:fact"], "--query: give the query as an argument, in quotes."),
        (
            ["view", "create", "facts", "--query=x"],
            "--query: give the query as an argument, in quotes.",
        ),
    ):
        ran = ctx(*words)
        assert (ran.code, ran.err) == (0, "")
        assert hint in on_a_terminal(words, folder).splitlines()


def test_project_and_user_choose_a_store(ctx: Ctx, project: Path, add: Add) -> None:
    add("--type=fact", "--tag=tier:reference", "Ours")
    add("--type=fact", "--tag=tier:reference", "--user", "Mine")
    for words in (["recall", "type:fact"], ["compose"]):
        ours, mine = ctx(*words, "--project").out, ctx(*words, "--user").out
        assert ("Ours" in ours, "Mine" in ours) == (True, False)
        assert ("Ours" in mine, "Mine" in mine) == (False, True)


@pytest.mark.parametrize("command", ["sessions", "learnings"])
def test_this_project_outside_of_any(folder: Path, ctx: Ctx, command: str) -> None:
    assert ctx(command, "list", "--project").err == (
        "error E011: You are not in a project.\n  To name one: --project-name NAME\n"
    )


def test_a_query_is_an_argument(folder: Path, ctx: Ctx, add: Add, piped: Piped) -> None:
    add("--type=fact", "One")
    add("--type=decision", "Two")
    assert "Two" not in ctx("compose", "type:fact").out
    assert "Two" not in ctx("export", "type:fact").out
    assert ctx("view", "create", "facts", "--budget=300", "type:fact").code == 0
    assert ctx("view", "update", "facts", "type:fact", "OR", "type:task").code == 0
    assert ctx("view", "create", "none").err.startswith("error E011: The query is missing.\n")
    for words in (["search", "-"], ["recall", "-"], ["query", "--as=nodes", "-"]):
        piped(b"One\n")
        assert "One" in ctx(*words).out
    assert ctx("compose", "type:fact", "--query=type:task").code == 2
    for name in ("backup.json", "/tmp/backup"):
        ran = ctx("export", name)
        assert (ran.code, ran.out) == (2, "")
        assert "ctx export --output FILE" in ran.err


def test_a_text_is_an_argument_or_comes_from_stdin(ctx: Ctx, project: Path, piped: Piped) -> None:
    for kind in ("task", "decision"):
        piped(b"Retry with jitter\n\nFive times.\n")
        added = ctx("add", kind, "-", "--format=json").json
        assert added["node"]["content"] == "Retry with jitter\n\nFive times."
        piped(b"Five times.\n")
        added = ctx("add", kind, "Retry", "--stdin", "--format=json").json
        assert added["node"]["content"] == "Retry\n\nFive times."
    assert ctx("add", "task", "Retry", "--stdin", "--body=x").code == 2
    piped(b"Migrations are never edited\n")
    assert "Migrations are never edited" in ctx("learnings", "add", "-").out
    assert ctx("learnings", "add", "Tests", "come", "first").code == 0
    assert ctx("learnings", "add").err.startswith("error E011: The text is missing.\n")


def test_words_after_an_option_belong_to_the_text(folder: Path, ctx: Ctx, add: Add) -> None:
    node = add("--type=fact", "One")
    assert ctx("update", node, "--type=decision", "Another text").code == 0
    assert "Another text" in ctx("search", "another", "--limit=3", "text").out
    assert ctx("update", node, "--tpye=decision", "Text").code == 2
