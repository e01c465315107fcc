"""A hook works safely with any damage of the store, the disk or the client.

It ends with 0 and in time, prints nothing or one JSON object, stores the event if that is possible,
and writes one line to its log if something was wrong.
"""

import errno
import json
import os
import pty
import random
import resource
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from ctx.agents.claude_code.hooks import ClaudeHooks
from ctx.agents.runtime.hook import Hook, answer
from ctx.hook_files import spool
from tests import installed
from tests.agents.claude_code.hook_processes import (
    NOTHING,
    SILENT,
    WORDS,
    Hooks,
    Ran,
    additional,
    command,
    reap,
)
from tests.conftest import Ctx
from tests.faults import Disk

ANSWERED = ("session-start", "prompt-submit", "pre-compact")
LIMITS = {word: "3.0 s" if word in ANSWERED else "0.75 s" for word in WORDS}
"""Of a hook that has three times as long as usual: a busy machine must come so far in it."""
# The longest that it may take then is 10.5 s; the rest is for a machine that is busy.
IN_TIME_S = 300

STORE_OF_VERSION_1 = Path(__file__).parents[2] / "golden" / "stores" / "v1.db"
REMEMBER = "<ctx:remember type='fact'>Deploys run on Fridays.</ctx:remember>"


@pytest.fixture
def hooks(surroundings: Path, folder: Path, ctx: Ctx) -> Iterator[Hooks]:
    """A user with one node in memory."""
    assert ctx("add", "--type=fact", "--tag=tier:pinned", "Money is in cents.").code == 0
    hooks = Hooks(surroundings / ".ctx", folder)
    yield hooks
    hooks.close()


def run_all(hooks: Hooks) -> dict[str, Ran]:
    return {word: hooks.run(word, hooks.event(word)) for word in WORDS}


def lines_of(hooks: Hooks, word: str) -> list[str]:
    return [each for each in hooks.log() if each.startswith(f"{word} ")]


def stored_events(hooks: Hooks) -> list[str]:
    """The events in the store."""
    with closing(sqlite3.connect(hooks.home / "store.db")) as connection:
        return [row[0] for row in connection.execute("SELECT event FROM events ORDER BY id")]


def message(ran: Ran) -> str:
    """The message to the user if there is no context."""
    (name, told), *more = json.loads(ran.out).items()
    assert (name, more) == ("systemMessage", [])
    return str(told)


def spooled_events(hooks: Hooks) -> list[str]:
    """The names of the events in the spool."""
    kinds = [kind.split(".")[0] for kind, _ in hooks.spooled()]
    return [spool.EVENTS[kind] for kind in kinds if kind in spool.EVENTS]


# The store


def _foreign(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE nodes (name TEXT)")
        connection.execute("INSERT INTO nodes VALUES ('theirs')")


def _noise(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:4096] + random.Random(1).randbytes(len(data) - 4096))


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


STORES: dict[str, Callable[[Path], object]] = {
    "noise after the first page": _noise,
    "cut to ten bytes": lambda path: os.truncate(path, 10),
    "another program's": _foreign,
    "a folder": _folder,
}


@pytest.mark.parametrize("damage", STORES.values(), ids=STORES)
def test_an_unreadable_store_is_reported(hooks: Hooks, damage: Callable[[Path], object]) -> None:
    path = hooks.home / "store.db"
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    damage(path)
    before = path.read_bytes() if path.is_file() else None
    for word, ran in run_all(hooks).items():
        if word == "session-start":
            # Who else would say so?
            assert message(ran).endswith("so agents get no memory; see `ctx doctor`"), ran.out
        else:
            assert ran == (NOTHING if word in ANSWERED else SILENT), word
        assert len(lines_of(hooks, word)) == (word in ANSWERED), word
    hooks.settle()
    # Nobody has made it worse, and all that was heard is still there.
    assert (path.read_bytes() if path.is_file() else None) == before
    assert spooled_events(hooks) == [spool.EVENTS[word] for word in WORDS]


NO_STORES: dict[str, Callable[[Path], object]] = {
    "missing": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
}


