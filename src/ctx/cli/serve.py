"""`ctx serve` and `ctx ui`: the page, served in this terminal or by the worker."""

import argparse
import json
import os
import sys
import webbrowser
from pathlib import Path
from typing import NamedTuple

from ctx import clock
from ctx.cli import arguments, opening, worker
from ctx.cli.options import flag
from ctx.cli.output import Block, Line, Output
from ctx.cli.settings import Settings, variables
from ctx.errors import ProgramFailure, UsageError

EXAMPLES = {
    "serve": """
ctx serve                    print the address of the page, and serve it until Ctrl-C
ctx serve --port 8123        on this port instead of any that is free
ctx serve --format json      the address as JSON, for a program
""",
    "ui": """
ctx ui                       open the page for this folder in the browser
ctx ui --no-open             print its address instead, which works once
""",
}

_PATIENCE_S = 20.0
_BROWSER_S = 10.0
"""How long a browser may take to start and to read a file."""


class PageAddress(NamedTuple):
    """The answer of `ctx serve` and `ctx ui`."""

    address: str
    """It works once: the first request exchanges the token for a session of its own."""
    token_file: str
    """The file with the token for programs."""


def configure(parser: argparse.ArgumentParser) -> None:
    if parser.get_default("command") == "ui":
        what = "print the address, open nothing"
        flag(parser, "--no-open", what)
        return
    arguments.number(parser, "--port", "the port (default: any that is free)", default=0)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    if options.command == "ui":
        _open_page(options, settings, output)
        return
    if output.is_closed:
        raise UsageError("`ctx serve` needs stdout.", hint="It prints the address of the page.")
    from ctx.page import foreground

    environment = opening.environment(settings, settings.joined_session, settings.database)

    def announce(address: str) -> None:
        output.show(PageAddress(address, settings.user_store.page_token), render)
        output.flush()

    foreground.serve(environment, options.port, announce, worker.page_doctor(settings), output.warn)


def _open_page(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    if settings.database != settings.user_store.database:
        raise UsageError("`ctx ui` shows the default store.", hint="For another: `ctx serve`")
    if settings.is_in_agents_shell:
        raise UsageError(
            "The page is for people, not for agents.",
            hint="`ctx recall` and `ctx show` read memory.",
        )
    worker.start(settings)
    wants_browser = not options.no_open and _has_screen()
    address, file = _new_link(settings, with_file=wants_browser)
    if file and _opens(os.path.join(settings.user_store.home, file)):
        output.note("The page is open in your browser.")
    else:
        if wants_browser:
            output.note("The browser did not open the page. Open this address, which works once:")
        output.show(PageAddress(address, settings.user_store.page_token), render)


def _opens(file: str) -> bool:
    """Whether a browser reads a file that leads to the page. The worker removes the file then.

    A browser in a sandbox, or on another machine, cannot read it.
    """
    if not webbrowser.open(Path(file).as_uri()):
        return False
    is_early = clock.deadline(_BROWSER_S)
    while (is_unused := os.path.exists(file)) and is_early():
        clock.sleep(0.05)
    return not is_unused


def _has_screen() -> bool:
    """Whether a browser would open a window; one for terminals would take over this one."""
    if sys.platform == "darwin":
        return True
    environment = variables()
    return any(environment.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))


def _new_link(settings: Settings, *, with_file: bool) -> tuple[str, str]:
    """Ask the worker to serve the page: its address, and the name of a file that leads there."""
    wanted = {"folder": os.path.realpath(settings.folder), "file": with_file}
    body = json.dumps(wanted).encode()
    answer = worker.ask(settings, "POST /api/page", body, _PATIENCE_S)
    if answer is None or "address" not in answer:
        raise ProgramFailure(
            "The worker does not serve the page.",
            hint="See `ctx worker logs`, or serve it here: `ctx serve`",
        )
    # A worker of an older version writes no file.
    return str(answer["address"]), str(answer.get("file", ""))


def render(page: PageAddress) -> list[Block]:
    return [Line(page.address)]
