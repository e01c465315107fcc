"""Which session a session continues: the client does not report from which one it was forked."""

import os

from ctx.hook_files import live

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctx.hosts.hook_events import HookEvent

_RESUMING = (b"--resume", b"-r")


def forked_from(event: "HookEvent", process: str, now_s: float) -> str:
    """The session that a forked one was copied from; empty if unknown.

    The client's own command line names it. If that cannot be read, it is the conversation in the
    same folder that ended at the time that the client reports.
    """
    named = _resumed_session(process)
    if named:
        return named
    ago = event.idle_s
    if not event.transcript or ago is None:
        return ""
    folder, own = os.path.split(event.transcript)
    candidates: list[tuple[float, str]] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith(".jsonl") and entry.name != own:
                    age = now_s - entry.stat().st_mtime
                    candidates.append((abs(age - ago), entry.name.removesuffix(".jsonl")))
    except (OSError, ValueError):
        return ""
    return min(candidates)[1] if candidates else ""


def _resumed_session(process: str) -> str:
    """The session that a client resumes according to its command line, on systems where that can be
    read."""
    if not process.isdecimal():
        return ""
    try:
        with open(f"/proc/{process}/cmdline", "rb") as file:
            words = file.read(65536).split(b"\0")
    except OSError:
        return ""
    for word, following in zip(words, [*words[1:], b""], strict=True):
        named = following if word in _RESUMING else word.partition(b"--resume=")[2]
        text = named.decode("ascii", "replace")
        if live.is_session(text):
            return text
    return ""
