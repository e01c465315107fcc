"""The words of the command line that belong to no command, and what is said of mistakes."""

import argparse
import os
import pwd
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctx.cli import list as list_command
from ctx.cli import options
from ctx.cli.commands import COMMANDS, EVERYDAY, command_named
from ctx.errors import NodeNotFound
from tests.cli.conftest import Add
from tests.cli.test_output import Terminal
from tests.conftest import Ctx


@pytest.mark.parametrize("words", [["-C", "list"], ["-q"], ["--format", "json", "-q"]])
def test_options_without_a_command_are_a_mistake(ctx: Ctx, words: list[str]) -> None:
    ran = ctx(*words)
    assert (ran.code, ran.out) == (2, "")
    assert "No command given." in ran.err
    assert ctx().code == 0


def test_dashes_end_the_options_before_a_command(ctx: Ctx, add: Add) -> None:
    node_id = add("--type=fact", "Deploys run on Mondays")
    assert ctx("--", "list").out.startswith(f"  {node_id}  fact  ")
    assert ctx("--format", "json", "--", "list").json["nodes"][0]["id"].startswith(node_id)
    assert ctx("--", "--help").err.startswith("error E011: There is no command '--help'.")
    assert ctx("--").out == ctx().out


def test_help_in_every_form(ctx: Ctx) -> None:
    text = ctx("help", "list").out
    assert text.startswith("usage: ctx list ")
    for words in (
        ["--format", "json", "help", "list"],
        ["help", "--format", "json", "list"],
        ["help", "list", "--format=json"],
        ["list", "--help", "--format", "json"],
        ["--format", "json", "-C", "/", "-h", "list"],
    ):
        assert ctx(*words).json == {"help": text}, words
    for words in (["list", "-h"], ["help", "list", "--help"], ["-q", "help", "list"]):
        assert ctx(*words) == (0, text, ""), words
    assert ctx("--format", "markdown", "help", "list").out == f"```\n{text}```\n"
    assert ctx("help", "--format", "json").json == {"help": ctx().out}
    inner = ctx("help", "config", "set").out
    assert ctx("help", "config", "--format", "json", "set").json == {"help": inner}


def test_help_of_a_command_whose_first_word_may_be_left_out(ctx: Ctx) -> None:
    assert ctx("help", "add").out == ctx("add", "--help").out
    assert ctx("help", "add", "file").out == ctx("add", "file", "--help").out


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (["store", "nonsense"], "'nonsense' is not one of: ", "`ctx store --help` lists them"),
        (["help", "store", "zzz"], "There is no command 'ctx store zzz'.", "`ctx store --help`"),
        (["list", "--format", "zzz"], "'zzz' is not one of: text,", "`ctx list --help` lists them"),
        (["get", "01"], "There is no command 'get'.", "Did you mean `ctx show`?"),
        (["rm"], "There is no command 'rm'.", "Did you mean `ctx delete`?"),
        (["find"], "There is no command 'find'.", "Did you mean `ctx search`?"),
        (["serach"], "There is no command 'serach'.", "Did you mean `search`?"),
        (["list", "--limit", "-1"], "Argument -n/--limit: must be 0 or more.", "`ctx list --help`"),
        (["list", "--db", ""], "--db needs a file.", "Leave it out for the default"),
        (["--db=", "list"], "--db needs a file.", "Leave it out for the default"),
        (["list", "--set", "x"], "--set x has no value.", "Write --set KEY=VALUE, without"),
        (
            ["list", "--set", "gc.kep_days=1"],
            "There is no setting `gc.kep_days`.",
            "Did you mean `gc.keep_days`?",
        ),
        (["list", "-C", "/nowhere"], "/nowhere is not a folder.", "-C needs an existing"),
        (
            ["add", "--type=fact", "\udcff"],
            "An argument is not valid UTF-8.",
            "Convert it first, for",
        ),
    ],
)
def test_mistakes(ctx: Ctx, folder: Path, words: list[str], message: str, hint: str) -> None:
    ran = ctx(*words)
    assert (ran.code, ran.out) == (2, "")
    told, next_step = ran.err.splitlines()
    assert told.startswith(f"error E011: {message}")
    assert next_step.startswith(f"  {hint}")


def test_a_setting_with_a_wrong_value_is_refused_by_every_command(ctx: Ctx, folder: Path) -> None:
    ran = ctx("list", "--set", "gc.keep_days=soon")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("error E013: --set gc.keep_days=soon: ")
    assert ctx("list", "--set", "gc.keep_days=3").code == 0


