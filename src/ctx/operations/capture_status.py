"""Why capture is off, if the user has turned it off.

A forgotten pause is easy to miss, so `status`, `doctor` and others report it.
"""

from typing import NamedTuple

from ctx.capture import capture_rules
from ctx.capture.capture_pauses import EVERYWHERE
from ctx.operations.pause import Pause, active_pauses, place_of
from ctx.sqlite.connection import shown
from ctx.workspace import Environment


class CaptureStop(NamedTuple):
    why: str
    """Such as `paused everywhere since 2026-11-15T09:12:00Z`."""
    advice: str
    """What ends it."""


def capture_stops(environment: Environment) -> tuple[CaptureStop, ...]:
    """All there are: pauses anywhere, and what is set for this place."""
    home = environment.user_store.home
    place = place_of(environment.folder, home)
    # As capture reads them: settings of a project have no effect on it.
    config = environment.user_config
    found = [_paused(each) for each in active_pauses(home)]
    if why := capture_rules.closed(config, place, environment.variables.get("HOME", "")):
        name = "ignore_projects" if config.flag("capture.enabled") else "enabled"
        found.append(
            CaptureStop(why, f"`ctx config explain capture.{name}` shows where it is set.")
        )
    return tuple(found)


def _paused(pause: Pause) -> CaptureStop:
    where = "everywhere" if pause.folder == EVERYWHERE else f"in {shown(pause.folder)}"
    until = f" until {pause.until}" if pause.until else ""
    return CaptureStop(
        f"paused {where} since {pause.since}{until}", "`ctx resume` resumes capture."
    )