@pytest.mark.parametrize("damage", NO_STORES.values(), ids=NO_STORES)
def test_a_missing_store_is_created_in_the_background(
    hooks: Hooks, damage: Callable[[Path], object]
) -> None:
    """It contains every event since then."""
    damage(hooks.home / "store.db")
    assert hooks.run("session-start", hooks.event("session-start")) == NOTHING
    assert len(lines_of(hooks, "session-start")) == 1
    hooks.settle()
    for word in WORDS[1:]:
        ran = hooks.run(word, hooks.event(word))
        assert (ran.code, ran.err) == (0, b""), word
        assert ran.out in (SILENT.out, NOTHING.out), word
        assert len(lines_of(hooks, word)) <= 1, word
    hooks.settle()
    everywhere = sorted([*stored_events(hooks), *spooled_events(hooks)])
    assert everywhere == sorted(spool.EVENTS[word] for word in WORDS)


def test_a_store_of_a_newer_version_is_reported(hooks: Hooks) -> None:
    with closing(sqlite3.connect(hooks.home / "store.db")) as connection, connection:
        connection.execute("INSERT INTO schema_version VALUES (999, '2030-01-01T00:00:00Z')")
        connection.execute("PRAGMA user_version = 999")
        connection.execute("ALTER TABLE nodes RENAME COLUMN content TO text")
    for word, ran in run_all(hooks).items():
        if word == "session-start":
            assert message(ran).startswith("ctx: the store was written by a newer ctx, ")
        else:
            assert ran == (NOTHING if word == "prompt-submit" else SILENT), word
        assert len(lines_of(hooks, word)) == (word == "session-start"), word
    hooks.settle()
    assert spooled_events(hooks) == [spool.EVENTS[word] for word in WORDS]


def test_a_store_of_an_older_version_is_migrated(hooks: Hooks) -> None:
    """The migration runs in the background."""
    for path in hooks.home.glob("store.db*"):
        path.unlink()
    shutil.copy(STORE_OF_VERSION_1, hooks.home / "store.db")
    assert hooks.run("session-start", hooks.event("session-start")) == NOTHING
    assert len(lines_of(hooks, "session-start")) == 1
    hooks.settle()
    ran = hooks.run("session-start", hooks.event("session-start", source="clear"))
    assert "The API speaks OAuth 2.1." in additional(ran)
    assert len(lines_of(hooks, "session-start")) == 1
    hooks.settle()
    assert [*stored_events(hooks), *spooled_events(hooks)] == ["SessionStart"] * 2


