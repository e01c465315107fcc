"""`ctx compose`"""

import argparse

from ctx.cli import arguments, opening
from ctx.cli.options import complete_with
from ctx.cli.output import Markdown, Output, count
from ctx.cli.settings import Settings
from ctx.operations.compose import Composition, Options, compose
from ctx.operations.visible_nodes import VisibleNodes

EXAMPLES = """
ctx compose                                          pinned, reference and working nodes
ctx compose --budget=2000                            the same in at most 2,000 tokens
ctx compose "type:decision created:>30d"             what a query finds
ctx compose --seed 01M7ESYZ1SB4 --depth=2            a node and its neighbours
ctx compose --all-projects --format json             for scripts
"""


def configure(parser: argparse.ArgumentParser) -> None:
    arguments.query(parser, "which nodes; default: pinned, reference and working", required=False)
    budget(parser)
    seed = parser.add_argument(
        "--seed",
        action="append",
        default=[],
        metavar="ID",
        help="start from this node and its neighbours; repeat for several",
    )
    complete_with(seed, "node")
    parser.add_argument(
        "--depth",
        type=arguments.whole_number,
        default=1,
        metavar="N",
        help="the number of edges to follow from the seeds (default: 1)",
    )
    projects(parser)
    arguments.scope(parser)
    arguments.superseded(parser)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    query = arguments.query_of(options)
    with opening.reading(settings, output) as opened:
        memory = arguments.within(opened, options)
        wanted = Options(
            query,
            options.budget,
            [memory.graph.find(text) for text in options.seed],
            options.depth,
            visible(options),
        )
        show(compose(memory, wanted), output)


def show(composition: Composition, output: Output) -> None:
    """The markdown, which is the text form too, or the nodes as JSON."""
    output.show(composition.context, lambda _: [Markdown(composition.text)])
    meta = composition.context.meta
    note_other_projects(meta.other_projects, meta.more_other_projects, output)


def note_other_projects(left_out: int, or_more: bool, output: Output) -> None:
    if left_out:
        nodes = f"More than {left_out:,} nodes" if or_more else count(left_out, "node")
        verb, them = ("was", "it") if left_out == 1 else ("were", "them")
        message = f"{nodes} of other projects {verb} left out; --all-projects shows {them}."
        output.note(message)


def budget(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--budget", type=arguments.whole_number, metavar="N", help="the token budget"
    )


def projects(parser: argparse.ArgumentParser) -> None:
    group = parser.add_mutually_exclusive_group()
    arguments.project_name(group, "the project (default: that of the folder)")
    group.add_argument(
        "--all-projects", action="store_true", help="include nodes of other projects"
    )


def visible(options: argparse.Namespace) -> VisibleNodes:
    return VisibleNodes(
        options.project, options.all_projects, getattr(options, "include_superseded", False)
    )
