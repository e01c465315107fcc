"""The spool: what hooks report, one file for each event, until somebody has time for it.

    CTX_HOME/spool/1768906800123-4242-9f3a1c77.post-tool-use     what the client said, as it came
    CTX_HOME/spool/1768906800456-4243-0b1d22e4.stop.1024-20480   a Stop with commands in the
                                                                 transcript, between these bytes
    CTX_HOME/spool/1768906800789-4244-77aa01fe.receipt           what a hook gave to an agent

The first part of a name is the id of the event: milliseconds, process, chance. A file is written
under a temporary name and renamed, so that whoever finds one finds it whole. Files are handled in
the order of their names and removed when what they say is in the store, so that to handle one
twice is harmless.

Hooks load this module: it imports nothing but `os` and `sys`.
"""

import os
import sys

EVENTS = {
    "session-start": "SessionStart",
    "prompt-submit": "UserPromptSubmit",
    "stop": "Stop",
    "post-tool-use": "PostToolUse",
    "post-tool-use-failure": "PostToolUseFailure",
    "pre-compact": "PreCompact",
    "session-end": "SessionEnd",
    "subagent-stop": "SubagentStop",
}
"""The kinds of events as hooks are called on the command line, and as the client calls them."""

FOLDER = "spool"
FAILED = "failed"
"""Beside the events: what could not be handled, however often it was tried."""
RECEIPT = "receipt"
STOP = "stop"

_TEMPORARY = "tmp-"
_MOST_TRIES = 3

MANY = 64
"""So many files may wait before somebody is asked to look after them."""


def new_id(now_ms: int) -> str:
    return f"{now_ms:013d}-{os.getpid()}-{os.urandom(4).hex()}"


def put(home: str, event_id: str, kind: str, data: bytes, *, durable: bool = False) -> None:
    """Leave an event. `durable`: it survives even if the power goes now."""
    folder = f"{home}/{FOLDER}"
    temporary = f"{folder}/{_TEMPORARY}{event_id}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    try:
        fd = os.open(temporary, flags, 0o600)
    except FileNotFoundError:
        os.makedirs(home, 0o700, exist_ok=True)
        os.makedirs(folder, 0o700, exist_ok=True)
        fd = os.open(temporary, flags, 0o600)
    try:
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view) :]
            if durable:
                _sync(fd)
        finally:
            os.close(fd)
        os.rename(temporary, f"{folder}/{event_id}.{kind}")
    except OSError:
        os.unlink(temporary)
        raise
    if durable:
        _sync_names(folder)


def _sync(fd: int) -> None:
    if sys.platform == "darwin":
        import fcntl

        # There fsync stops at the drive's cache.
        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
    else:
        os.fsync(fd)


def _sync_names(folder: str) -> None:
    """A file that is on the disk is found there only if its name is too."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        _sync(fd)
    except OSError:
        # Some file systems cannot do that, and keep names in order without.
        pass
    finally:
        os.close(fd)


def waiting(home: str) -> list[str]:
    """The names of what is there, oldest first."""
    try:
        names = os.listdir(f"{home}/{FOLDER}")
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(name for name in names if "." in name and not name.startswith(_TEMPORARY))


def has_commands(name: str) -> bool:
    """Whether an event is a Stop after which something is to be done."""
    return kind_of(name) == STOP and plain(name).count(".") > 1


def id_of(name: str) -> str:
    return name.partition(".")[0]


def kind_of(name: str) -> str:
    return plain(name).split(".")[1]


def span_of(name: str) -> tuple[int | None, int | None]:
    """From where to where in the transcript there are commands, where the name says so."""
    if not has_commands(name):
        return None, None
    start, _, end = plain(name).split(".")[2].partition("-")
    return (int(start) if start.isdecimal() else None, int(end) if end.isdecimal() else None)


def made_ms(event_id: str) -> int:
    first = event_id.partition("-")[0]
    return int(first) if first.isdecimal() and len(first) < 16 else 0


def path_of(home: str, name: str) -> str:
    return f"{home}/{FOLDER}/{name}"


def attempt(home: str, name: str) -> str:
    """Note that an event is about to be handled: `…~1`, `…~2`. Its name then.

    So one that always ends the process is not tried without end.
    """
    tries = name.partition("~")[2]
    tried = f"{plain(name)}~{int(tries) + 1 if tries.isdecimal() else 1}"
    os.rename(path_of(home, name), path_of(home, tried))
    return tried


def is_hopeless(name: str) -> bool:
    """Whether an event was tried often enough."""
    tries = name.partition("~")[2]
    return tries.isdecimal() and int(tries) > _MOST_TRIES


def give_up(home: str, name: str) -> None:
    """Put an event aside."""
    os.makedirs(path_of(home, FAILED), 0o700, exist_ok=True)
    os.rename(path_of(home, name), f"{path_of(home, FAILED)}/{plain(name)}")


def leave(home: str, name: str) -> None:
    """It was not the event's fault: as if it had not been tried."""
    os.rename(path_of(home, name), path_of(home, plain(name)))


def plain(name: str) -> str:
    """The name without how often it was tried."""
    return name.partition("~")[0]


def failed(home: str) -> list[str]:
    """The names of what was given up."""
    try:
        return sorted(os.listdir(path_of(home, FAILED)))
    except (FileNotFoundError, NotADirectoryError):
        return []
