"""`ctx tags`"""

import argparse
from typing import NamedTuple

from ctx.cli import arguments, opening
from ctx.cli.options import complete_with
from ctx.cli.output import Block, Line, Output, Table
from ctx.cli.settings import Settings
from ctx.memory.graph import PROJECT, USER
from ctx.memory.graphs import Graphs

EXAMPLES = """
ctx tags                    every tag, and how many nodes have it
ctx tags --prefix=task:     those of one namespace
ctx tags --user             those of your own nodes
"""


class TagUse(NamedTuple):
    tag: str
    nodes: int
    user: int
    """How many of them are in the user store."""
    project: int
    """How many of them are in the project store."""


class TagList(NamedTuple):
    """The answer of `ctx tags`."""

    tags: tuple[TagUse, ...]
    scopes: tuple[str, ...]
    """The stores that were read: `project`, `user`, or both."""


def configure(parser: argparse.ArgumentParser) -> None:
    prefix = parser.add_argument(
        "--prefix", default="", metavar="TEXT", help="only tags that begin with this"
    )
    complete_with(prefix, "tag")
    arguments.scope(parser)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    with opening.reading(settings, output) as memory:
        graph = arguments.within(memory, options).graph
        output.show(TagList(_count_tags(graph, options.prefix), graph.scopes), render)


def _count_tags(graph: Graphs, prefix: str) -> tuple[TagUse, ...]:
    counts = {each.scope: dict(each.tag_counts(prefix)) for each in graph.graphs}
    ours, theirs = counts.get(USER, {}), counts.get(PROJECT, {})
    both = ((tag, ours.get(tag, 0), theirs.get(tag, 0)) for tag in sorted({**ours, **theirs}))
    return tuple(TagUse(tag, user + project, user, project) for tag, user, project in both)


def render(tags: TagList) -> list[Block]:
    if not tags.tags:
        return [Line("No tags.")]
    rows = [(each.tag, f"{each.nodes:,}") for each in tags.tags]
    if len(tags.scopes) > 1 and any(each.user for each in tags.tags):
        whose = [f"{each.user:,} user" if each.user else "" for each in tags.tags]
        marked = [(*row, where) for row, where in zip(rows, whose, strict=True)]
        return [Table(("tag", "nodes", "where"), marked, ("tags", "", "dim"))]
    return [Table(("tag", "nodes"), rows, ("tags", ""))]
