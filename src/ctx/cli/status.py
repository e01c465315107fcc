"""`ctx status`"""

import argparse
import os

from ctx.cli import opening
from ctx.cli.output import Output, Verbatim
from ctx.cli.settings import Settings
from ctx.operations.status import as_text, status

EXAMPLES = """
ctx status                  nodes, edges and tags, and what is in which tier
ctx status --format json    for scripts
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """No options of its own."""


def run(_options: argparse.Namespace, settings: Settings, output: Output) -> None:
    new = not os.path.exists(settings.database)
    with opening.reading(settings, output) as memory:
        output.show(status(memory, new=new), lambda result: [Verbatim(as_text(result))])
