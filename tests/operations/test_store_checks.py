"""Checks of the store folder, and their messages."""

import shlex
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from ctx import clock
from ctx.cli.settings import Settings
from ctx.hook_files import spool
from ctx.ids import CLI_SESSION
from ctx.memory import user_store
from ctx.operations import store_backups
from ctx.operations.store_checks import DoctorCheck, store_checks
from ctx.workspace import Environment
from tests.conftest import Ctx
from tests.exchange.foreign.databases import go_store

CheckResults = Callable[[str], list[tuple[str, str]]]


def look(folder: Path) -> tuple[DoctorCheck, ...]:
    found = Settings.from_environment()._replace(folder=str(folder))
    around = Environment(
        str(folder), found.user_store, found.environment, (), CLI_SESSION, found.database
    )
    return tuple(store_checks(around))


@pytest.fixture
def results_of(folder: Path) -> CheckResults:
    """State and finding of the checks with a name."""

    def about(name: str) -> list[tuple[str, str]]:
        return [(check.state, check.seen) for check in look(folder) if check.name == name]

    return about


@pytest.fixture
def home(surroundings: Path) -> Path:
    return surroundings / ".ctx"


def test_a_store_without_problems_is_ok(ctx: Ctx, home: Path, folder: Path) -> None:
    ctx("add", "--type=fact", "--tag=tier:reference", "One")
    checks = look(folder)
    names = ["ctx", "clock", "store", "permissions", "disk space", "settings", "capture"]
    assert [check.name for check in checks] == [*names, "hook errors"]
    assert {check.state for check in checks} == {"ok"}
    assert {check.advice for check in checks} == {""}
    assert checks[2].seen.startswith(f"{home}/store.db: 1 node, 0.")
    assert checks[2].seen.endswith(" MB, whole")


def test_pinned_nodes_that_are_shortened_are_reported(
    ctx: Ctx, repo: Path, results_of: CheckResults
) -> None:
    """Those of both stores count."""
    assert ctx("init").code == 0
    for store in (["--user"], [], ["--user"]):
        assert results_of("pinned nodes") == []
        assert ctx("add", *store, "--type=fact", "--tag=tier:pinned", "x" * 2_500).code == 0
        assert ctx("list").code == 0
    [(state, seen)] = results_of("pinned nodes")
    assert (state, seen[:14]) == ("warning", "They take 2,18")


def test_checking_creates_nothing(home: Path, folder: Path, results_of: CheckResults) -> None:
    assert results_of("store") == [("warning", f"{home}/store.db does not exist yet.")]
    assert results_of("permissions") == []
    assert not home.exists()


@pytest.mark.parametrize("part", [slice(0, 15), slice(4096, None)])
def test_a_damaged_store_is_a_problem(
    ctx: Ctx, home: Path, results_of: CheckResults, part: slice
) -> None:
    """It is not called empty, whatever its backups have."""
    ctx("add", "--type=fact", "One")
    path = home / "store.db"
    assert store_backups.make_daily_backup(str(path), 3)
    data = bytearray(path.read_bytes())
    data[part] = bytes(len(data[part]))
    path.write_bytes(data)
    ((state, seen),) = results_of("store")
    assert state == "problem"
    assert seen.startswith(str(path))


def test_an_empty_store_file_is_reported(ctx: Ctx, home: Path, folder: Path) -> None:
    """On some file systems, a crash leaves an empty file."""
    ctx("add", "--type=fact", "One")
    made = store_backups.make_daily_backup(str(home / "store.db"), 3)
    assert made
    for path in home.glob("store.db*"):
        path.unlink()
    (home / "store.db").touch(0o600)
    for _ in range(2):
        (check,) = [each for each in look(folder) if "the backup from" in each.seen]
        assert check.seen == f"It is empty, and the backup from {made.at} has 1 node."
        assert check.advice.startswith("`ctx restore --backup store-")
        # Whoever writes next makes a new one.
        ctx("status")


def test_a_store_of_another_program_is_reported(home: Path, results_of: CheckResults) -> None:
    path = home / "store.db"
    home.mkdir(mode=0o700)
    go_store(path)
    before = path.read_bytes()
    assert results_of("store") == [("warning", f"{path} is a store of the Go program `ctx`.")]
    assert path.read_bytes() == before
    path.unlink()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA application_id = 77")
        connection.execute("CREATE TABLE t (x)")
    assert results_of("store") == [("problem", f"{path} is a database of another program.")]


@pytest.mark.parametrize(
    ("version", "state", "words"),
    [(1, "warning", "was written by an older ctx"), (99, "problem", "has version 99")],
)
def test_a_store_of_another_version_is_reported(
    home: Path, results_of: CheckResults, version: int, state: str, words: str
) -> None:
    user_store.open_for_writing(str(home / "store.db")).close()
    with sqlite3.connect(home / "store.db") as connection:
        connection.execute("DELETE FROM schema_version WHERE version > 1")
        connection.execute("UPDATE schema_version SET version = ?", (version,))
    connection.close()
    ((found, seen),) = results_of("store")
    assert found == state
    assert words in seen


