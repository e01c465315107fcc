"""Which sessions ran with capture off, and when.

    CTX_HOME/off/<session>           hooks ran with `CTX_OFF=1`
    CTX_HOME/off/<session>.closed    off by setting: `capture.enabled`, `capture.ignore_projects`

Each line is `off` or `on` and a time in milliseconds. Transcripts are read later, when a session
continues or is backfilled: what happened while capture was off must not be captured then either.
Capture stays off until the session reports an event that may be captured.

Hooks load this module: it imports nothing but `os`.
"""

import os

FOLDER = "off"

_CLOSED = ".closed"
_LARGEST = 65_536
# The client may write a prompt to the transcript a moment before its hook runs.
_MOMENT_MS = 2_000


def note_off(home: str, session: str, at_ms: int) -> None:
    """A hook of the session ran with `CTX_OFF=1`."""
    _note(home, session, "off", at_ms)


def note_on(home: str, session: str, at_ms: int) -> bool:
    """A hook of the session runs with capture on; whether that is a change."""
    return _note(home, session, "on", at_ms)


def close(home: str, session: str, at_ms: int) -> None:
    """The settings exclude the session from capture."""
    _note(home, f"{session}{_CLOSED}", "off", at_ms)


def reopen(home: str, session: str, at_ms: int) -> None:
    _note(home, f"{session}{_CLOSED}", "on", at_ms)


def was_off(home: str, session: str, at_ms: int) -> bool:
    """Whether capture was off for a session at a time."""
    return any(_was_off(_read(home, name), at_ms) for name in (session, f"{session}{_CLOSED}"))


def was_always_off(home: str, session: str, began_ms: int) -> bool:
    """Whether capture was off for a session since it began."""
    every = (_read(home, session), _read(home, f"{session}{_CLOSED}"))
    return any(len(notes) == 1 and _was_off(notes, began_ms) for notes in every)


def _was_off(notes: "list[tuple[str, int]]", at_ms: int) -> bool:
    state = "on"
    for word, since_ms in notes:
        if since_ms - (_MOMENT_MS if word == "off" else 0) <= at_ms:
            state = word
    return state == "off"


def _note(home: str, name: str, word: str, at_ms: int) -> bool:
    """Record a change; whether it was one. Events that arrive late change nothing."""
    last, since_ms = (_read(home, name) or [("on", 0)])[-1]
    if last == word or at_ms <= since_ms or "/" in name:
        return False
    folder = f"{home}/{FOLDER}"
    os.makedirs(folder, 0o700, exist_ok=True)
    fd = os.open(f"{folder}/{name}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(fd, f"{word} {at_ms}\n".encode())
    finally:
        os.close(fd)
    return True


def _read(home: str, name: str) -> "list[tuple[str, int]]":
    try:
        # If the file is a pipe, opening it must not block.
        fd = os.open(f"{home}/{FOLDER}/{name}", os.O_RDONLY | os.O_NONBLOCK)
    except (OSError, ValueError):
        return []
    try:
        lines = os.read(fd, _LARGEST).decode("ascii", "replace").split("\n")
    except OSError:
        return []
    finally:
        os.close(fd)
    notes = [line.partition(" ") for line in lines]
    return [
        (word, int(at))
        for word, _, at in notes
        if word in ("off", "on") and at.isascii() and at.isdecimal() and len(at) < 16
    ]
