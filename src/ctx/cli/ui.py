"""`ctx ui`"""

import argparse
import json
import os
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
    answer = worker.ask(settings, "POST /api/page", body, _PATIENCE_S)
    if answer is None or "address" not in answer:
        raise ProgramFailure(
            "The worker does not serve the page.",
            hint="See `ctx worker logs`, or serve it here: `ctx serve`",
        )
    return str(answer["address"])
