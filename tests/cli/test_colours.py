"""Colours: on a terminal that wants them, and nowhere else."""

import io
import os
import re
from pathlib import Path

import pytest

from ctx.cli.output import Block, Line, Output, Table
from ctx.cli.settings import Screen, Settings
from ctx.cli.terminal import KINDS, colour_text
from ctx.errors import NotAProject
from ctx.memory.model import NODE_TYPES
from tests.cli.test_output import Terminal
from tests.e2e.terminals import Running

BLOCKS: list[Block] = [
    Line("Nodes", "heading"),
    Table(
        ("id", "type", "age", "content", "tags"),
        [
            ("01M7", "fact", "2 h", "We use \x1b[31mSQLite", "tier:pinned"),
            ("01M6", "decision", "3 d", "Deploys run on Mondays", ""),
            ("01M5", "no-type", "", "設計", "a b"),
        ],
        ("id", "type", "age", "text", "tags"),
    ),
    Line("  … and 4 more", "dim"),
]


def test_a_table_in_colours() -> None:
    out = Terminal()
    Output(out, io.StringIO(), "text", Screen(True, 60)).show(None, lambda _: BLOCKS)
    assert out.getvalue().replace("\x1b", "^") == (
        "^[1mNodes^[0m\n"
        "  ^[2mid^[0m    ^[2mtype^[0m      ^[2mage^[0m  ^[2mcontent^[0m"
        "                 ^[2mtags^[0m\n"
        "  ^[33m01M7^[0m  ^[32mfact^[0m      ^[2m2 h^[0m  We use \\x1b[31mSQLite"
        "   ^[36mtier:pinned^[0m\n"
        "  ^[33m01M6^[0m  ^[1;35mdecision^[0m  ^[2m3 d^[0m  Deploys run on Mondays\n"
        "  ^[33m01M5^[0m  no-type        設計                    ^[36ma b^[0m\n"
        "^[2m  … and 4 more^[0m\n"
    )
    out = Terminal()
    Output(out, io.StringIO(), "text", Screen(True, 40)).show(None, lambda _: BLOCKS)
    assert out.getvalue().replace("\x1b", "^").splitlines()[2] == (
        "  ^[33m01M7^[0m  ^[32mfact^[0m      ^[2m2 h^[0m  We use \\x1b[31mS…"
    )


def test_no_colours_in_a_pipe_or_in_markdown() -> None:
    for form, out in (
        ("text", io.StringIO()),
        ("markdown", io.StringIO()),
        ("markdown", Terminal()),
    ):
        Output(out, io.StringIO(), form, Screen(True, 50)).show(None, lambda _: BLOCKS)
        assert "\x1b" not in out.getvalue()
        assert "We use \\" in out.getvalue()


def test_errors_and_warnings() -> None:
    err = Terminal()
    output = Output(io.StringIO(), err, "text", Screen(True, 80))
    output.error(NotAProject("No project store here."))
    output.warn("An old file.")
    output.note("Next: ctx commit")
    assert err.getvalue() == (
        "\x1b[1;31merror E012:\x1b[0m No project store here.\n"
        "  Run `ctx init` to create one.\n"
        "\x1b[33mwarning:\x1b[0m An old file.\n"
        "Next: ctx commit\n"
    )


def test_every_node_type_has_one_of_the_basic_colours() -> None:
    found = [colour_text(node_type, "type") for node_type in NODE_TYPES]
    found += [colour_text("x", kind) for kind in KINDS if KINDS[kind]]
    for text in found:
        assert re.fullmatch(r"\x1b\[(1;)?(3[1-6]|[12])m[\w-]+\x1b\[0m", text), repr(text)
    assert colour_text("", "id") == ""


def seen_by_a_terminal(folder: Path, *words: str, **environment: str) -> str:
    """What the program itself writes to a terminal, on stdout and stderr."""
    variables = {"TERM": "xterm", "NO_COLOR": "", **environment}
    running = Running(*words, on_terminal=True, folder=folder, **variables)  # type: ignore[arg-type]
    running.end()
    return running.shown


def test_the_surroundings_decide(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = "error E011: There is no command 'frobnicate'.\n  `ctx help --all` lists them.\n"
    coloured = bare.replace("error E011:", "\x1b[1;31merror E011:\x1b[0m")
    assert seen_by_a_terminal(folder, "frobnicate") == coloured
    assert seen_by_a_terminal(folder, "frobnicate", NO_COLOR="0") == bare
    assert seen_by_a_terminal(folder, "frobnicate", TERM="dumb") == bare
    # A table has headings on a terminal.
    monkeypatch.delenv("CTX_WORKER_AUTOSTART")
    words = ("config", "list", "--changed", "--set", "gc.keep_days=9")
    assert seen_by_a_terminal(folder, *words) == (
        "  \x1b[2msetting\x1b[0m       \x1b[2mvalue\x1b[0m  \x1b[2mfrom\x1b[0m\n"
        "  gc.keep_days  9      --set gc.keep_days=9\n"
    )


def test_the_width_of_the_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_terminal(*_: int) -> os.terminal_size:
        raise OSError

    monkeypatch.setattr(os, "get_terminal_size", no_terminal)
    for columns, expected in (
        ("40", 40),
        *((each, 80) for each in ("", "x", "0", "-5", "9" * 5000)),
    ):
        assert Settings({"COLUMNS": columns}, "").screen == Screen(True, expected)
    assert Settings({"NO_COLOR": "1"}, "").screen == Screen(False, 80)
