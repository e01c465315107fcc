"""Small files about sessions that hooks leave for each other, in `CTX_HOME/live/`.

    <session>           while it is live: the client's process and its folder
    <session>.before    the session that it continues
    <session>.stop      how much of its transcript the last Stop has read
    <session>.state     its state when the conversation was compacted
    <session>.receipt   the context it received; a resumed session does not receive it again
    <session>.receipt-2 the same for a further part
    <session>.start-…   a hook is answering its start, for a second hook with the same event
    <session>.prompted  its first prompt was answered
    <session>.source    how it started, if its next prompt is answered with a context
    <session>.edit-…    it was given what memory knows about a file
    cleared-<process>   the session that a client has just cleared

Hooks load this module: it imports nothing but `os`.
"""

import os

FOLDER = "live"
# Without a process id, a session is live while it sends events.
_SILENCE_S = 600
_SKEW_S = 86_400
_LARGEST = 4 * 1024 * 1024


def is_session(text: str) -> bool:
    """Whether the text can be a session id and a file name."""
    return (
        0 < len(text) <= 128
        and text[0] not in ".-"
        and text.isascii()
        and text.replace("-", "").replace("_", "").replace(".", "").isalnum()
    )


def path_of(home: str, name: str) -> str:
    return f"{home}/{FOLDER}/{name}"


def write(home: str, name: str, text: str) -> None:
    view = memoryview(text.encode("utf-8", "surrogateescape"))
    path = path_of(home, name)
    temporary = f"{path}.{os.getpid()}.tmp"
    fd = _open_file(home, temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        try:
            while view:
                view = view[os.write(fd, view) :]
        finally:
            os.close(fd)
        os.replace(temporary, path)
    except OSError:
        os.unlink(temporary)
        raise


def _open_file(home: str, path: str, flags: int) -> int:
    """Open a file, creating its folders if needed."""
    try:
        return os.open(path, flags, 0o600)
    except FileNotFoundError:
        os.makedirs(home, 0o700, exist_ok=True)
        os.makedirs(f"{home}/{FOLDER}", 0o700, exist_ok=True)
        return os.open(path, flags, 0o600)


def read(home: str, name: str) -> str:
    """The content of a file; empty if there is none."""
    try:
        # A FIFO in its place must not block.
        fd = os.open(path_of(home, name), os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return ""
    try:
        parts = []
        size = 0
        while size < _LARGEST and (part := os.read(fd, 65536)):
            parts.append(part)
            size += len(part)
        return b"".join(parts).decode("utf-8", "surrogateescape")
    except OSError:
        return ""
    finally:
        os.close(fd)


def take(home: str, name: str) -> str:
    """The content of a file, which is removed. If two processes try, one gets it."""
    text = read(home, name)
    try:
        os.unlink(path_of(home, name))
    except OSError:
        return ""
    return text


def follow(home: str, session: str, before: str, until_ms: int) -> None:
    """A session continues another: what was pending for that one until then is pending for this
    one."""
    write(home, f"{session}.before", before)
    os.utime(path_of(home, f"{session}.before"), ns=(until_ms * 1_000_000,) * 2)


def written_ms(home: str, name: str) -> int:
    """When a file was written; 0 if there is none."""
    try:
        return os.stat(path_of(home, name)).st_mtime_ns // 1_000_000
    except OSError:
        return 0


def claim(home: str, name: str, now_ms: int, for_ms: int) -> bool:
    """Claim a name for a time; whether nobody else has."""
    import fcntl

    fd = _open_file(home, path_of(home, name), os.O_RDWR | os.O_CREAT)
    try:
        # Another process is claiming the name right now.
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        claimed = os.read(fd, 20)
        # The process that claimed it first may have read the clock last.
        if claimed.isdigit() and abs(now_ms - int(claimed)) < for_ms:
            return False
        os.pwrite(fd, b"%020d" % now_ms, 0)
        return True
    except BlockingIOError:
        return False
    finally:
        os.close(fd)


def remove(home: str, name: str) -> None:
    try:
        os.unlink(path_of(home, name))
    except OSError:
        pass


def begin(home: str, session: str, process: str, folder: str) -> None:
    write(home, session, f"{process}\n{folder}\n")


def touch(home: str, session: str) -> None:
    """Note activity. A client with a known process does not need it."""
    if is_session(session):
        try:
            os.utime(path_of(home, session))
        except OSError:
            pass


def sessions(home: str) -> list[str]:
    """Sessions that started and did not end, whether or not their clients still run."""
    try:
        names = os.listdir(f"{home}/{FOLDER}")
    except OSError:
        return []
    return sorted(name for name in names if is_session(name) and not _is_about_one(name))


def _is_about_one(name: str) -> bool:
    """Whether a file is not the session file itself."""
    last = name.rpartition(".")[2] if "." in name else ""
    return (
        last in ("before", "stop", "state", "receipt", "prompted", "source", "tmp")
        or last.startswith(("receipt-", "start-", "edit-"))
        or name.startswith("cleared-")
    )


def is_known(home: str, session: str) -> bool:
    """Whether a session has started and did not end."""
    return os.path.lexists(path_of(home, session))


def folder_of(home: str, session: str) -> str:
    """The folder in which a session started."""
    return read(home, session).partition("\n")[2].rstrip("\n")


def continued_session(home: str, session: str) -> str:
    """The session that this one continues, if any."""
    found = read(home, f"{session}.before")
    return found if is_session(found) and found != session else ""


def is_gone(home: str, session: str) -> bool:
    """Whether the client of a session has ended; False if its process is not known."""
    process = read(home, session).partition("\n")[0]
    return process.isdecimal() and not _runs(int(process))


def is_live(home: str, session: str, now_s: float) -> bool:
    """Whether the client of a session still runs."""
    process = read(home, session).partition("\n")[0]
    if process.isdecimal():
        return _runs(int(process))
    try:
        # After the clock is set back, a session must not stay live for years.
        return -_SKEW_S < now_s - os.stat(path_of(home, session)).st_mtime < _SILENCE_S
    except OSError:
        return False


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        pass
    return True
