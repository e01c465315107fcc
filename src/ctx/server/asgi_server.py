"""A uvicorn server inside a process that does other work too."""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn


def config(app: Any, **options: Any) -> uvicorn.Config:
    """What every server here has in common: HTTP/1.1 alone, and no logs."""
    logging.getLogger("uvicorn").addHandler(logging.NullHandler())
    logging.getLogger("uvicorn").propagate = False
    return uvicorn.Config(
        app,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=1,
        **options,
    )


class Server(uvicorn.Server):
    """A server that waits for an event to end, instead of polling ten times a second."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._ending = asyncio.Event()

    async def main_loop(self) -> None:
        await self._ending.wait()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        # The process handles signals itself.
        yield

    def end(self) -> None:
        self.should_exit = True
        self._ending.set()
