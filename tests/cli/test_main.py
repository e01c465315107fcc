"""The words of the command line that belong to no command, and what is said of mistakes."""

import os
import pwd
import sys
from pathlib import Path

import pytest

from ctx.cli import list as list_command
from ctx.cli import options
from ctx.cli.commands import COMMANDS, EVERYDAY, command_named
from ctx.errors import NodeNotFound
from tests.cli.conftest import Add
from tests.cli.test_output import Terminal
from tests.conftest import Ctx


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
    # The first word of a command may be one that can be left out.
    assert ctx("help", "add").out == ctx("add", "--help").out
    assert ctx("help", "add", "file").out == ctx("add", "file", "--help").out
    every = ctx("help", "--all").out
    assert [name for name in COMMANDS if f"\n  {name} " not in every] == []


def test_mistakes(ctx: Ctx, folder: Path) -> None:
    for words, message, hint in (
        (["store", "nonsense"], "'nonsense' is not one of: ", "`ctx store --help` lists them"),
        (["help", "store", "zzz"], "There is no command 'ctx store zzz'.", "`ctx store --help`"),
        (["list", "--format", "zzz"], "'zzz' is not one of: text,", "`ctx list --help` lists them"),
        (["rm"], "There is no command 'rm'.", "Did you mean `ctx delete`?"),
        (["serach"], "There is no command 'serach'.", "Did you mean `search`?"),
        (["version"], "There is no command 'version'.", "Did you mean `ctx --version`?"),
        (["push"], "There is no command", "The memory of a project is in git: `git push`."),
        (["horse"], "There is no command 'horse'.", "`ctx help --all` lists them."),
        (["list", "--limit", "-1"], "Argument -n/--limit: must be 0 or more.", "`ctx list --help`"),
        (["list", "--db", ""], "--db needs a file.", "Leave it out for the default"),
        (["--db=", "list"], "--db needs a file.", "Leave it out for the default"),
        (["list", "--set", "x"], "--set x has no value.", "Write --set KEY=VALUE, without"),
        (["list", "--set", "gc.kep_days=1"], "There is no setting", "Did you mean `gc.keep_days`?"),
        (["list", "-C", "/nowhere"], "/nowhere is not a folder.", "-C needs an existing"),
        (["add", "--type=fact", "\udcff"], "An argument is not valid UTF-8.", "Convert it first, "),
        (["list", "--color"], "--color needs a value.", "Write `--color auto|always|never`."),
        (["list", "-n"], "--limit needs a value.", "Write `--limit N`."),
        (["list", "-v"], "", "There is no verbose mode."),
        (["list", "--no-color"], "", "Did you mean `--color never`?"),
    ):
        ran = ctx(*words)
        assert (ran.code, ran.out) == (2, ""), words
        told, next_step = ran.err.splitlines()
        assert told.startswith(f"error E011: {message}")
        assert next_step.startswith(f"  {hint}")
    ran = ctx("list", "--set", "gc.keep_days=soon")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("error E013: --set gc.keep_days=soon: ")
    assert ctx("list", "--set", "gc.keep_days=3").code == 0


def test_a_hint_is_about_the_store_that_was_chosen(
    ctx: Ctx, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("my store.db", "../x.db"):
        assert ctx("--db", name, "add", "A fact").code == 0
    ran = ctx("--db", "my store.db", "show", "01ZZZZZZ")
    assert ran.err == (
        "error E020: No node has an id that begins with '01ZZZZZZ'.\n"
        "  `ctx --db 'my store.db' list` and `ctx --db 'my store.db' search WORDS` show ids.\n"
    )
    ran = ctx("-C", "..", "--db", "x.db", "show", "01ZZZZZZ", "--format=json")
    assert '"`ctx -C .. --db x.db list` and `ctx -C ..' in ran.err
    assert "`ctx list` and `ctx search WORDS`" in ctx("show", "01ZZZZZZ").err

    def run(*_: object) -> None:
        raise NodeNotFound("No.", hint="`ctx --db FILE list`, then `ctx init`.")

    monkeypatch.setattr(list_command, "run", run)
    hint = ctx("list", "--db", "x").err.splitlines()[1]
    assert hint == "  `ctx --db FILE list`, then `ctx --db x init`."


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


def test_a_home_that_is_no_whole_path(
    ctx: Ctx, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = folder / "theirs"
    theirs.mkdir()
    person = pwd.struct_passwd(("me", "x", 1, 1, "", str(theirs), "/bin/sh"))
    monkeypatch.delenv("CTX_HOME")
    monkeypatch.setattr(pwd, "getpwuid", lambda _: person)
    for home in ("", "somewhere"):
        monkeypatch.setenv("HOME", home)
        assert ctx("add", "--type=fact", "Deploys run on Mondays").code == 0
        assert [path.name for path in theirs.iterdir()] == [".ctx"]
        assert [path.name for path in folder.iterdir()] == ["theirs"]

    def nobody(_: int) -> pwd.struct_passwd:
        raise KeyError

    monkeypatch.setattr(pwd, "getpwuid", nobody)
    ran = ctx("list")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error E011: HOME is not set to a folder, and this user has no other")
    monkeypatch.setenv("CTX_HOME", os.devnull)
    ran = ctx("list")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("error E014: /dev/null is not a folder, so it cannot be the user st")


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


@pytest.mark.parametrize(("answer", "code"), [("n\n", 1), ("", 1), ("y\n", 0)])
def test_a_question_on_a_terminal(
    ctx: Ctx, add: Add, monkeypatch: pytest.MonkeyPatch, answer: str, code: int
) -> None:
    add("--type=fact", "Deploys run on Mondays")
    ran = ctx("forget", "deploys")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.endswith(
        "error E017: Confirmation needed: Delete 1 node?\n  Add --yes to skip the question.\n"
    )
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
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


def test_what_a_command_does_fits_a_screen_before_its_options() -> None:
    for name in set(COMMANDS) - {"help"}:
        _, parser = command_named(name)
        for each in (parser, *options.subcommands_of(parser).values()):
            lines = each.format_help().splitlines()
            headings = ("options:", "positional arguments:")
            heading = next(at for at, line in enumerate(lines) if line in headings)
            assert heading <= 24, each.prog


def test_words_before_a_command(ctx: Ctx, add: Add) -> None:
    for words in (["-C", "list"], ["-q"], ["--format", "json", "-q"]):
        ran = ctx(*words)
        assert (ran.code, ran.out, "No command given." in ran.err) == (2, "", True)
    assert ctx("-v").out.startswith("ctx ")
    node_id = add("--type=fact", "Deploys run on Mondays")
    # Dashes end the options before a command.
    assert ctx("--", "list").out.startswith(f"  {node_id}  fact  ")
    assert ctx("--format", "json", "--", "list").json["nodes"][0]["id"].startswith(node_id)
    assert ctx("--", "--help").err.startswith("error E011: There is no command '--help'.")
    assert ctx("--").out == ctx().out
    assert ctx("list", "--json").out == ctx("list", "--format=json").out
    assert ctx("show", "nowhere", "--json").err.startswith('{"error": ')
    assert "\x1b[" in ctx("list", "--color=always").out
    assert "\x1b[" not in ctx("list", "--color=never").out
    assert ctx("config", "--format", "json", "list").json["settings"]
    assert ctx("config", "--json").json == ctx("config", "list", "--changed", "--json").json
    assert ctx("sessions", "--all", "--json").json["sessions"] == []
