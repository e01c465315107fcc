"""The state of capture: why it is off, if the user has turned it off, and what waits to be stored.

A forgotten pause is easy to miss, so `status`, `doctor` and others report it.
"""

from typing import NamedTuple

from ctx import clock
from ctx.capture import capture_rules, event_table
from ctx.capture.capture_pauses import EVERYWHERE
from ctx.hook_files import live, spool
from ctx.operations.pause import Pause, active_pauses, place_of
from ctx.sqlite.connection import path_text
from ctx.workspace import Environment, Memory


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
    found = [_pause_stop(each) for each in active_pauses(home)]
    if why := capture_rules.disabling_setting(config, place, environment.variables.get("HOME", "")):
        name = "ignore_projects" if config.flag("capture.enabled") else "enabled"
        found.append(
            CaptureStop(why, f"`ctx config explain capture.{name}` shows where it is set.")
        )
    return tuple(found)


def _pause_stop(pause: Pause) -> CaptureStop:
    where = "everywhere" if pause.folder == EVERYWHERE else f"in {path_text(pause.folder)}"
    until = f" until {pause.until}" if pause.until else ""
    return CaptureStop(
        f"paused {where} since {pause.since}{until}", "`ctx resume` resumes capture."
    )


class CaptureQueue(NamedTuple):
    waiting: int
    """Files in the spool that are not processed yet."""
    failed: int
    """Files that could not be processed and were set aside."""
    new: int
    """Events in the store of which nothing was made yet."""
    skipped: int
    """Events that were given up after several tries."""
    last_stored: str | None
    """When the last event happened that is in the store."""
    live: int
    """Sessions whose client runs."""


def capture_queue(memory: Memory) -> CaptureQueue:
    return without_store(memory.environment.user_store.home)._replace(
        new=event_table.count_pending(memory.local),
        skipped=event_table.count_skipped(memory.local),
        last_stored=event_table.last_at(memory.local),
    )


def without_store(home: str) -> CaptureQueue:
    """The counts that are known if the store cannot be read."""
    now_s = clock.wall_s()
    return CaptureQueue(
        waiting=len(spool.pending_names(home)),
        failed=len(spool.failed_names(home)),
        new=0,
        skipped=0,
        last_stored=None,
        live=sum(live.is_live(home, each, now_s) for each in live.sessions(home)),
    )
