"""Tells an open page that something changed, so that it reads itself again.

The page does not learn what changed. One task looks at the stamps of the files that contain
memory as long as a page listens; that costs a few system calls a second, and notices changes of
every process: commands, hooks, another machine's git pull. A page has the stamp of what it was made
from, so that it hears of changes that came before it listened.
"""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable

from ctx import layout
from ctx.workspace import Environment

_LOOK_S = 0.7
_KEEP_ALIVE_S = 15.0


class Listeners:
    """How many pages listen, for the worker, which stays as long as one does."""

    def __init__(self) -> None:
        self.count = 0
        self._ending = asyncio.Event()

    def end(self) -> None:
        """End all streams: the server stops."""
        self._ending.set()

    async def stream(
        self, environment: Environment, since: str, is_open: Callable[[], bool]
    ) -> AsyncIterator[bytes]:
        """Server-sent events: one for each time that something has changed since a stamp, until the
        session of the page ends."""
        paths = _files(environment)
        self.count += 1
        try:
            yield b": listening\n\n"
            seen, quiet_s = since, 0.0
            while is_open() and not self._ending.is_set():
                now = _stamp(paths)
                if now != seen:
                    seen, quiet_s = now, 0.0
                    yield b"event: changed\ndata: {}\n\n"
                elif quiet_s > _KEEP_ALIVE_S:
                    quiet_s = 0.0
                    yield b": still here\n\n"
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._ending.wait(), _LOOK_S)
                quiet_s += _LOOK_S
        finally:
            self.count -= 1


def stamp(environment: Environment) -> str:
    """What changes with the memory of a place."""
    return _stamp(_files(environment))


def _files(environment: Environment) -> list[str]:
    store = environment.graph_file
    found = [store, f"{store}-wal", environment.user_store.ledger]
    if project := layout.find_project(environment.folder, environment.user_store.home):
        found += [project.heads, project.refs, project.narrative, project.store]
    return found


def _stamp(paths: list[str]) -> str:
    found = []
    for path in paths:
        try:
            status = os.stat(path)
        except OSError:
            found.append((0, 0))
        else:
            found.append((status.st_mtime_ns, status.st_size))
    return layout.digest(repr(found).encode(), 8)
