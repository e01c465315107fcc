"""`ctx pause` and `ctx resume`"""

import argparse

from ctx import clock
from ctx.capture.capture_pauses import EVERYWHERE
from ctx.cli.options import flag
from ctx.cli.output import Block, Line, Output, Table
from ctx.cli.settings import Settings
from ctx.errors import UsageError
from ctx.memory.query import time_filters
from ctx.operations.pause import Pause, PauseResult, ResumeResult, pause, place_of, resume

EXAMPLES = {
    "pause": """
ctx pause              pause capture everywhere
ctx pause --for 2h     for two hours
ctx pause --project    only in this project
ctx resume             resume capture
""",
    "resume": """
ctx resume              resume capture everywhere
ctx resume --project    only in this project
""",
}


def configure(parser: argparse.ArgumentParser) -> None:
    flag(parser, "--project", "only in this project, and all its working trees")
    if parser.get_default("command") == "pause":
        parser.add_argument("--for", dest="until", metavar="TIME", help="how long: 30min, 2h, 1d")


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    home = settings.user_store.home
    if options.command == "resume":
        place = place_of(settings.folder, home) if options.project else None
        output.show(resume(home, place), render_resumed)
        return
    until_ms = _pause_end(options.until) if options.until is not None else None
    place = place_of(settings.folder, home) if options.project else None
    output.show(pause(home, place, until_ms), render_paused)


def _pause_end(text: str) -> int:
    """The end of a pause: a duration from now, or a date."""
    now_ms = clock.now_ms()
    told_ms = time_filters.moment(text, now_ms)
    if told_ms > now_ms:
        return told_ms
    if told_ms == now_ms or "-" in text:
        raise UsageError(f"--for {text[:40]} is in the past.", hint="For example: --for 2h")
    return now_ms + (now_ms - told_ms)


def render_paused(paused: PauseResult) -> list[Block]:
    where = f"in {paused.project}" if paused.project else "everywhere"
    word = "--project" if paused.project else ""
    state = "Paused" if paused.changed else "Already paused"
    return [
        Line(f"{state} {where}: ctx does not record what agents do."),
        Line("Agents still get memory, and can still use it."),
        *_table(paused.pauses),
        Line(f"To resume: `ctx resume {word}".rstrip() + "`"),
    ]


def render_resumed(resumed: ResumeResult) -> list[Block]:
    where = f" in {resumed.project}" if resumed.project else ""
    if not resumed.ended:
        blocks: list[Block] = [Line(f"Capture was not paused{where}.")]
    else:
        blocks = [Line(f"Capture resumed{where or ' everywhere'}.")]
    if resumed.pauses:
        blocks += [Line("Still paused:"), *_table(resumed.pauses)]
    return blocks


def _table(pauses: tuple[Pause, ...]) -> list[Block]:
    """The current state."""
    if not pauses:
        return []
    rows = [
        (
            "everywhere" if each.folder == EVERYWHERE else each.folder,
            f"since {each.since}",
            f"until {each.until or '`ctx resume`'}",
        )
        for each in pauses
    ]
    return [Table(("", "", ""), rows)]
