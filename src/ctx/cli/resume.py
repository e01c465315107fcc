"""`ctx resume`"""

import argparse

from ctx.cli.output import Block, Line, Output
from ctx.cli.pause import project_option, table
from ctx.cli.settings import Settings
from ctx.operations.pause import ResumeResult, place_of, resume

EXAMPLES = """
ctx resume              resume capture everywhere
ctx resume --project    only in this project
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
        blocks: list[Block] = [Line(f"Capture was not paused{where}.")]
    else:
        blocks = [Line(f"Capture resumed{where or ' everywhere'}.")]
    if resumed.pauses:
        blocks += [Line("Still paused:"), *table(resumed.pauses)]
    return blocks
