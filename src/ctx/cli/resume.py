"""`ctx resume`"""

import argparse

from ctx.cli.output import Block, Line, Output
from ctx.cli.pause import project_option, table
from ctx.cli.settings import Settings
from ctx.operations.pause import ResumeResult, place_of, resume

EXAMPLES = """
ctx resume              take in what agents do again, wherever it was paused
ctx resume --project    only in the project that this folder belongs to
"""


def configure(parser: argparse.ArgumentParser) -> None:
    project_option(parser)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    home = settings.user_store.home
    place = place_of(settings.folder, home) if options.project else None
    output.show(resume(home, place), render)


def render(resumed: ResumeResult) -> list[Block]:
    where = f" in {resumed.project}" if resumed.project else ""
    if not resumed.ended:
        blocks: list[Block] = [Line(f"Nothing was paused{where}.")]
    else:
        blocks = [Line(f"No longer paused{where or ' anywhere'}.")]
    if resumed.pauses:
        blocks += [Line("Still paused:"), *table(resumed.pauses)]
    return blocks
