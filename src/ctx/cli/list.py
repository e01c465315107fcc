"""`ctx list`"""

import argparse

from ctx.cli import arguments, opening
from ctx.cli.nodes import render_listing
from ctx.cli.options import complete_with, flag
from ctx.cli.output import Output
from ctx.cli.settings import Settings
from ctx.operations.list import Options, list_nodes

EXAMPLES = """
ctx list                                  the 20 newest
ctx list --type=decision --tag=project:shop
ctx list --since=1h --limit=0             everything of the last hour
ctx list --project                        only what belongs to this project
ctx list --all-projects                   also the nodes of other projects
ctx list --type=file                      files that memory mentions
ctx list --deleted                        deleted nodes
ctx list --format json                    whole nodes, for scripts
"""


def configure(parser: argparse.ArgumentParser) -> None:
    kinds = parser.add_argument(
        "--type", action="append", default=[], metavar="TYPE", help="only nodes of these types"
    )
    complete_with(kinds, "node-type")
    arguments.tags(parser, "only nodes with this tag; repeat for several")
    parser.add_argument(
        "--since", metavar="TIME", help="only nodes made since: 1h, 7d, 2w, 2026-01-20"
    )
    flag(parser, "--anchors", "also nodes that stand for files, code, packages and diagnostics")
    arguments.limit(parser)
    arguments.superseded(parser)
    arguments.all_projects(parser)
    arguments.scope(parser)
    flag(parser, "--deleted", "deleted nodes, of every project; `ctx restore` restores them")


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    wanted = Options(
        options.type,
        options.tag,
        options.since,
        options.limit,
        options.deleted,
        options.anchors,
    )
    with opening.reading(settings, output) as opened:
        memory, visible = arguments.visible_within(opened, options)
        listed = list_nodes(memory, wanted._replace(visible=visible))
        output.show(listed, render_listing)
        arguments.note_other_projects(listed.other_projects, output)
        opening.note_conflicts(memory, output)