def test_a_hint_is_about_the_store_that_was_chosen(ctx: Ctx, folder: Path) -> None:
    ran = ctx("--db", "my store.db", "show", "01ZZZZZZ")
    assert ran.err == (
        "error E020: No node has an id that begins with '01ZZZZZZ'.\n"
        "  `ctx --db 'my store.db' list` and `ctx --db 'my store.db' search WORDS` show ids.\n"
    )
    ran = ctx("-C", "..", "--db", "x.db", "show", "01ZZZZZZ", "--format=json")
    assert '"`ctx -C .. --db x.db list` and `ctx -C ..' in ran.err
    assert "`ctx list` and `ctx search WORDS`" in ctx("show", "01ZZZZZZ").err


def test_a_hint_that_names_another_store_keeps_it(
    ctx: Ctx, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*_: object) -> None:
        raise NodeNotFound("No.", hint="`ctx --db FILE list`, then `ctx init`.")

    monkeypatch.setattr(list_command, "run", run)
    assert ctx("list", "--db", "x").err.splitlines()[1] == (
        "  `ctx --db FILE list`, then `ctx --db x init`."
    )


@pytest.mark.parametrize(
    ("words", "is_json"),
    [
        (["list", "--format", "json", "--bad"], True),
        (["list", "--bad", "--format=json"], True),
        (["add", "--", "--format", "json"], False),
        (["add", "flie", "say --format json"], False),
        (["add", "flie", "--format=jsonl"], False),
    ],
)
def test_an_error_in_the_options_has_the_format_that_they_name(
    ctx: Ctx, folder: Path, words: list[str], is_json: bool
) -> None:
    assert ctx(*words).err.startswith("{") is is_json


