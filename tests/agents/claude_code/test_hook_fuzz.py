"""A hook works safely with any input.

It ends with 0, prints nothing or one JSON object that the client accepts, writes only into its own
home, and writes a line to its log if and only if something was wrong.
"""

import json
import os
import re
import shutil
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from ctx import disk
from ctx.agents.claude_code.hooks import ClaudeHooks
from ctx.agents.codex.hooks import CodexHooks
from ctx.agents.gemini.hooks import GeminiHooks
from ctx.agents.runtime.hook import Hook, answer
from ctx.agents.runtime.host_hooks import HostHooks
from ctx.hook_files import live, spool
from ctx.hosts.hook_events import HookAnswer
from tests import effort
from tests.agents.claude_code.hook_inputs import LONE, Inputs
from tests.agents.claude_code.hook_processes import NOTHING, SILENT, WORDS, Hooks, Ran, reap, sample
from tests.conftest import Ctx

IN_PROCESS = effort.times(400)
SEED = 20260120

OTHER_HOSTS = (CodexHooks(), GeminiHooks())
OTHER_WORDS = (
    *("session-start", "prompt-submit", "stop", "post-tool-use"),
    *("pre-compact", "session-end"),
)
CAPTURED = ("post-tool-use", "post-tool-use-failure", "subagent-stop", "stop")


class Home:
    """A home in which a hook runs repeatedly, and the files that each run leaves."""

    def __init__(self, word: str, path: Path, host: HostHooks | None = None) -> None:
        self.word = word
        self.host = host or ClaudeHooks()
        self.path = str(path)

    def check(self, said: bytes, ran: Ran) -> None:
        """Check and remove the files of one run."""
        told = f"{self.word} {said[:300]!r}"
        assert (ran.code, ran.err) == (0, b""), told
        check_printed(self.word, ran.out, told, self.host)
        is_kept, fewest, most = expected(self.word, said)
        self._forget_claims()
        assert self._take_kept() == [said] * is_kept, told
        lines = self._take_lines()
        assert fewest <= len(lines) <= most, f"{told}: {lines}"
        assert all(re.fullmatch(r"\S+Z [a-z-]+ .{5,500}", each) for each in lines), lines
        if not is_kept:
            assert ran.out == self.host.nothing, told

    def _take_kept(self) -> list[bytes]:
        kept = []
        for name in spool.pending_names(self.path):
            path = spool.path_of(self.path, name)
            if spool.kind_of(name) == self.word:
                kept.append(disk.read(path))
            os.unlink(path)
        return kept

    def _forget_claims(self) -> None:
        """Remove the claims, so that a repeated start is not taken for a duplicate."""
        if self.word == "session-start":
            folder = live.path_of(self.path, "")
            for name in disk.names(folder):
                if ".start-" in name:
                    os.unlink(f"{folder}{name}")

    def _take_lines(self) -> list[str]:
        path = f"{self.path}/hook.log"
        lines = disk.read_or_none(path)
        if lines is None:
            return []
        os.unlink(path)
        return lines.decode().splitlines()


def expected(word: str, said: bytes) -> tuple[bool, int, int]:
    """Whether an event is stored, and the minimum and maximum of its log lines."""
    if not (said.startswith(b"{") and said.rstrip().endswith(b"}")):
        return False, 1, 1
    if word in CAPTURED:
        # They are not looked at until there is time.
        return True, 0, 0
    try:
        event = json.loads(said)
    except (ValueError, RecursionError):
        event = None
    session = event.get("session_id") if isinstance(event, dict) else None
    if not isinstance(session, str) or not live.is_session(session):
        return word == "session-end", 1, 1
    # A folder that no file system could have cannot be looked at; one that is missing can.
    folder = event.get("cwd")
    is_odd = isinstance(folder, str) and ("\0" in folder or folder != _as_utf8(folder))
    return True, 0, int(is_odd)


