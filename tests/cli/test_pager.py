"""Answers that are longer than the terminal."""

import fcntl
import struct
import termios
from pathlib import Path

import pytest

from tests.conftest import Ctx
from tests.e2e.terminals import on_a_terminal


def with_rows(rows: int) -> None:
    size = struct.pack("HHHH", rows, 80, 0, 0)
    fcntl.ioctl(1, termios.TIOCSWINSZ, size)


@pytest.fixture
def notes(ctx: Ctx, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder with much to read, and a pager that says that it was used."""
    for number in range(6):
        assert ctx("add", f"Server {number} has its own deploy").code == 0
    script = tmp_path / "pager"
    script.write_text("#!/bin/sh\necho paged; cat\n")
    script.chmod(0o755)
    monkeypatch.setenv("PAGER", str(script))
    monkeypatch.setenv("TERM", "xterm")
    return folder


def shown(words: list[str], folder: Path, rows: int) -> str:
    return on_a_terminal(words, folder, prepare=lambda: with_rows(rows))


def test_a_long_pack_goes_through_a_pager(notes: Path) -> None:
    text = shown(["pack", "deploy"], notes, 10)
    assert text.startswith("paged")
    assert "Server 1 has its own deploy" in text
    assert not shown(["pack", "deploy"], notes, 500).startswith("paged")
    assert not shown(["pack", "deploy", "--no-pager"], notes, 10).startswith("paged")
    assert not shown(["pack", "deploy", "--json"], notes, 10).startswith("paged")


@pytest.mark.parametrize(
    ("pager", "server"),
    [
        ("no-such-program", "Server"),
        ("  ", "Server"),
        ("LESS=S no-such-program", "Server"),
        ("sed 's/Server/Host/' | cat", "Host"),
    ],
)
def test_a_pager_may_be_missing_or_a_pipeline(
    notes: Path, monkeypatch: pytest.MonkeyPatch, pager: str, server: str
) -> None:
    monkeypatch.setenv("PAGER", pager)
    assert f"{server} 1 has its own deploy" in shown(["pack", "deploy"], notes, 10)
