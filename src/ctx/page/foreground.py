"""`ctx serve`: the page in this process, until it is interrupted."""

import asyncio
import signal
from collections.abc import Callable

from ctx.page.doctor_runs import Examine
from ctx.page.listening import PageServer
from ctx.workspace import Environment


def serve(
    environment: Environment,
    port: int,
    announce: Callable[[str], None],
    examine: Examine,
    log: Callable[[str], None],
) -> None:
    asyncio.run(_serve(environment, port, announce, examine, log))


async def _serve(
    environment: Environment,
    port: int,
    announce: Callable[[str], None],
    examine: Examine,
    log: Callable[[str], None],
) -> None:
    server = PageServer(environment, port, examine=examine, log=log)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, server.end)
    announce(server.new_address(environment.folder))
    await server.serve()
