"""`ctx serve`: the page in this process, until it is interrupted."""

import asyncio
import signal
from collections.abc import Callable

from ctx.page.doctor_runs import Doctor
from ctx.page.listening import PageServer
from ctx.workspace import Environment


def serve(
    environment: Environment,
    port: int,
    announce: Callable[[str], None],
    doctor: Doctor,
    log: Callable[[str], None],
) -> None:
    asyncio.run(_serve(environment, port, announce, doctor, log))


async def _serve(
    environment: Environment,
    port: int,
    announce: Callable[[str], None],
    doctor: Doctor,
    log: Callable[[str], None],
) -> None:
    server = PageServer(environment, port, doctor=doctor, log=log)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, server.end)
    announce(server.new_address(environment.folder))
    await server.serve()