@pytest.mark.parametrize("home", ["", "somewhere"])
def test_a_home_that_is_no_whole_path(
    ctx: Ctx, folder: Path, home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = folder / "theirs"
    theirs.mkdir()
    person = pwd.struct_passwd(("me", "x", 1, 1, "", str(theirs), "/bin/sh"))
    monkeypatch.setenv("HOME", home)
    monkeypatch.delenv("CTX_HOME")
    monkeypatch.setattr(pwd, "getpwuid", lambda _: person)
    assert ctx("add", "--type=fact", "Deploys run on Mondays").code == 0
    assert [path.name for path in theirs.iterdir()] == [".ctx"]
    assert [path.name for path in folder.iterdir()] == ["theirs"]

    def nobody(_: int) -> pwd.struct_passwd:
        raise KeyError

    monkeypatch.setattr(pwd, "getpwuid", nobody)
    assert ctx("list") == (
        2,
        "",
        (
            "error E011: HOME is not set to a folder, and this user has no other home.\n"
            "  Set HOME or CTX_HOME to the absolute path of a folder.\n"
        ),
    )


def test_a_user_store_that_is_no_folder(
    ctx: Ctx, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CTX_HOME", os.devnull)
    assert ctx("list") == (
        1,
        "",
        (
            "error E014: /dev/null is not a folder, so it cannot be the user store.\n"
            "  Set CTX_HOME to a folder, or unset it for ~/.ctx.\n"
        ),
    )


def test_an_internal_error_shows_its_traceback_with_ctx_debug(
    ctx: Ctx, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*_: object) -> None:
        raise ZeroDivisionError("a mistake")

    monkeypatch.setattr(list_command, "run", run)
    ran = ctx("list")
    first, hint = ran.err.splitlines()
    assert ran.code == 1
    assert first.startswith("error E000: Unexpected ZeroDivisionError: a mistake (")
    assert hint == "  This is a bug in ctx. Set CTX_DEBUG=1 to see the traceback."
    monkeypatch.setenv("CTX_DEBUG", "1")
    lines = ctx("list").err.splitlines()
    assert lines[0] == first
    assert lines[1] == "Traceback (most recent call last):"
    assert lines[-2] == "ZeroDivisionError: a mistake"
    assert lines[-1] == "  This is a bug in ctx. Please report the lines above."


def test_a_question_in_a_pipe(ctx: Ctx, add: Add, monkeypatch: pytest.MonkeyPatch) -> None:
    add("--type=fact", "Deploys run on Mondays")
    ran = ctx("forget", "deploys")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.endswith(
        "error E017: Confirmation needed: Delete 1 node?\n  Add --yes to skip the question.\n"
    )


@pytest.mark.parametrize(("answer", "code"), [("n\n", 1), ("", 1), ("y\n", 0)])
def test_a_question_on_a_terminal(
    ctx: Ctx, add: Add, monkeypatch: pytest.MonkeyPatch, answer: str, code: int
) -> None:
    add("--type=fact", "Deploys run on Mondays")
    terminal = Terminal(answer)
    monkeypatch.setattr(sys, "stdin", terminal)
    ran = ctx("forget", "deploys")
    assert ran.code == code
    assert "Delete 1 node? [y/N] " in ran.err
    # A terminal ends the line that somebody types; at the end of the input nobody does.
    line_end = "" if answer else "\n"
    assert ran.err.endswith(f"[y/N] {line_end}Nothing changed.\n") is (code == 1)
    assert "error" not in ran.err


@pytest.mark.parametrize("group", ["view", "sessions", "learnings", "config", "worker", "store"])
def test_a_group_alone_shows_its_state(ctx: Ctx, group: str) -> None:
    assert ctx("status").code == 0
    ran = ctx(group)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out
    assert ctx(group, "--json").json == ctx("--json", group).json
    assert ctx(group, "--help").out.startswith(f"usage: ctx {group} ")


def test_options_before_a_subcommand_are_those_of_every_command(ctx: Ctx) -> None:
    assert ctx("config", "--format", "json", "list").json["settings"]
    assert ctx("config", "--json").json == ctx("config", "list", "--changed", "--json").json
    assert ctx("sessions", "--all", "--json").json["sessions"] == []


def test_json_is_short_for_its_format(ctx: Ctx) -> None:
    assert ctx("list", "--json").out == ctx("list", "--format=json").out
    assert ctx("show", "nowhere", "--json").err.startswith('{"error": ')


def test_colours_can_be_forced(ctx: Ctx) -> None:
    ctx("add", "Deploys run on Mondays")
    assert "\x1b[" in ctx("list", "--color=always").out
    assert "\x1b[" not in ctx("list", "--color=never").out


def test_options_of_other_programs(ctx: Ctx) -> None:
    assert ctx("-v").out.startswith("ctx ")
    assert "There is no verbose mode." in ctx("list", "-v").err
    assert "Did you mean `--color never`?" in ctx("list", "--no-color").err


def test_ctx_alone_is_an_overview_that_fits_a_screen(ctx: Ctx) -> None:
    text = ctx().out
    lines = text.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    named = {name for group in EVERYDAY.values() for name in group}
    assert 18 <= len(named) <= 22
    assert named <= set(COMMANDS)
    assert ctx("help").out == text
    assert text.rstrip() in ctx("--help").out


def test_all_commands_are_listed_on_request(ctx: Ctx) -> None:
    text = ctx("help", "--all").out
    assert [name for name in COMMANDS if f"\n  {name} " not in text] == []


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("version", "Did you mean `ctx --version`?"),
        ("history", "Did you mean `ctx log`,"),
        ("push", "The memory of a project is in git: `git push`."),
        ("merge", "The memory of a project is in git: `git merge`."),
        ("ls", "Did you mean `ctx list`?"),
        ("rm", "Did you mean `ctx delete`?"),
        ("lsit", "Did you mean `list`?"),
        ("reveiw", "Did you mean `review`?"),
        ("frobnicate", "`ctx help --all` lists them."),
        ("horse", "`ctx help --all` lists them."),
    ],
)
def test_wrong_guesses(ctx: Ctx, word: str, hint: str) -> None:
    assert hint in ctx(word).err


HEADINGS = ("options:", "positional arguments:")


def parsers() -> Iterator[argparse.ArgumentParser]:
    for name in set(COMMANDS) - {"help"}:
        _, parser = command_named(name)
        yield parser
        yield from options.subcommands_of(parser).values()


def test_what_a_command_does_fits_a_screen_before_its_options() -> None:
    for parser in parsers():
        lines = parser.format_help().splitlines()
        heading = next(at for at, line in enumerate(lines) if line in HEADINGS)
        assert heading <= 24, parser.prog


def test_an_option_without_its_value_names_the_values(ctx: Ctx) -> None:
    assert ctx("list", "--color").err == (
        "error E011: --color needs a value.\n  Write `--color auto|always|never`.\n"
    )
    assert ctx("list", "-n").err == "error E011: --limit needs a value.\n  Write `--limit N`.\n"
