"""Pause and resume capture, everywhere or in one project.

Agents still get memory and can use it, and their commands still run: only capture stops.
"""

import os
from contextlib import suppress
from typing import NamedTuple

from ctx import checkouts, clock, disk, layout
from ctx.capture import capture_pauses
from ctx.capture.capture_pauses import EVERYWHERE
from ctx.layout import Place
from ctx.project import trust_check

_LARGEST = 16_384


class Pause(NamedTuple):
    folder: str
    """`*`: everywhere."""
    since: str
    until: str | None
    """None: until `ctx resume`."""


class PauseResult(NamedTuple):
    """The answer of `ctx pause`."""

    project: str | None
    """The one that was meant; None: everywhere."""
    changed: bool
    """Whether it was not so before."""
    pauses: tuple[Pause, ...]
    """All that holds now."""


class ResumeResult(NamedTuple):
    """The answer of `ctx resume`."""

    project: str | None
    ended: tuple[Pause, ...]
    pauses: tuple[Pause, ...]
    """What still holds."""


def pause(home: str, place: Place | None, until_ms: int | None) -> PauseResult:
    """Pause where a place is, in all working trees of its repository; None: everywhere."""
    now_ms = clock.now_ms()
    folders = _folders(place) if place else [EVERYWHERE]
    with disk.explain_errors("pausing capture"):
        changed = capture_pauses.pause(home, folders, now_ms, until_ms or 0)
    return PauseResult(_name(place), changed, active_pauses(home))


def resume(home: str, place: Place | None) -> ResumeResult:
    """Go on where a place is; None: wherever it is paused."""
    now_ms = clock.now_ms()
    with disk.explain_errors("resuming capture"):
        ended = capture_pauses.resume(home, _folders(place) if place else None, now_ms)
    return ResumeResult(_name(place), tuple(map(_pause, ended)), active_pauses(home))


def place_of(folder: str, home: str) -> Place:
    return layout.place(folder, home, lambda project: trust_check.verify(home, project).is_trusted)


def _name(place: Place | None) -> str | None:
    return (place.project or place.folder) if place else None


def active_pauses(home: str) -> tuple[Pause, ...]:
    """What holds now, the oldest first."""
    return tuple(map(_pause, capture_pauses.current(home, clock.now_ms())))


def _pause(pause: tuple[int, int, str]) -> Pause:
    since, until, folder = pause
    return Pause(folder, clock.iso(since), clock.iso(until) if until else None)


def _folders(place: Place) -> list[str]:
    """The working trees of a repository, as git has written down where they lie."""
    checkout = checkouts.find_checkout(place.folder)
    found = [place.folder]
    if checkout is None:
        return found
    above, last = os.path.split(os.path.realpath(checkout.common_dir))
    if last == ".git":
        found.append(above)
    worktrees = os.path.join(checkout.common_dir, "worktrees")
    for name in disk.names(worktrees):
        with suppress(OSError):
            said = disk.read_plain(os.path.join(worktrees, name, "gitdir"), _LARGEST)
            link = os.path.join(worktrees, name, os.fsdecode(said).rstrip("\n"))
            found.append(os.path.realpath(os.path.dirname(link)))
    return list(dict.fromkeys(found))
