"""`ctx serve`"""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ctx.cli import arguments, opening
from ctx.cli.output import Block, Line, Output
from ctx.cli.settings import Settings
from ctx.errors import UsageError
from ctx.workspace import Environment

if TYPE_CHECKING:
    from ctx.operations.store_checks import DoctorCheck

EXAMPLES = """
ctx serve                    print the address of the page, and serve it until Ctrl-C
ctx serve --port 8123        on this port instead of any that is free
ctx serve --format json      the address as JSON, for a program
"""


class PageAddress(NamedTuple):
    """The answer of `ctx serve` and `ctx ui`."""

    address: str
    """It works once: the first request exchanges the token for a session of its own."""
    token_file: str
    """The file with the token for programs."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--port",
        type=arguments.whole_number,
        default=0,
        metavar="N",
        help="the port (default: any that is free)",
    )


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    if output.is_closed:
        raise UsageError("`ctx serve` needs stdout.", hint="It prints the address of the page.")
    from ctx.page import foreground

    environment = Environment(
        settings.folder,
        settings.user_store,
        settings.environment,
        settings.overrides,
        settings.joined_session,
        settings.database,
        load_hosts=opening.load_hosts,
        in_agents_shell=settings.is_in_agents_shell,
    )

    def examine(folder: str) -> Sequence["DoctorCheck"]:
        # Only who asks for it pays for its libraries.
        from ctx.cli import doctor

        return doctor.checks_in(settings, folder)

    def announce(address: str) -> None:
        output.show(PageAddress(address, settings.user_store.page_token), render)
        output.flush()

    foreground.serve(environment, options.port, announce, examine, output.warn)


def render(page: PageAddress) -> list[Block]:
    return [Line(page.address)]
