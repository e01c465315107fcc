"""`ctx ui`"""

import argparse
import json
import os
import socket
import sys
import webbrowser

from ctx.cli import worker
from ctx.cli.output import Output
from ctx.cli.serve import PageAddress, render
from ctx.cli.settings import Settings, variables
from ctx.errors import ProgramFailure, UsageError

EXAMPLES = """
ctx ui                       open the page for this folder in the browser
ctx ui --no-open             print its address instead, which works once
"""

_PATIENCE_S = 20.0


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--no-open", action="store_true", help="print the address, open nothing")


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    if settings.database != settings.user_store.database:
        raise UsageError("`ctx ui` shows the default store.", hint="For another: `ctx serve`")
    if settings.is_in_agents_shell:
        raise UsageError(
            "The page is for people, not for agents.",
            hint="`ctx recall` and `ctx show` read memory.",
        )
    worker.start(settings)
    address = _new_address(settings)
    if not options.no_open and _has_screen() and webbrowser.open(address):
        output.note("The page is open in your browser.")
    else:
        output.show(PageAddress(address, settings.user_store.page_token), render)


def _has_screen() -> bool:
    """Whether a browser would open a window; one for terminals would take over this one."""
    if sys.platform == "darwin":
        return True
    environment = variables()
    return any(environment.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))


def _new_address(settings: Settings) -> str:
    """Ask the worker to serve the page."""
    body = json.dumps({"folder": os.path.realpath(settings.folder)}).encode()
    head = f"POST /api/page HTTP/1.1\r\nHost: ctx\r\nContent-Length: {len(body)}\r\n"
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(_PATIENCE_S)
            connection.connect(settings.user_store.worker_socket)
            connection.sendall(f"{head}Connection: close\r\n\r\n".encode() + body)
            response = b""
            while part := connection.recv(65536):
                response += part
        return str(json.loads(response.partition(b"\r\n\r\n")[2])["address"])
    except (OSError, ValueError, KeyError, TypeError):
        raise ProgramFailure(
            "The worker does not serve the page.",
            hint="See `ctx worker logs`, or serve it here: `ctx serve`",
        ) from None