@contextmanager
def locked(hooks: Hooks, *statements: str) -> Iterator[None]:
    """Another process holds a lock on the store."""
    with closing(sqlite3.connect(hooks.home / "store.db", isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)
        yield


def test_hooks_work_while_the_store_is_being_written(hooks: Hooks) -> None:
    with locked(hooks, "BEGIN EXCLUSIVE"):
        every = run_all(hooks)
        assert "Money is in cents." in additional(every.pop("session-start"))
        assert every.pop("prompt-submit") == NOTHING
        assert set(every.values()) == {SILENT}
        assert hooks.log() == []
        assert spooled_events(hooks) == [spool.EVENTS[word] for word in WORDS]
    hooks.settle()
    shutil.rmtree(hooks.home / "spool")
    shutil.rmtree(hooks.home / "live")
    alone = ("PRAGMA locking_mode = EXCLUSIVE", "BEGIN EXCLUSIVE", "DELETE FROM pending")
    with locked(hooks, *alone):
        for word, ran in run_all(hooks).items():
            assert ran == (NOTHING if word in ANSWERED else SILENT), word
            assert len(lines_of(hooks, word)) == (word in ANSWERED), word
        assert spooled_events(hooks) == [spool.EVENTS[word] for word in WORDS]
    hooks.settle()


def test_commands_wait_for_the_lock_of_the_store(hooks: Hooks, ctx: Ctx) -> None:
    """They run once, as soon as possible, and are never lost."""
    other = "0b7a9c52-0000-4000-8000-000000000000"
    asked = {"session_id": other, "last_assistant_message": REMEMBER}
    failed = hooks.event("stop", last_assistant_message="<ctx:remember>Which type?")
    event_id = spool.new_id(1_768_906_800_000)
    spool.put(str(hooks.home), event_id, "stop.-", failed)
    usual = hooks.environment["CTX_PATIENCE"]
    hooks.environment["CTX_PATIENCE"] = "3"
    with locked(hooks, "BEGIN IMMEDIATE"), ThreadPoolExecutor() as pool:
        stop = pool.submit(hooks.run, "stop", hooks.event("stop", **asked))
        prompt = pool.submit(hooks.run, "prompt-submit", hooks.event("prompt-submit"))
        assert stop.result() == NOTHING
        assert prompt.result() == NOTHING
        assert sorted(spooled_events(hooks)) == ["Stop", "Stop", "UserPromptSubmit"]
        assert [len(lines_of(hooks, word)) for word in ("stop", "prompt-submit")] == [1, 1]
    hooks.environment["CTX_PATIENCE"] = usual
    hooks.settle()
    # Whoever was left at work has done it, or else the next prompt has it done.
    ran = hooks.run("prompt-submit", hooks.event("prompt-submit"))
    assert "A memory command failed" in additional(ran)
    hooks.settle()
    hooks.run("stop", hooks.event("stop", **asked))
    assert hooks.run("prompt-submit", hooks.event("prompt-submit")) == NOTHING
    hooks.settle()
    nodes = ctx("list", "--format", "json").json["nodes"]
    assert [node["content"] for node in nodes] == ["Deploys run on Fridays.", "Money is in cents."]


@pytest.mark.parametrize("text", ["[context\n", '[context]\nbudget = "much"\n'])
def test_invalid_settings_do_not_block_commands(hooks: Hooks, ctx: Ctx, text: str) -> None:
    (hooks.home / "config.toml").write_text(text)
    assert hooks.run("stop", hooks.event("stop", last_assistant_message=REMEMBER)) == NOTHING
    hooks.settle()
    assert "Money is in cents." in additional(
        hooks.run("session-start", hooks.event("session-start"))
    )
    hooks.settle()
    assert hooks.spooled() == []
    assert stored_events(hooks) == ["Stop", "SessionStart"]
    (hooks.home / "config.toml").unlink()
    nodes = ctx("list", "--format", "json").json["nodes"]
    assert [node["content"] for node in nodes] == ["Deploys run on Fridays.", "Money is in cents."]


# The disk


@pytest.mark.parametrize("word", WORDS)
def test_a_disk_error_at_any_operation_is_survived(
    hooks: Hooks, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a hook would start a whole interpreter, it starts a program that does nothing."""
    monkeypatch.setattr(sys, "executable", shutil.which("true"))
    said = hooks.event(word)
    for stop_at in range(100):
        shutil.rmtree(hooks.home / "spool", ignore_errors=True)
        shutil.rmtree(hooks.home / "live", ignore_errors=True)
        (hooks.home / "hook.log").unlink(missing_ok=True)
        disk = Disk(stop_at, refuse_with=errno.ENOSPC)
        with disk.installed():
            printed = answer(Hook(word, [], hooks.environment, ClaudeHooks()), lambda: said)
        if disk.operations < stop_at:
            break
        assert len(hooks.log()) <= 1
        assert printed in (SILENT.out, NOTHING.out) or word == "session-start"
        left = [path for path in hooks.home.rglob("*") if "tmp" in path.name]
        assert left == [], disk.log
    assert 5 <= stop_at < 100
    reap()


def assert_nothing_stored(word: str, ran: Ran, reason: str) -> None:
    """The agent still gets its context, and the user sees why nothing is stored."""
    if word != "session-start":
        assert ran == NOTHING, word
        return
    assert "Money is in cents." in additional(ran)
    told = json.loads(ran.out)["systemMessage"].splitlines()[1]
    assert told == f"ctx: this session cannot be recorded: {reason}; see `ctx doctor`"


def test_hooks_work_if_no_file_can_grow(hooks: Hooks) -> None:
    for word in WORDS:
        with hooks.started(command(word), stdin=subprocess.PIPE, preexec_fn=_no_space) as process:
            out, err = process.communicate(hooks.event(word), IN_TIME_S)
        assert_nothing_stored(word, Ran(process.returncode, out, err), "File too large")
    hooks.settle()
    assert hooks.spooled() == []
    assert {path.name for path in (hooks.home / "spool").iterdir()} <= {"LOCK"}


def _no_space() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def test_hooks_work_on_a_read_only_disk(hooks: Hooks) -> None:
    alone = installed.with_own_mounts()
    mount = 'mount --bind "$CTX_HOME" "$CTX_HOME"; mount -o remount,ro,bind "$CTX_HOME"'
    script = f'set -e; {mount}; exec "$@"'
    for word in WORDS:
        words = [*alone, "sh", "-c", script, "sh", *command(word)]
        ran = hooks.run_command(words, hooks.event(word))
        assert_nothing_stored(word, ran, "Read-only file system")
    hooks.settle()
    assert [path.name for path in hooks.home.iterdir()] == ["store.db"]


def _file_instead(home: Path) -> None:
    shutil.rmtree(home)
    home.write_text("mine")


BREAKAGES: dict[str, Callable[[Path], object]] = {
    "home": _file_instead,
    "spool": lambda home: (home / "spool").write_text("mine"),
    "live": lambda home: (home / "live").write_text("mine"),
    "log": lambda home: (home / "hook.log").mkdir(),
}


# Which hooks then have something to complain about.
STATE = ("session-start", "pre-compact", "prompt-submit")
NEEDED = {"home": (), "spool": WORDS, "live": STATE, "log": ()}


@pytest.mark.parametrize("name", BREAKAGES)
def test_hooks_work_with_unexpected_files_in_the_home(hooks: Hooks, name: str) -> None:
    BREAKAGES[name](hooks.home)
    for word, ran in run_all(hooks).items():
        assert (ran.code, ran.err) == (0, b""), word
        if word != "session-start":
            assert ran.out in (SILENT.out, NOTHING.out), word
        if name in ("spool", "live"):
            assert len(lines_of(hooks, word)) == (word in NEEDED[name]), word
        assert hooks.run(word, b"nonsense") == NOTHING
    hooks.settle()
    path = hooks.home / {"home": "", "log": "hook.log"}.get(name, name)
    assert path.is_dir() if name == "log" else path.read_text() == "mine"


def test_the_home_is_found_without_the_variable(
    monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    import pwd

    home = pwd.getpwuid(os.getuid()).pw_dir
    for environment in ({}, {"HOME": ""}, {"HOME": "somewhere"}, {"HOME": "./x", "CTX_HOME": ""}):
        assert Hook("stop", [], environment, ClaudeHooks()).home == f"{home}/.ctx"

    def nobody(number: int) -> pwd.struct_passwd:
        raise KeyError(number)

    monkeypatch.setattr(pwd, "getpwuid", nobody)
    for word in WORDS:
        for environment in ({}, {"HOME": "somewhere"}):
            assert answer(Hook(word, [], environment, ClaudeHooks()), lambda: b"nonsense") == b""
    assert list(folder.iterdir()) == []


def test_hooks_work_in_a_removed_folder(hooks: Hooks) -> None:
    """The client runs in a folder that was deleted."""
    usual = hooks.environment.get("CTX_HOME", "")
    for word, home in (*((word, usual) for word in ANSWERED), ("stop", "relative")):
        hooks.environment["CTX_HOME"] = home
        here = hooks.folder / "here"
        here.mkdir()
        script = 'cd here && rmdir "$PWD" && exec "$@"'
        said = hooks.event(word, cwd=None)
        ran = hooks.run_command(["sh", "-c", script, "sh", *command(word)], said)
        assert (ran.code, ran.err) == (0, b""), word
        assert len(lines_of(hooks, word)) <= 1
    hooks.settle()
    assert list(hooks.folder.iterdir()) == []


# The client


@contextmanager
def held_open() -> Iterator[int]:
    """A pipe that stays open and empty."""
    read, write = os.pipe()
    try:
        yield read
    finally:
        os.close(read)
        os.close(write)


def finish(process: "subprocess.Popen[bytes]") -> Ran:
    """The result of a process that ends soon."""
    out, err = process.communicate(timeout=IN_TIME_S)
    return Ran(process.returncode, out or b"", err)


@pytest.fixture
def limited(hooks: Hooks) -> Hooks:
    """Hooks with a short time limit."""
    hooks.environment["CTX_PATIENCE"] = "3"
    return hooks


def test_hooks_end_if_the_client_sends_nothing(limited: Hooks) -> None:
    hooks = limited

    def wait(word: str) -> Ran:
        with held_open() as nothing, hooks.started(command(word), stdin=nothing) as process:
            return finish(process)

    with ThreadPoolExecutor(len(WORDS)) as pool:
        assert dict(zip(WORDS, pool.map(wait, WORDS), strict=True)) == dict.fromkeys(WORDS, NOTHING)
    assert sorted(hooks.log()) == sorted(
        f"{word} took longer than {limit}" for word, limit in LIMITS.items()
    )


@pytest.fixture
def hanging(limited: Hooks) -> Iterator[Hooks]:
    """A user whose store is on a disk that hangs."""
    hooks = limited
    path = hooks.home / "store.db"
    path.unlink()
    os.mkfifo(path)
    yield hooks
    # Those who were left waiting find nothing, and go.
    os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK))
    hooks.settle()


def test_hooks_end_if_the_store_hangs(hanging: Hooks) -> None:
    for word in ANSWERED:
        assert hanging.run(word, hanging.event(word)) == NOTHING
    assert hanging.log() == [f"{word} took longer than 3.0 s" for word in ANSWERED]
    assert spooled_events(hanging) == [spool.EVENTS[word] for word in ANSWERED]


def test_a_prompt_is_answered_if_commands_hang(hanging: Hooks) -> None:
    """Commands of the last Stop run before the next prompt is answered, for up to 3.5 s."""
    stop = hanging.event("stop", last_assistant_message=REMEMBER)
    spool.put(str(hanging.home), spool.new_id(1_768_906_800_000), "stop.-", stop)
    began = time.monotonic()
    assert hanging.run("prompt-submit", hanging.event("prompt-submit")) == NOTHING
    assert 3 < time.monotonic() - began < IN_TIME_S
    # One line of whoever should have done them, and one of the hook, which says no more after it.
    assert hanging.log() == [
        f"apply E018: {hanging.home}/store.db is not a file.",
        "prompt-submit the commands of an agent could not run; they run later",
    ]
    assert spooled_events(hanging) == ["Stop", "UserPromptSubmit"]


@pytest.mark.parametrize("word", ["post-tool-use", "session-start"])
def test_a_pipe_in_place_of_the_log_is_not_waited_for(limited: Hooks, word: str) -> None:
    """A disk that hangs must not make the client hang."""
    hooks = limited
    os.mkfifo(hooks.home / "hook.log")
    with held_open() as nothing, hooks.started(command(word), stdin=nothing) as process:
        assert finish(process) == NOTHING
    assert hooks.run(word, b"nonsense") == NOTHING


def test_hooks_work_without_input(hooks: Hooks) -> None:
    os.mkfifo(hooks.folder / ".git")
    ours, theirs = pty.openpty()
    for word in ("stop", "session-start"):
        for source in ("<&-", "< /dev/null"):
            script = f'exec "$@" {source}'
            assert hooks.run_command(["sh", "-c", script, "sh", *command(word)], b"") == NOTHING
        with hooks.started(command(word), stdin=theirs) as process:
            assert finish(process) == NOTHING
        told = f"{word} the input of the hook is not a JSON object (0 bytes)"
        assert lines_of(hooks, word)[1:] == [told] * 2
    assert hooks.spooled() == []
    # Nobody waits for a pipe in place of a repository either.
    assert hooks.run("session-start", hooks.event("session-start")).code == 0
    os.close(ours)
    os.close(theirs)


@pytest.mark.parametrize("word", ["session-start", "stop"])
def test_hooks_work_if_the_client_closes_its_pipe(hooks: Hooks, word: str) -> None:
    # Twice the same would be taken for a hook that is registered twice.
    *said, last = (hooks.event(word, time=number) for number in range(4))
    for target, each in zip((">&-", "> /dev/full", ">&- 2>&-"), said, strict=True):
        script = f'exec "$@" {target}'
        ran = hooks.run_command(["sh", "-c", script, "sh", *command(word)], each)
        assert ran == SILENT
    read, write = os.pipe()
    os.close(read)
    with hooks.started(command(word), stdin=subprocess.PIPE, stdout=write) as process:
        assert process.communicate(last, IN_TIME_S)[1] == b""
    os.close(write)
    assert process.returncode == 0
    assert hooks.log() == []
    hooks.settle()
    # Nothing that was meant for the client went anywhere else.
    assert sorted([*stored_events(hooks), *spooled_events(hooks)]) == [spool.EVENTS[word]] * 4
    assert {data for kind, data in hooks.spooled() if kind == word} <= {*said, last}


def test_hooks_end_if_the_client_does_not_read(limited: Hooks) -> None:
    hooks = limited
    read, write = os.pipe()
    os.set_blocking(write, False)
    try:
        while True:
            os.write(write, b"x" * 65536)
    except BlockingIOError:
        os.set_blocking(write, True)
    said = hooks.event("session-start")
    with hooks.started(command("session-start"), stdin=subprocess.PIPE, stdout=write) as process:
        assert process.communicate(said, IN_TIME_S)[1] == b""
    assert process.returncode == 0
    os.close(write)
    os.close(read)
    assert lines_of(hooks, "session-start") == ["session-start took longer than 3.0 s"]
    assert spooled_events(hooks) == ["SessionStart"] or stored_events(hooks) == ["SessionStart"]
