"""One meaning of `--project`, one way to give a text or a query."""

import argparse
from pathlib import Path

from ctx.cli import commands, options
from tests.cli.conftest import Add, Piped
from tests.conftest import Ctx
from tests.e2e.terminals import on_a_terminal


def test_options_mean_the_same_everywhere() -> None:
    for name in set(commands.COMMANDS) - {"help"}:
        parser = commands.command_named(name)[1]
        for each in (parser, *options.subcommands_of(parser).values()):
            known = {
                option: action
                for option, action in each._option_string_actions.items()
                if action.help != argparse.SUPPRESS
            }
            for option in {"--project", "--user"} & known.keys():
                assert known[option].nargs == 0, f"`{each.prog} {option}` takes a value"
            older = {"--query", "--content", "--text", "--scope"} & known.keys()
            assert not older or name == "rebuild", f"`{each.prog} {older}`"


def test_project_takes_no_name(project: Path, ctx: Ctx, add: Add) -> None:
    add("--type=fact", "--tag=project:shop", "The shop wal is large")
    for words in (
        ["search", "--project", "shop", "wal"],
        ["search", "--project=shop", "wal"],
        ["recall", "--project", "shop", "wal"],
        ["query", "--as=nodes", "--project", "shop"],
        ["compose", "--project", "shop"],
        ["list", "--project", "shop"],
        ["sessions", "list", "--project", "shop"],
        ["import", "--from=jsonl", "--project", "shop"],
    ):
        ran = ctx(*words)
        assert (ran.code, ran.out) == (2, "")
        assert "write --project-name shop" in ran.err
    # A word that names none may follow.
    add("--type=fact", "--tag=tier:reference", "The wal of this shop is small")
    add("--type=fact", "--tag=tier:reference", "--user", "Mine")
    for words in (["--project", "wal"], ["shop", "--project"], ["--project", "--", "shop"]):
        assert "is small" in ctx("search", *words).out
    for command in (["recall", "type:fact"], ["compose"]):
        ours, mine = ctx(*command, "--project").out, ctx(*command, "--user").out
        assert ("is small" in ours, "Mine" in ours) == (True, False)
        assert ("is small" in mine, "Mine" in mine) == (False, True)
    (project / "shop").write_text('{"content": "Of a file"}')
    assert ctx("import", "--from=jsonl", "--project", "shop").code == 0
    ran = ctx("pause", "--project", "shop")
    assert (ran.code, "--project-name" in ran.err) == (2, False)
    for group in ("sessions", "learnings"):
        assert ctx("-C", str(project.parent), group, "list", "--project").err == (
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
    # Hints about older options are for people.
    words = ["compose", "--query=type:fact"]
    assert ctx(*words)[::2] == (0, "")
    hint = "--query: give the query as an argument, in quotes."
    assert hint in on_a_terminal(words, folder).splitlines()
