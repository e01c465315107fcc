"""`ctx serve`"""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ctx.cli import arguments, opening
from ctx.cli.output import Output
from ctx.cli.settings import Settings
from ctx.workspace import Environment

if TYPE_CHECKING:
    from ctx.operations.store_checks import DoctorCheck

EXAMPLES = """
ctx serve                    print the address of the page, and serve it until Ctrl-C
ctx serve --port 8123        on this port instead of any that is free
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--port",
        type=arguments.whole_number,
        default=0,
        metavar="N",
        help="the port (default: any that is free)",
    )


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    from ctx.page import foreground

    environment = Environment(
        settings.folder,
        settings.user_store,
        settings.environment,
        settings.overrides,
        settings.joined_session,
        settings.database,
        load_hosts=opening.load_hosts,
    )

    def examine(folder: str) -> Sequence["DoctorCheck"]:
        # Only who asks for it pays for its libraries.
        from ctx.cli import doctor

        return doctor.checks_in(settings, folder)

    def announce(address: str) -> None:
        output.result(f"{address}\n")
        output.flush()

    foreground.serve(environment, options.port, announce, examine)
