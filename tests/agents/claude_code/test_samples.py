"""Payloads of a real client become a row in the store, or are refused."""

import json
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ctx import clock
from ctx.agents.claude_code.hooks import ClaudeHooks
from ctx.agents.known_hosts import HOSTS
from ctx.agents.runtime.hook import Hook, answer
from ctx.capture import event_store
from ctx.errors import ContentRefused
from ctx.hook_files import live, spool
from tests.agents.claude_code.hook_processes import NOTHING, SAMPLES, SILENT, WORDS, reap
from tests.conftest import Ctx

# What becomes of each: `CTX_TEST_RENEW=1 pytest tests/capture/test_capture.py` writes it anew.
STEPS = json.loads((SAMPLES.parent / "steps.json").read_text())
# Which names there are in the environment of each event: that is no sample of an event.
NO_SAMPLE = "_env_names_by_event"
WORD_OF = {spool.EVENTS[word]: word for word in WORDS}
NAMES = sorted(path.stem for path in SAMPLES.iterdir() if path.stem != NO_SAMPLE)
KEPT = [name for name in NAMES if name.split(".")[0] in WORD_OF]
# Events that no hook of ours is registered for, or that are not stored.
REFUSED = [name for name in NAMES if name not in KEPT]


@pytest.fixture
def home(surroundings: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The home of a user with one node. Background processes of hooks do nothing."""
    assert ctx("add", "--type=fact", "--tag=tier:pinned", "Money is in cents.").code == 0
    monkeypatch.setattr(sys, "executable", shutil.which("true"))
    yield surroundings / ".ctx"
    reap()


def run_hook(home: Path, word: str, said: bytes) -> bytes:
    environment = {"CTX_HOME": str(home), "CLAUDE_PID": "1", "CTX_WORKER_AUTOSTART": "0"}
    return answer(Hook(word, [], environment, ClaudeHooks()), lambda: said)


def rows(home: Path) -> dict[str, list[Any]]:
    with closing(sqlite3.connect(home / "store.db")) as connection:
        found = connection.execute(
            "SELECT id, session, event, at, folder, tool, tool_use, status, attempts, reason, body"
            " FROM events"
        ).fetchall()
    return {each[0]: [*each[1:-1], json.loads(each[-1]) if each[-1] else None] for each in found}


def test_valid_samples_are_stored(home: Path, ctx: Ctx) -> None:
    assert len(KEPT) == 35
    expected = {}
    for number, name in enumerate(KEPT):
        said, event = (SAMPLES / f"{name}.json").read_bytes(), name.split(".")[0]
        # Each as the first event of a session.
        session = json.loads(said)["session_id"]
        said = said.replace(session.encode(), f"{number:02d}{session[2:]}".encode())
        told = json.loads(said)
        word = WORD_OF[event]
        check_printed(word, run_hook(home, word, said), name)
        found = live.read(str(home), told["session_id"])
        assert (found == f"1\n{told['cwd']}\n") == (word == "session-start"), name
        (spooled,) = (
            each for each in spool.pending_names(str(home)) if spool.kind_of(each) == word
        )
        event_id = spool.id_of(spooled)
        assert Path(spool.path_of(str(home), spooled)).read_bytes() == said
        at = clock.iso(spool.made_ms(event_id))
        place = told["cwd"], told.get("tool_name"), told.get("tool_use_id")
        step = STEPS[name]
        became = step["status"], 1, step["reason"], step["body"]
        expected[event_id] = [told["session_id"], event, at, *place, *became]
        applied = ctx("hook", "apply", "--format", "json").json
        assert (applied["events"], applied["refused"], applied["stops"]) == (1, [], []), name
    assert not (home / "hook.log").exists()
    assert rows(home) == expected
    assert spool.pending_names(str(home)) == []


def check_printed(word: str, printed: bytes, name: str) -> None:
    if word == "prompt-submit":
        assert printed == NOTHING.out, name
    elif word == "session-start":
        given = json.loads(printed)
        assert given["hookSpecificOutput"]["hookEventName"] == "SessionStart"
        assert "systemMessage" in given
    else:
        assert printed == SILENT.out, name


def test_unknown_samples_are_refused(home: Path, ctx: Ctx) -> None:
    assert len(REFUSED) == 24
    for name in REFUSED:
        said = (SAMPLES / f"{name}.json").read_bytes()
        for word in WORDS:
            if name.split(".")[0] == spool.EVENTS[word]:
                continue
            with pytest.raises(ContentRefused) as refused:
                event_store.read(f"1768906800123-4242-9f3a1c77.{word}", said, HOSTS)
            assert refused.value.message == f"It is a different event than {spool.EVENTS[word]}."
        # A client in which somebody has registered one of our hooks for it gets no harm.
        assert run_hook(home, "post-tool-use", said) == SILENT.out
    applied = ctx("hook", "apply", "--format", "json").json
    assert (applied["events"], len(applied["refused"])) == (0, len(REFUSED))
    assert rows(home) == {}
    assert spool.pending_names(str(home)) == []
