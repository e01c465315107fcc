"""The spool: what hooks report, one file for each event, until somebody has time for it.

    CTX_HOME/spool/1768906800123-4242-9f3a1c77.post-tool-use     what the client said
    CTX_HOME/spool/1768906800456-4243-0b1d22e4.stop.1024-20480   a Stop with commands in the
                                                                 transcript, between these bytes
    CTX_HOME/spool/1768906800789-4244-77aa01fe.receipt           what a hook gave to an agent
    CTX_HOME/spool/1768906801012-4245-03c4d5e6.receipt@1f2e3d4c  the same for another store,
                                                                 which somebody has named
    CTX_HOME/spool/1768906801345-4246-5e6f7a8b.codex:stop        a Stop of another host than the
                                                                 first

The first part of a name is the id of the event: milliseconds, process, chance. A file is written
under a temporary name and renamed, so that whoever finds one finds it whole. Files are handled in
the order of their names and removed when what they say is in the store, so that to handle one
twice is harmless.

Hooks load this module: it imports nothing but `os`, `stat` and `sys`.
"""

import os
import stat
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
    "pre-edit": "PreToolUse",
}
"""Event kinds: the names on the command line, and the client's names."""

FOLDER = "spool"
WAKE = "worker.wake"
"""Beside the folder: the worker's wake pipe."""
FAILED = "failed"
"""Beside the events: files that failed after all attempts."""
RECEIPT = "receipt"
STOP = "stop"
POST_TOOL = "post-tool-use"
PRE_EDIT = "pre-edit"
"""The only event that is not stored: the agent is about to read or edit a file."""

_HOST = ":"
_MARK = "@"
_TEMPORARY = "tmp-"
_MOST_TRIES = 3
_LONG_MS = 10 * 60_000

MANY = 64
"""Above this many files, hooks ask for the spool to be processed."""


def new_id(now_ms: int) -> str:
    return f"{now_ms:013d}-{os.getpid()}-{os.urandom(4).hex()}"


def put(home: str, event_id: str, kind: str, data: bytes, *, durable: bool = False) -> None:
    """Write an event. `durable`: it survives a power failure."""
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


def wake(home: str) -> bool:
    """Wake the worker; whether one is running.

    A FIFO without a reader cannot be opened for writing in this mode.
    """
    try:
        fd = os.open(f"{home}/{WAKE}", os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        if not stat.S_ISFIFO(os.fstat(fd).st_mode):
            return False
        os.write(fd, b"!")
    except BlockingIOError:
        # The pipe is full: the worker is already woken.
        pass
    except OSError:
        return False
    finally:
        os.close(fd)
    return True


def _sync(fd: int) -> None:
    if sys.platform == "darwin":
        import fcntl

        # macOS fsync stops at the drive's cache.
        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
    else:
        os.fsync(fd)


def _sync_names(folder: str) -> None:
    """Sync the folder, so that the new name is durable too."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        _sync(fd)
    except OSError:
        # Some file systems cannot sync a folder and do not need it.
        pass
    finally:
        os.close(fd)


def mark_of(home: str, database: str) -> str:
    """The suffix in event names for a store other than the default one; else empty.

    It keeps the worker of one store from processing events of another.
    """
    usual = f"{home}/store.db"
    if database == usual or os.path.realpath(database) == os.path.realpath(usual):
        return ""
    from zlib import crc32

    return f"{_MARK}{crc32(os.fsencode(os.path.realpath(database))):08x}"


def pending_names(home: str, mark: str = "") -> list[str]:
    """The events for the store with this mark, oldest first."""
    return _names_for(mark, _names(home))


def pending_commands(home: str, mark: str = "") -> list[str]:
    """Those of them with commands to run. Other names are not parsed: after each batch of a spool
    with thousands of events, somebody asks for these."""
    stops = [name for name in _names(home) if f"{STOP}." in name]
    return list(filter(has_commands, _names_for(mark, stops)))


def _names(home: str) -> "list[str]":
    try:
        return os.listdir(f"{home}/{FOLDER}")
    except OSError:
        # The folder is missing or not readable.
        return []


def _names_for(mark: str, names: "list[str]") -> list[str]:
    events = (name for name in names if "." in name and not name.startswith(_TEMPORARY))
    return sorted(
        name for name in events if "".join(without_attempt_mark(name).partition(_MARK)[1:]) == mark
    )


def waits_long(names: "list[str]", now_ms: int) -> bool:
    """Whether the oldest event is overdue."""
    return bool(names) and 0 < made_ms(id_of(names[0])) < now_ms - _LONG_MS


def has_commands(name: str) -> bool:
    """Whether an event is a Stop with commands to run."""
    return kind_of(name) == STOP and _without_marks(name).count(".") > 1


def id_of(name: str) -> str:
    return name.partition(".")[0]


def kind_of(name: str) -> str:
    return _without_marks(name).split(".")[1].rpartition(_HOST)[2]


def host_of(name: str) -> str:
    """The host that reported an event; empty: the first."""
    return _without_marks(name).split(".")[1].rpartition(_HOST)[0]


def kind_for(host: str, kind: str) -> str:
    """What an event of a host is left as; the first host is not named."""
    return f"{host}{_HOST}{kind}" if host else kind


def span_of(name: str) -> tuple[int | None, int | None]:
    """The byte range of the transcript with commands, if the name has one."""
    if not has_commands(name):
        return None, None
    start, _, end = _without_marks(name).split(".")[2].partition("-")
    return (int(start) if start.isdecimal() else None, int(end) if end.isdecimal() else None)


def made_ms(event_id: str) -> int:
    first = event_id.partition("-")[0]
    return int(first) if first.isdecimal() and len(first) < 16 else 0


def path_of(home: str, name: str) -> str:
    return f"{home}/{FOLDER}/{name}"


def attempt(home: str, name: str) -> str:
    """Mark an event as being processed: `…~1`, `…~2`; its new name.

    So an event that always crashes the process is not retried for ever.
    """
    tries = name.partition("~")[2]
    tried = f"{without_attempt_mark(name)}~{int(tries) + 1 if tries.isdecimal() else 1}"
    os.rename(path_of(home, name), path_of(home, tried))
    return tried


def is_hopeless(name: str) -> bool:
    """Whether all attempts at an event are used up."""
    tries = name.partition("~")[2]
    return tries.isdecimal() and int(tries) > _MOST_TRIES


def give_up(home: str, name: str) -> None:
    """Move an event to the failed ones."""
    os.makedirs(path_of(home, FAILED), 0o700, exist_ok=True)
    os.rename(path_of(home, name), f"{path_of(home, FAILED)}/{without_attempt_mark(name)}")


def leave(home: str, name: str) -> None:
    """Remove the attempt mark, if the failure was not the event's fault."""
    os.rename(path_of(home, name), path_of(home, without_attempt_mark(name)))


def without_attempt_mark(name: str) -> str:
    """The name without the attempt mark."""
    return name.partition("~")[0]


def _without_marks(name: str) -> str:
    """The name without attempt and store marks."""
    return without_attempt_mark(name).partition(_MARK)[0]


def failed_names(home: str) -> list[str]:
    """The names of failed events."""
    try:
        return sorted(os.listdir(path_of(home, FAILED)))
    except (FileNotFoundError, NotADirectoryError):
        return []
