"""Where and when capture is paused with `ctx pause`.

    CTX_HOME/paused    current pauses, one line each: since, until, folder
    CTX_HOME/pauses    past pauses, in the same format

Times are milliseconds; an `until` of 0 means until `ctx resume`. The folder `*` means everywhere.
Past pauses are kept because transcripts are read later: what happened during a pause must not be
captured then either.

Hooks load this module: it imports nothing but `os` and the clock.
"""

import os
from collections.abc import Collection

from ctx import clock, disk, interrupts

NOW = "paused"
BEFORE = "pauses"
EVERYWHERE = "*"

_LARGEST = 4 * 1024 * 1024
_KEPT_MS = 400 * 86_400_000

TYPE_CHECKING = False
if TYPE_CHECKING:
    Pause = tuple[int, int, str]
    """Since, until, folder."""


def is_paused(home: str, folder: str, at_ms: int) -> bool:
    """Whether capture was paused in a folder at a time."""
    known = (*_present(home, clock.now_ms()), *_read(home, BEFORE))
    held = [each for each in known if _holds(each, at_ms)]
    if not held:
        return False
    is_folder = os.path.isabs(folder) and "\0" not in folder
    names = (folder, os.path.realpath(folder)) if is_folder else ()
    return any(_is_meant(place, names) for _, _, place in held)


def current(home: str, now_ms: int) -> "list[Pause]":
    """The current pauses, oldest first."""
    return [each for each in _present(home, now_ms) if _holds(each, now_ms)]


def _present(home: str, now_ms: int) -> "list[Pause]":
    """The pauses in the current file. A pause without an end that begins in the future was made
    while the clock was ahead: it counts as active."""
    return [
        (since if until or since <= now_ms else 0, until, folder)
        for since, until, folder in _read(home, NOW)
    ]


def pause(home: str, folders: Collection[str], now_ms: int, until_ms: int) -> bool:
    """Pause capture in some folders from now on; whether that changes anything."""
    held = current(home, now_ms)
    asked = [(now_ms, until_ms, folder) for folder in folders if "\n" not in folder]
    same = {(until, folder) for _, until, folder in held}
    if all((until_ms, folder) in same for _, _, folder in asked):
        return False
    ending = [each for each in held if each[2] in folders]
    _end(home, ending, now_ms)
    _write(home, NOW, [*(each for each in held if each not in ending), *asked])
    return True


def resume(home: str, folders: Collection[str] | None, now_ms: int) -> "list[Pause]":
    """End the pauses of some folders (None: all folders), and return them."""
    held = current(home, now_ms)
    ending = [each for each in held if folders is None or each[2] in folders]
    _end(home, ending, now_ms)
    _write(home, NOW, [each for each in held if each not in ending])
    return ending


def _end(home: str, ending: "list[Pause]", now_ms: int) -> None:
    """Record ended pauses. This comes first, so that a crash in between loses none."""
    past = [each for each in _present(home, now_ms) if not _holds(each, now_ms)]
    over = [
        *past,
        *((since, min(until or now_ms, now_ms), where) for since, until, where in ending),
    ]
    known = [each for each in _read(home, BEFORE) if each[1] > now_ms - _KEPT_MS]
    if over:
        _write(home, BEFORE, list(dict.fromkeys([*known, *over])))


def _holds(pause: "Pause", at_ms: int) -> bool:
    since, until, _ = pause
    return since <= at_ms and (not until or at_ms < until)


def _is_meant(place: str, names: Collection[str]) -> bool:
    if place == EVERYWHERE:
        return True
    return any(name == place or name.startswith(f"{place.rstrip('/')}/") for name in names)


def _read(home: str, name: str) -> "list[Pause]":
    try:
        with open(f"{home}/{name}", "rb") as file:
            text = file.read(_LARGEST).decode("utf-8", "surrogateescape")
    except OSError:
        return []
    found = []
    for line in text.split("\n"):
        since, _, rest = line.partition(" ")
        until, _, folder = rest.partition(" ")
        if folder and _is_time(since) and _is_time(until):
            found.append((int(since), int(until), folder))
    return found


def _is_time(word: str) -> bool:
    return word.isascii() and word.isdecimal() and len(word) < 16


def _write(home: str, name: str, pauses: "list[Pause]") -> None:
    path = f"{home}/{name}"
    interrupts.defer()
    if not pauses:
        disk.discard(path)
        return
    text = "".join(f"{since} {until} {folder}\n" for since, until, folder in pauses)
    disk.make_folder(home)
    disk.replace(path, text.encode("utf-8", "surrogateescape"))