def _as_utf8(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def check_printed(word: str, out: bytes, told: str, host: HostHooks) -> None:
    """Check that the output is empty or one JSON object that the client accepts for this event."""
    if out in (SILENT.out, NOTHING.out):
        return
    assert out.endswith(b"}\n"), told
    assert out.count(b"\n") == 1, told
    printed: dict[str, Any] = json.loads(out)
    assert word == ("prompt-submit" if host.starts_with_prompt else "session-start"), told
    assert printed.keys() <= {"hookSpecificOutput", "systemMessage"}, told
    assert "\n" not in printed.get("systemMessage", "")
    given = printed["hookSpecificOutput"]
    assert given.keys() == {"hookEventName", "additionalContext"}, told
    event = spool.EVENTS[word]
    named = json.loads(host.write(event, HookAnswer("x")))["hookSpecificOutput"]
    assert given["hookEventName"] == named["hookEventName"], told
    assert 0 < host.length(given["additionalContext"]) <= host.largest_answer, told


def check_files(home: Path) -> None:
    """Check that there are only the private files of a hook."""
    for path in home.rglob("*"):
        mode = path.lstat().st_mode & 0o777
        assert mode == (0o700 if path.is_dir() else 0o600), f"{path}: {mode:o}"
    assert {path.name for path in home.iterdir()} <= {
        *("anchored", "backups", "first-run", "hook.log", "live", "repositories"),
        *("spool", "tend.lock"),
        *("store.db", "store.db-shm", "store.db-wal"),
    }
    assert [name for name in os.listdir(home / "spool") if name.startswith("tmp-")] == []
    names = os.listdir(home / "live") if (home / "live").exists() else []
    plain = [re.sub(r"\.(stop|state|receipt|prompted|source)$", "", name) for name in names]
    assert [name for name in plain if not live.is_session(name)] == []
    assert [name for name in plain if re.search(r"\.\d+\.tmp$", name)] == []


def outside(space: Path) -> dict[str, tuple[int, int]]:
    """Every file outside of the home, with its modification time."""
    return {
        str(path): (path.lstat().st_mtime_ns, path.lstat().st_size)
        for path in (space, *space.rglob("*"))
    }


@pytest.fixture
def shop(surroundings: Path, folder: Path, ctx: Ctx) -> Path:
    """A folder with a prepared context, made by the owner of the home."""
    for tier in ("pinned", "reference"):
        assert ctx("add", "--type=fact", f"--tag=tier:{tier}", f"What is {tier}.").code == 0
    home = surroundings / ".ctx"
    said = sample("SessionStart.startup", cwd=str(folder))
    spool.put(str(home), spool.new_id(0), "session-start", said)
    assert ctx("hook", "apply").code == 0
    (home / spool.FOLDER / "LOCK").unlink()
    (home / "first-run").touch(0o600)
    return folder


@pytest.fixture
def quick_home(shop: Path, surroundings: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the home in a separate folder."""
    folder = tmp_path_factory.mktemp("home")
    return Path(shutil.copytree(surroundings / ".ctx", folder / ".ctx"))


@pytest.mark.parametrize("word", WORDS)
def test_hooks_survive_any_input_in_this_process(
    word: str, shop: Path, quick_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a hook would start a whole interpreter, it starts a program that does nothing."""
    monkeypatch.setattr(sys, "executable", shutil.which("true"))
    environment = {"HOME": str(quick_home.parent), "CTX_HOME": str(quick_home)}
    environment["CTX_WORKER_AUTOSTART"] = "0"
    home = Home(word, quick_home)
    inputs = Inputs(SEED, spool.EVENTS[word], shop)
    before = outside(tmp_path), os.listdir(quick_home.parent)
    for said in (*inputs.huge(), *islice(inputs, IN_PROCESS)):
        printed = answer(Hook(word, [], environment, ClaudeHooks()), lambda said=said: said)  # type: ignore[misc]
        home.check(said, Ran(0, printed, b""))
        reap()
    check_files(quick_home)
    assert (outside(tmp_path), os.listdir(quick_home.parent)) == before


@pytest.mark.parametrize("word", OTHER_WORDS)
@pytest.mark.parametrize("host", OTHER_HOSTS, ids=lambda host: host.spool_name)
def test_hooks_of_other_hosts_survive_any_input(
    host: HostHooks, word: str, shop: Path, quick_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hosts whose payloads have the fields of Claude Code's, with the same inputs."""
    monkeypatch.setattr(sys, "executable", shutil.which("true"))
    environment = {"HOME": str(quick_home.parent), "CTX_HOME": str(quick_home)}
    environment["CTX_WORKER_AUTOSTART"] = "0"
    home = Home(word, quick_home, host)
    for said in islice(Inputs(SEED + 2, spool.EVENTS[word], shop), IN_PROCESS // 4):
        printed = answer(Hook(word, [], environment, host), lambda said=said: said)  # type: ignore[misc]
        home.check(said, Ran(0, printed, b""))
        reap()
    check_files(quick_home)


COMMAND = "<ctx:remember type='fact'>One.</ctx:remember>"
ODD_COMMANDS: dict[str, dict[str, Any]] = {
    "in a list": {"last_assistant_message": [COMMAND]},
    "where a session should be": {"session_id": COMMAND},
    "half a character": {"last_assistant_message": f"{COMMAND}{LONE}"},
    "no character": {"last_assistant_message": COMMAND.replace("One", "One\0")},
    "many": {"last_assistant_message": "<ctx:remember type='fact'>" * 500},
    "long": {"last_assistant_message": COMMAND.replace("One", "One " * 300_000)},
    "deep": {"cwd": json.loads("[" * 900 + "]" * 900), "last_assistant_message": COMMAND},
}


@pytest.mark.parametrize("changed", ODD_COMMANDS.values(), ids=ODD_COMMANDS)
def test_commands_in_unusual_events_run_or_are_refused(
    changed: dict[str, Any], shop: Path, surroundings: Path
) -> None:
    """A full process runs them, or refuses the event and sets it aside."""
    hooks = Hooks(surroundings / ".ctx", shop)
    event = json.loads(hooks.event("stop"))
    for said in (json.dumps({**event, **changed}).encode(), b"{" + COMMAND.encode() + b"}"):
        ran = hooks.run("stop", said)
        assert (ran.code, ran.err) == (0, b"")
        assert ran == NOTHING or json.loads(ran.out).keys() == {"systemMessage"}
        hooks.settle()
    assert hooks.spooled() == []
    assert len(spool.failed_names(str(hooks.home))) == 1 + ("session_id" in changed)
    assert len([each for each in hooks.log() if each.startswith("stop ")]) <= 2
    hooks.close()
