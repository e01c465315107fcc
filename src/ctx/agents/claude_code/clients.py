"""Which Claude Code clients are installed, their versions, and the events that they know.

A machine often has more than one, such as a native one and one from npm. All of them read the same
settings. A client that an editor ships is in the editor's own folder and is not detected.

The events matter because a client before 2.1.101 drops all hooks of a settings file that names one
event that it does not know. Later clients only ignore that name.
"""

import os
import re
from concurrent.futures import ThreadPoolExecutor, wait
from tempfile import TemporaryDirectory
from typing import NamedTuple

from ctx import clock
from ctx.agents.host_setup import program_runs

_VERSION = re.compile(r"(\d+\.\d+\.\d+\S*) \(Claude Code\)", re.ASCII)
_VERSION_S = 3.0
_TICK_S = 0.1
# The program is only run for its version: it should not look for updates or send telemetry.
_QUIET = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_TELEMETRY": "1",
}
_TOLERANT_SINCE = (2, 1, 101)
# The events up to that version. To older clients, later events are unknown names.
_EVENTS_SINCE = {
    "PreToolUse": (),
    "PostToolUse": (),
    "Notification": (),
    "UserPromptSubmit": (),
    "SessionStart": (),
    "SessionEnd": (),
    "Stop": (),
    "SubagentStop": (),
    "PreCompact": (),
    "SubagentStart": (2, 0, 43),
    "PermissionRequest": (2, 0, 45),
    "Setup": (2, 1, 10),
    "PostToolUseFailure": (2, 1, 15),
    "TeammateIdle": (2, 1, 33),
    "TaskCompleted": (2, 1, 33),
    "ConfigChange": (2, 1, 49),
    "WorktreeCreate": (2, 1, 50),
    "WorktreeRemove": (2, 1, 50),
    "InstructionsLoaded": (2, 1, 69),
    "Elicitation": (2, 1, 76),
    "ElicitationResult": (2, 1, 76),
    "PostCompact": (2, 1, 76),
    "StopFailure": (2, 1, 78),
    "CwdChanged": (2, 1, 83),
    "FileChanged": (2, 1, 83),
    "TaskCreated": (2, 1, 84),
    "PermissionDenied": (2, 1, 89),
}


class Client(NamedTuple):
    path: str
    version: str | None
    """None if it is unknown."""


def find_clients(
    path: str, home: str, claude_folder: str, tick: clock.Tick = clock.no_tick
) -> tuple[Client, ...]:
    """All clients that a shell with this PATH would find, and those in the usual places.

    A client with several names is listed once, under the name that a shell would find first.
    """
    usual = [os.path.join(claude_folder, "local"), os.path.join(home, ".local", "bin")]
    programs: dict[str, str] = {}
    for program in program_runs.programs("claude", [*path.split(os.pathsep), *usual]):
        programs.setdefault(os.path.realpath(program), program)
    return _query_versions(list(programs.values()), path, home, tick) if programs else ()


def _query_versions(
    programs: list[str], path: str, home: str, tick: clock.Tick
) -> tuple[Client, ...]:
    """The versions of all clients, queried in parallel: one that does not answer takes seconds."""
    with ThreadPoolExecutor(max_workers=len(programs)) as threads:
        answers = [threads.submit(_version, program, path, home) for program in programs]
        while waiting := wait(answers, timeout=_TICK_S).not_done:
            tick(len(answers) - len(waiting), len(answers))
    return tuple(
        Client(program, answer.result()) for program, answer in zip(programs, answers, strict=True)
    )


def _version(program: str, path: str, home: str) -> str | None:
    words = [program, "--version"]
    try:
        # Some clients create their folder at every start.
        with TemporaryDirectory(prefix="ctx-client-", ignore_cleanup_errors=True) as folder:
            variables = {"PATH": path, "HOME": home, "CLAUDE_CONFIG_DIR": folder, **_QUIET}
            ended = program_runs.run(words, variables, folder, seconds=_VERSION_S)
    except OSError:
        # The program may be for another architecture.
        return None
    match = _VERSION.search(ended.out.decode("utf-8", "replace")) if ended else None
    return match[1] if match else None


def breaks_hooks(event: str, version: str) -> bool:
    """Whether a client of this version drops all hooks of a file that has this event."""
    numbers = tuple(map(int, re.findall(r"\d+", version, re.ASCII)[:3]))
    if numbers >= _TOLERANT_SINCE:
        return False
    return event not in _EVENTS_SINCE or numbers < _EVENTS_SINCE[event]
