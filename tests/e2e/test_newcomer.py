"""What a newcomer types, on a terminal of 80 columns: screens fit, and none has a traceback."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.conftest import git
from tests.e2e.terminals import on_a_terminal

# `ID` is the node that the last `ctx add` printed, `FIRST` the one that the first printed.
TYPED = """
ctx
ctx status
ctx add "Deploys run on Mondays"
ctx add question "Who may deploy?" --no-tier
ctx add note "The proxy timed out"
ctx add fact
ctx list
ctx update FIRST "Deploys run on Fridays"
ctx summarize FIRST ID "Deploys are on Fridays"
ctx recall deploy
ctx pack deploy
ctx query type:fact
ctx init
ctx add decision "Use SQLite" --body "No server to run."
ctx add task "Retry failed payments"
ctx task start task_0001
ctx task
ctx context --explain
ctx list --limit 2
ctx delete ID
ctx undo
ctx config
ctx review
ctx code changed HEAD
ctx lsit
ctx llm "Why do payments fail?"
ctx help sessions
"""
ANSWERS = {"ctx init": "n\n"}


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A repository at a path of fixed length, because lines are broken where it does not fit."""
    with TemporaryDirectory(prefix="ctx-", dir="/tmp") as folder:
        space = Path(folder)
        for name in ("app", "home"):
            (space / name).mkdir()
        (space / "editor").write_text("#!/bin/sh\n:\n")
        (space / "editor").chmod(0o755)
        for variable, value in {
            "HOME": f"{space}/home",
            "CTX_HOME": f"{space}/home/.ctx",
            "PATH": "/usr/bin:/bin",
            "EDITOR": f"{space}/editor",
            "NO_COLOR": "1",
            "PAGER": "cat",
        }.items():
            monkeypatch.setenv(variable, value)
        monkeypatch.chdir(space / "app")
        (space / "app" / "deploy.py").write_text("def deploy(): ...\n")
        git("init", "-q", "-b", "main")
        git("add", "-A")
        git("commit", "-qm", "Deploy by hand")
        yield space / "app"


def test_the_screens_of_a_newcomer(shop: Path) -> None:
    ids: list[str] = []
    wide: list[str] = []
    for line in TYPED.strip().splitlines():
        names = {"ID": ids[-1], "FIRST": ids[0]} if ids else {}
        words = [names.get(word, word) for word in shlex.split(line)[1:]]
        screen = on_a_terminal(words, shop, columns=80, answer=ANSWERS.get(line, ""))
        # Progress, which only a slow machine shows, is overwritten.
        screen = re.sub(r"[^\n]*\r", "", screen.replace("\r\n", "\n"))
        ids += re.findall(r"^Added: (\w+)", screen)
        wide += [f"{line}: {row}" for row in screen.splitlines() if len(row) > 80]
        assert "Unexpected" not in screen
        assert "Traceback" not in screen
    assert wide == []
