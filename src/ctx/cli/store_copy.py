"""`ctx store copy`"""

import argparse
import os

from ctx.cli import arguments
from ctx.cli import options as shared
from ctx.cli.output import Block, Line, Output, count, listing
from ctx.cli.settings import Settings
from ctx.errors import UsageError

# Type checkers know this name from anywhere; importing it from `typing` costs 15 ms.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctx.operations.store_copy import StoreCopyResult

EXAMPLES = """
ctx store copy --to ~/copy.db
ctx store copy --to postgresql://anna@db.example.com/memory --dry-run
ctx store copy --from postgresql://anna@db.example.com/memory --to ~/left.db
"""


def configure(parser: argparse.ArgumentParser) -> None:
    for option, does in (("--from", "copy from this store"), ("--to", "copy to this store")):
        place = parser.add_argument(
            option,
            dest=f"{option[2:]}_store",
            metavar="FILE|URL",
            help=f"{does}: a file, or a server (default: your store)",
        )
        shared.complete_with(place, "file")
    arguments.dry_run(parser)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> int:
    # A server needs much that other commands about the store do not.
    from ctx.operations import store_copy

    given = options.from_store, options.to_store
    if not any(given):
        raise UsageError(
            "Copy from where, or to where?", hint="Give --from, --to, or both of them."
        )
    if settings.is_in_agents_shell and any("://" in place for place in given if place):
        raise UsageError(
            "Only you decide where your memory is sent, not an agent.",
            hint="Run this command in your own terminal.",
        )
    places = store_copy.CopyPlaces(*(_place(place, settings) for place in given))
    doing = "Comparing" if options.dry_run else "Copying"
    with output.progress(doing) as tick:
        copied = store_copy.copy(settings.user_store, places, dry_run=options.dry_run, tick=tick)
    output.show(copied, render)
    return 0


def _place(place: str | None, settings: Settings) -> str:
    if not place:
        return settings.database
    if "://" in place:
        return place
    return os.path.abspath(os.path.join(settings.folder, settings.expanded(place)))


def render(copied: "StoreCopyResult") -> list[Block]:
    verb = "Would copy" if copied.dry_run else "Copied"
    blocks: list[Block] = [
        Line(f"{verb} {count(copied.copied, 'record')} to {copied.destination}.")
    ]
    if copied.scrubs:
        blocks.append(Line("What was scrubbed in the source is removed there."))
    if copied.left_out:
        blocks += [
            Line("Left out, because you may not write them to the server:"),
            *listing(
                ("project", "records"),
                [
                    (each.project or "of another member", f"{each.records:,}")
                    for each in copied.left_out
                ],
            ),
        ]
    return blocks
