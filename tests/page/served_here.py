"""The page, served by a thread of this process: its clock and its time limits can be changed."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from ctx.agents.known_hosts import HOSTS
from ctx.ids import CLI_SESSION
from ctx.layout import UserStore
from ctx.page.listening import PageServer
from ctx.server.app import PageLink
from ctx.workspace import Environment


class ServedHere(NamedTuple):
    server: PageServer
    folder: str
    log: list[str]
    loop: asyncio.AbstractEventLoop

    def new_link(self) -> PageLink:
        async def link() -> PageLink:
            return self.server.new_link(self.folder)

        return asyncio.run_coroutine_threadsafe(link(), self.loop).result(60)


@contextmanager
def served_here(home: Path, folder: Path) -> Iterator[ServedHere]:
    store = UserStore(str(home))
    environment = Environment(str(folder), store, {}, (), CLI_SESSION, load_hosts=lambda: HOSTS)
    started: list[ServedHere] = []
    is_ready = threading.Event()

    async def serve() -> None:
        log: list[str] = []
        server = PageServer(environment, 0, log=log.append)
        started.append(ServedHere(server, str(folder), log, asyncio.get_running_loop()))
        is_ready.set()
        await server.serve()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert is_ready.wait(60)
    try:
        yield started[0]
    finally:
        started[0].loop.call_soon_threadsafe(started[0].server.end)
        thread.join(60)
        assert not thread.is_alive()