def test_files_that_others_can_read_are_a_warning(ctx: Ctx, home: Path, folder: Path) -> None:
    ctx("add", "--type=fact", "One")
    home.chmod(0o755)
    (home / "hook.log").touch(0o644)
    (check,) = [check for check in look(folder) if check.name == "permissions"]
    assert check == DoctorCheck(
        "permissions",
        "warning",
        f"Others can read {home} and 1 more.",
        f"`chmod -R go= {home}` makes it private.",
    )
    subprocess.run(shlex.split(check.advice.split("`")[1]), check=True)
    assert look(folder)[2].state == "ok"


def test_invalid_settings_are_reported(home: Path, results_of: CheckResults) -> None:
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text("[context]\nbudget = 'much'\nbugdet = 3\n")
    assert [state for state, _ in results_of("settings")] == ["problem", "warning"]
    (home / "config.toml").write_text("[context]\nbudget = 3000\n")
    # One is set for all tests.
    assert results_of("settings") == [("ok", "2 set")]


@pytest.mark.parametrize(("value", "states"), [("1", ["warning"]), ("0", []), ("", [])])
def test_hooks_that_are_switched_off_are_reported(
    monkeypatch: pytest.MonkeyPatch, results_of: CheckResults, value: str, states: list[str]
) -> None:
    monkeypatch.setenv("CTX_OFF", value)
    assert [state for state, _ in results_of("switched off")] == states


EVENT = b'{"session_id": "s", "hook_event_name": "PostToolUse", "cwd": "/", "tool_name": "Bash"}'


def ago(minutes: int) -> int:
    return clock.now_ms() - minutes * 60_000


def test_waiting_events_are_reported(
    ctx: Ctx, home: Path, folder: Path, results_of: CheckResults
) -> None:
    spool.put(str(home), spool.new_id(ago(3)), "post-tool-use", EVENT)
    assert results_of("capture") == [("ok", "the last event came 3 min ago, 1 waiting")]
    spool.put(str(home), spool.new_id(ago(125)), "post-tool-use", EVENT)
    (check,) = [check for check in look(folder) if check.name == "capture"]
    assert check == DoctorCheck(
        "capture",
        "warning",
        "the last event came 3 min ago, 2 waiting, the oldest for 2 h.",
        "To process them: `ctx hook apply`",
    )
    assert ctx("hook", "apply").code == 0
    assert results_of("capture") == [("ok", "the last event came 3 min ago")]


def test_events_that_were_set_aside_are_reported(home: Path, results_of: CheckResults) -> None:
    failed = home / "spool" / "failed"
    failed.mkdir(parents=True)
    (failed / spool.new_id(ago(1))).write_bytes(EVENT)
    assert results_of("capture") == [
        ("ok", "no event has come yet"),
        ("warning", "Unreadable events set aside: 1."),
    ]


def test_skipped_events_are_reported(ctx: Ctx, home: Path, folder: Path) -> None:
    ctx("add", "--type=fact", "One")
    new, old = clock.iso(ago(5)), clock.iso(ago(60 * 25))
    with sqlite3.connect(home / "store.db") as connection:
        connection.executemany(
            "INSERT INTO events (id, session, event, at, tool, status, reason, body)"
            " VALUES (?, 's', 'PostToolUse', ?, 'Edit', 'skipped', ?, '')",
            [("1", old, "Old"), ("2", old, "ValueError: boom"), ("3", new, "ValueError: boom")],
        )
    connection.close()
    assert [check for check in look(folder) if check.name == "capture"][1:] == [
        DoctorCheck(
            "capture",
            "warning",
            f"2 events were skipped, the last at {new} (PostToolUse of Edit, session s):"
            " ValueError: boom",
            "The rest was recorded. Please report this.",
        ),
        DoctorCheck(
            "capture",
            "ok",
            f"1 event was skipped, the last at {old} (PostToolUse of Edit, session s): Old",
            "",
        ),
    ]


def test_a_pause_is_reported(ctx: Ctx, results_of: CheckResults) -> None:
    ctx("pause")
    ((state, seen),) = results_of("capture")[1:]
    assert state == "warning"
    assert seen.startswith("Nothing is recorded: paused everywhere since 20")


def test_hook_errors_of_the_last_day_are_reported(home: Path, results_of: CheckResults) -> None:
    home.mkdir(mode=0o700)
    old, new = clock.iso(ago(60 * 25)), clock.iso(ago(5))
    log = home / "hook.log"
    log.write_text(f"{old} stop Old\n")
    assert results_of("hook errors") == [("ok", "none in the last day")]
    log.write_bytes(f"{old} stop Old\n{new} stop One\n{new} stop Two \xff\n".encode("latin-1"))
    assert results_of("hook errors") == [
        ("warning", f"2 in the last day; the last one: {new} stop Two \N{REPLACEMENT CHARACTER}")
    ]


def test_a_folder_in_place_of_the_hook_log_is_reported(
    home: Path, results_of: CheckResults
) -> None:
    home.mkdir(mode=0o700)
    (home / "hook.log").mkdir()
    ((state, seen),) = results_of("hook errors")
    assert state == "problem"
    assert "Is a directory while looking at it" in seen
