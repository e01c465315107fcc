"""Everyday commands in bad surroundings: nothing is lost, and the answer says what to do.

A home that cannot be written to, a terminal of 20 columns, the same command twice at once, and a
question that nobody answers.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from ctypes import CDLL
from pathlib import Path

import pytest

from tests.conftest import Ctx, git
from tests.e2e.terminals import on_a_terminal

_PR_CAPBSET_DROP = 24
_OVERRIDES = (1, 2)
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH: with them, root may write anywhere."""


def obey_permissions() -> None:
    """Take away what lets root ignore permissions. Called in the new process."""
    if os.geteuid() == 0:
        libc = CDLL(None)
        for capability in _OVERRIDES:
            libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)


def start(*words: str, prepare: Callable[[], None] | None = None, **variables: str) -> "Process":
    return subprocess.Popen(
        [sys.executable, "-m", "ctx", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **variables},
        preexec_fn=prepare,
    )


Process = subprocess.Popen[str]


def ended(process: Process) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=300)
    assert "E000" not in err, err
    assert "Traceback" not in err, err
    return process.returncode, out, err


def test_a_home_that_cannot_be_written_to(repo: Path, surroundings: Path) -> None:
    surroundings.chmod(0o555)
    try:
        for words in (["status"], ["list"], ["search", "x"], ["context"], ["pack", "fix it"]):
            code, _, err = ended(start(*words, prepare=obey_permissions))
            assert code == 0, err
        for words in (["add", "fact", "x"], ["install"], ["pause"], ["config", "set", "a", "b"]):
            code, out, err = ended(start(*words, prepare=obey_permissions))
            assert (code != 0, out) == (True, "")
            if words[0] != "config":
                assert err.startswith("error E014: Not permitted while ")
        code, out, _ = ended(start("doctor", prepare=obey_permissions))
        assert f"{surroundings} is not writable." in out
        assert list(surroundings.iterdir()) == []
        code, out, err = ended(start("init", prepare=obey_permissions))
        assert code == 0
        assert f"{surroundings}/.ctx cannot be written to" in err
    finally:
        surroundings.chmod(0o755)


def test_a_terminal_of_twenty_columns(folder: Path, ctx: Ctx) -> None:
    assert ctx("add", "--type=decision", "--tag=area:net", "We use SQLite with WAL mode").code == 0
    for words in (["list"], ["undo", "--list"], ["doctor"], ["view"], ["context", "--explain"]):
        shown = on_a_terminal(words, folder, columns=20)
        assert "E000" not in shown
        for line in shown.splitlines():
            # What is longer is one word, which the terminal breaks; a command is one, too.
            plain = re.sub(r"\x1b\[[0-9;]*m", "", line)
            assert len(plain) <= 20 or len(re.sub(r"`[^`]*`", "x", plain).split()) == 1, plain
    listed = on_a_terminal(["list", "--color=never"], folder, columns=20).split()
    assert listed[1:3] == ["type:", "decision"]
    assert "We use SQLite with WAL mode" in " ".join(listed)


def test_init_at_once(repo: Path, ctx: Ctx) -> None:
    for code, _, err in map(ended, [start("init") for _ in range(3)]):
        assert code == 0, err
    assert len(list((repo / ".ctx/heads").iterdir())) == 1
    assert ctx("debug", "verify").code == 0
    assert git("diff", "--cached", "--name-only").count(".ctx/config.toml") == 1


def test_install_at_once(folder: Path, surroundings: Path) -> None:
    for code, _, err in map(ended, [start("install") for _ in range(3)]):
        assert code == 0, err
    settings = json.loads((surroundings / ".claude/settings.json").read_text())
    assert {len(groups) for groups in settings["hooks"].values()} == {1}


@pytest.mark.parametrize("kind", ["fact", "task"])
def test_editing_a_node_at_once(repo: Path, ctx: Ctx, tmp_path: Path, kind: str) -> None:
    assert ctx("init").code == 0
    node = ctx("add", kind, "As it was").out.split()[1]
    script = tmp_path / "editor"
    # Both editors are open until both files exist.
    script.write_text(
        f'#!/bin/sh\ntouch "{tmp_path}/open-$$"\n'
        f'until [ "$(ls "{tmp_path}" | grep -c open-)" = 2 ]; do sleep 0.1; done\n'
        'echo "typed by $$" > "$1"\n'
    )
    script.chmod(0o755)
    started = [start("edit", node, EDITOR=str(script), TMPDIR=str(tmp_path)) for _ in range(2)]
    both = list(map(ended, started))
    (winner,) = [out for code, out, _ in both if code == 0]
    assert winner.endswith("(content)\n")
    (err,) = [err for code, _, err in both if code != 0]
    content = ctx("show", node, "--json").json["node"]["content"]
    kept = Path(err.split("Your text is in ")[1].strip().rstrip("."))
    assert kept.read_text().strip() != content
    assert content.startswith("typed by ")


def test_a_question_about_a_damaged_store_that_nobody_answers(
    folder: Path, ctx: Ctx, surroundings: Path
) -> None:
    for number in range(5):
        ctx("add", "fact", f"Number {number} " + "words " * 50)
    assert ctx("store", "backup").code == 0
    store = surroundings / ".ctx/store.db"
    data = bytearray(store.read_bytes())
    data[4096:] = b"\x99" * len(data[4096:])
    store.write_bytes(data)
    for name in ("store.db-wal", "store.db-shm"):
        (surroundings / ".ctx" / name).unlink(missing_ok=True)
    damaged = store.read_bytes()
    # Ctrl-D, on a terminal; and without one, there is no question.
    shown = on_a_terminal(["list"], folder, answer="\x04", columns=80)
    assert "[y/N] \nNothing changed.\n" in shown
    question = shown[shown.index("Recover the store") :]
    assert all(len(line) <= 80 for line in question.splitlines())
    ran = ctx("list")
    assert ran.code == 1
    assert "[y/N]" not in ran.err
    assert store.read_bytes() == damaged
