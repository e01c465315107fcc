"""`ctx compose`"""

import argparse

from ctx.cli import arguments, opening
from ctx.cli.options import complete_with
from ctx.cli.output import Markdown, Output
from ctx.cli.settings import Settings
from ctx.operations.compose import Composition, Options, compose

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
    help_text = "the number of edges to follow from the seeds (default: 1)"
    arguments.number(parser, "--depth", help_text, default=1)
    projects(parser)
    arguments.scope(parser)
    arguments.superseded(parser)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    query = arguments.query_of(options)
    with opening.reading(settings, output) as opened:
        memory, visible = arguments.visible_within(opened, options)
        wanted = Options(
            query,
            options.budget,
            [memory.graph.find(text) for text in options.seed],
            options.depth,
            visible,
        )
        show(compose(memory, wanted), output)


def show(composition: Composition, output: Output) -> None:
    """The markdown, which is the text form too, or the nodes as JSON."""
    output.show(composition.context, lambda _: [Markdown(composition.text)])
    meta = composition.context.meta
    arguments.note_other_projects(meta.other_projects, output, or_more=meta.more_other_projects)


def budget(parser: argparse.ArgumentParser) -> None:
    arguments.number(parser, "--budget", "the token budget")


def projects(parser: argparse.ArgumentParser) -> None:
    group = parser.add_mutually_exclusive_group()
    arguments.project_name(group, "the project (default: that of the folder)")
    arguments.all_projects(group)
