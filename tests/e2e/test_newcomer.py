"""What a newcomer types, on a terminal of 80 columns, and what the screen shows.

The screens are in `tests/golden/newcomer.txt`; `CTX_TEST_RENEW=1` renews them.
"""

import re
import shlex
from pathlib import Path

import pytest

from tests.conftest import git
from tests.e2e.terminals import on_a_terminal
from tests.page_examples import RENEW, without_ids

GOLDEN = Path(__file__).parent.parent / "golden" / "newcomer.txt"

# `ID` is the node that the last `ctx add` printed, `FIRST` the one that the first printed.
TYPED = """
ctx
ctx status
ctx add "Deploys run on Mondays"
ctx add pattern "Errors carry a hint"
ctx add question "Who may deploy?" --no-tier
ctx add note "The proxy timed out"
ctx add fact
ctx list
ctx update FIRST "Deploys run on Fridays"
ctx summarize FIRST ID "Deploys are on Fridays"
ctx search deploy
ctx recall deploy
ctx pack deploy
ctx query deploy
ctx query type:fact
ctx init
ctx add decision "Use SQLite" --body "No server to run."
ctx add task "Retry failed payments"
ctx task list
ctx task start task_0001
ctx add "Retries need jitter"
ctx status
ctx log -n 3
ctx delete ID
ctx undo
ctx view
ctx sessions
ctx learnings
ctx config
ctx store
ctx code changed HEAD
ctx version
ctx history
ctx push
ctx ls
ctx lsit
ctx list -v
ctx llm "Why do payments fail?"
ctx help tiers
"""


@pytest.fixture
def shop(repo: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    (repo / "deploy.py").write_text("def deploy(): ...\n")
    git("add", "-A")
    git("commit", "-qm", "Deploy by hand")
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\n:\n")
    editor.chmod(0o755)
    monkeypatch.setenv("EDITOR", str(editor))
    monkeypatch.setenv("NO_COLOR", "1")
    return repo


def test_the_screens_of_a_newcomer(shop: Path) -> None:
    ids: list[str] = []
    screens = []
    for line in TYPED.strip().splitlines():
        names = {"ID": ids[-1], "FIRST": ids[0]} if ids else {}
        words = [names.get(word, word) for word in shlex.split(line)[1:]]
        # `ctx init` asks whether to move what was noted before.
        screen = on_a_terminal(words, shop, columns=80, answer=b"n\n").replace("\r\n", "\n")
        ids += re.findall(r"^Added: (\w+)", screen)
        assert [row for row in screen.splitlines() if len(row) > 80 and "/" not in row] == [], line
        assert "Unexpected" not in screen
        screens.append(f"$ {line}\n{_stable(screen)}")
    shown = "\n".join(screens)
    if RENEW:
        GOLDEN.write_text(shown)
    assert shown == GOLDEN.read_text()


def _stable(screen: str) -> str:
    """Without ids, times and sizes, and without what depends on their width."""
    text = re.sub(r"\bID-\d+-\w{8}\b", "RECEIPT", without_ids(screen))
    text = re.sub(r"\b\d{4}-\d\d-\d\d\b", "DAY", text)
    text = re.sub(r"(?<=\S)   +", "  ", text)
    text = re.sub(r"  (?:note )?project:app\b.*$", "  TAGS", text, flags=re.MULTILINE)
    # How the line with the path of the store breaks depends on the path.
    text = re.sub(r"(for app in).*?(?=\nAdded)", r"\1 …", text, flags=re.DOTALL)
    return re.sub(r"\d+\.\d (KiB|MB)", "SIZE", text)
