"""What hooks reported, on its way to memory: what waits, what is new, what was given up."""

from typing import NamedTuple

from ctx import clock
from ctx.capture import event_table
from ctx.hook_files import live, spool
from ctx.workspace import Memory


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
    connection = memory.user.connection
    return without_store(memory.environment.user_store.home)._replace(
        new=event_table.waiting(connection),
        skipped=event_table.skipped(connection),
        last_stored=event_table.last_at(connection),
    )


def without_store(home: str) -> CaptureQueue:
    """The counts that are known if the store cannot be read."""
    now_s = clock.wall_s()
    return CaptureQueue(
        waiting=len(spool.waiting(home)),
        failed=len(spool.failed(home)),
        new=0,
        skipped=0,
        last_stored=None,
        live=sum(live.is_live(home, each, now_s) for each in live.sessions(home)),
    )
