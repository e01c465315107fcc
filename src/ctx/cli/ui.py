"""`ctx ui`"""

import argparse
import json
import socket
import webbrowser

from ctx.cli import worker
from ctx.cli.output import Output
from ctx.cli.settings import Settings
from ctx.errors import ProgramFailure

EXAMPLES = """
ctx ui                       open the page for this folder in the browser
ctx ui --no-open             print its address instead, which works once
"""

_PATIENCE_S = 20.0


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--no-open", action="store_true", help="print the address, open nothing")


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    worker.start(settings)
    address = _new_address(settings)
    if options.no_open or not webbrowser.open(address):
        output.result(f"{address}\n")
    else:
        output.note("The page is open in your browser.")


def _new_address(settings: Settings) -> str:
    """Ask the worker to serve the page."""
    body = json.dumps({"folder": settings.folder}).encode()
    head = f"POST /api/page HTTP/1.1\r\nHost: ctx\r\nContent-Length: {len(body)}\r\n"
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(_PATIENCE_S)
            connection.connect(settings.user_store.worker_socket)
            connection.sendall(f"{head}Connection: close\r\n\r\n".encode() + body)
            response = b""
            while part := connection.recv(65536):
                response += part
        answer = json.loads(response.partition(b"\r\n\r\n")[2])
        return str(answer["address"])
    except (OSError, ValueError, KeyError, TypeError):
        raise ProgramFailure(
            "The worker does not serve the page.",
            hint="See `ctx worker logs`, or serve it here: `ctx serve`",
        ) from None
