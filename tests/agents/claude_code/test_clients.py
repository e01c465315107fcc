"""Clients are found on the PATH, and asked for their version."""

import os
import time
from pathlib import Path

import pytest

from ctx.agents.claude_code import clients, registration
from ctx.agents.claude_code.clients import Client
from ctx.agents.host_setup import program_runs


def program(path: Path, *lines: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["#!/bin/sh", *lines]) + "\n")
    path.chmod(0o755)
    return str(path)


def installed_clients(tmp_path: Path, *folders: str | Path) -> tuple[Client, ...]:
    path = os.pathsep.join(str(folder) for folder in (*folders, "/usr/bin", "/bin"))
    return clients.find_clients(path, str(tmp_path / "home"), str(tmp_path / "home" / ".claude"))


def test_every_client_is_found_once(tmp_path: Path) -> None:
    native = program(
        tmp_path / "home" / ".local" / "bin" / "claude", 'echo "2.1.325 (Claude Code)"'
    )
    local = program(
        tmp_path / "home" / ".claude" / "local" / "claude", 'echo "2.0.47 (Claude Code)"'
    )
    npm = program(tmp_path / "npm" / "claude", 'echo "2.1.15 (Claude Code)"')
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "claude").symlink_to(native)
    assert installed_clients(tmp_path, tmp_path / "linked", tmp_path / "npm", tmp_path / "npm") == (
        Client(str(tmp_path / "linked" / "claude"), "2.1.325"),
        Client(npm, "2.1.15"),
        Client(local, "2.0.47"),
    )


def test_other_files_are_not_clients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a" / "claude").mkdir(parents=True)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "claude").write_text("not executable")
    program(tmp_path / "c" / "claude", 'echo "2.1.325 (Claude Code)"')
    monkeypatch.chdir(tmp_path)
    # One that is found only from here may be anybody's.
    assert installed_clients(tmp_path, tmp_path / "a", tmp_path / "b", "c", ".", "") == ()


@pytest.mark.parametrize(
    "lines", [("exit 1",), ("echo '2.1.15 (Claude Code)' >&2",), ("printf '\\377\\n'",)]
)
def test_a_client_without_a_version_is_listed(tmp_path: Path, lines: tuple[str, ...]) -> None:
    path = program(tmp_path / "bin" / "claude", *lines)
    assert installed_clients(tmp_path, tmp_path / "bin") == (Client(path, None),)
    # A binary for another machine.
    Path(path).write_bytes(b"\x7fELF of elsewhere")
    assert installed_clients(tmp_path, tmp_path / "bin") == (Client(path, None),)


def test_asking_for_the_version_leaves_nothing_behind(tmp_path: Path) -> None:
    """Only its configuration folder is a temporary one; a shim can still use the home."""
    path = program(
        tmp_path / "bin" / "claude",
        'mkdir -p "$CLAUDE_CONFIG_DIR" && echo x > "$CLAUDE_CONFIG_DIR/.claude.json"',
        f'echo "$* $HOME $DISABLE_AUTOUPDATER $CLAUDE_CONFIG_DIR" > {tmp_path}/seen',
        'echo "2.1.325 (Claude Code)"',
    )
    assert installed_clients(tmp_path, tmp_path / "bin") == (Client(path, "2.1.325"),)
    *seen, folder = (tmp_path / "seen").read_text().split()
    assert seen == ["--version", str(tmp_path / "home"), "1"]
    assert not os.path.exists(folder)
    assert os.listdir(tmp_path / "home") == []


def test_clients_are_asked_concurrently_with_progress(tmp_path: Path) -> None:
    """Each client waits for the other and for the progress call: in sequence, none would answer."""
    watched = tmp_path / "watched"
    for mine, other in (("a", "b"), ("b", "a")):
        program(
            tmp_path / mine / "claude",
            f"touch {tmp_path}/{mine}/is-here",
            f"until [ -e {tmp_path}/{other}/is-here -a -e {watched} ]; do sleep 0.02; done",
            'echo "2.1.325 (Claude Code)"',
        )
    path, home = f"{tmp_path}/a:{tmp_path}/b:/usr/bin:/bin", str(tmp_path / "home")
    ticks: list[tuple[int, int]] = []

    def tick(done: int, total: int) -> None:
        ticks.append((done, total))
        watched.touch()

    assert clients.find_clients(path, home, home, tick) == (
        Client(f"{tmp_path}/a/claude", "2.1.325"),
        Client(f"{tmp_path}/b/claude", "2.1.325"),
    )
    assert ticks[0] == (0, 2)


@pytest.mark.slow
def test_a_slow_program_is_killed_with_its_children(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    path = program(tmp_path / "slow", f"sleep 60 & echo $! $$ > {pids}", "wait")
    environment = {"PATH": "/usr/bin:/bin"}
    assert program_runs.run([path], environment, str(tmp_path), seconds=3) is None
    running = [int(pid) for pid in pids.read_text().split()]
    assert len(running) == 2
    # Whoever is killed ends when its turn comes.
    deadline = time.monotonic() + 300
    while any(map(is_running, running)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not any(map(is_running, running))


def test_background_processes_of_a_program_are_waited_for(tmp_path: Path) -> None:
    """Also for one that left the process group and closed its output."""
    done = tmp_path / "done"
    later = f"import os, time; os.setsid(); time.sleep(0.3); open({str(done)!r}, 'w').close()"
    path = program(
        tmp_path / "quick", f'python3 -c "{later}" > /dev/null 2>&1 < /dev/null &', "echo hi"
    )
    ended = program_runs.run([path], {"PATH": os.environ["PATH"]}, str(tmp_path), seconds=10)
    assert ended == program_runs.ProcessResult(0, b"hi\n", b"")
    assert done.exists()


def is_running(pid: int) -> bool:
    """Whether a process runs and is not a zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


OF_2_0_47 = (
    "PreToolUse PostToolUse Notification UserPromptSubmit SessionStart SessionEnd Stop"
    " SubagentStart SubagentStop PreCompact PermissionRequest"
).split()
OF_2_1_15 = [*OF_2_0_47, "PostToolUseFailure", "Setup"]
LATER = (
    "PostToolBatch UserPromptExpansion StopFailure PostCompact PreModelSwitch PostModelSwitch"
    " PermissionDenied TeammateIdle TaskCreated TaskCompleted Elicitation ElicitationResult"
    " ConfigChange WorktreeCreate WorktreeRemove InstructionsLoaded CwdChanged FileChanged"
    " DirectoryAdded MessageDisplay"
).split()


@pytest.mark.parametrize(("version", "known"), [("2.0.47", OF_2_0_47), ("2.1.15", OF_2_1_15)])
def test_what_older_clients_know(version: str, known: list[str]) -> None:
    """As the clients themselves list them."""
    names = [*OF_2_1_15, *LATER, "Foo", "stop", ""]
    assert [name for name in names if not clients.breaks_hooks(name, version)] == known


@pytest.mark.parametrize("version", ["2.1.101", "3.0.0-beta.1"])
def test_newer_clients_pass_over_what_they_do_not_know(version: str) -> None:
    assert not any(clients.breaks_hooks(name, version) for name in [*LATER, "Foo", ""])


@pytest.mark.parametrize("version", ["1.0.80", "2.1.15", "2.1.325"])
def test_what_we_register_is_known(version: str) -> None:
    entries = registration.user_entries([version], interpreter="python3", budget=2_000)
    assert not [event for event in entries if clients.breaks_hooks(event, version)]
    shared = registration.project_entries()
    assert not [event for event in shared if clients.breaks_hooks(event, version)]
