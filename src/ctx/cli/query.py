"""`ctx query`"""

import argparse

from ctx.cli import arguments, opening
from ctx.cli.nodes import table
from ctx.cli.output import Block, Line, Output, count
from ctx.cli.settings import Settings
from ctx.memory.graphs import Graphs
from ctx.memory.query.compile import Scope
from ctx.memory.query.parse import Query, parse
from ctx.operations.query import Found, find

EXAMPLES = """
ctx query "type:fact AND tag:project:shop"
ctx query "(type:decision OR type:pattern) AND created:>7d"
ctx query "tag:tier:working AND NOT has:summary"
ctx query "tag:task:* AND tokens:<500"
ctx query "type:decision refresh token"    words rank, filters must hold
"""

LANGUAGE = """
filters:
  type:fact            a type of node
  tag:project:shop     a tag; tag:task:* for all that begin so
  created:>24h         made in the last 24 hours; <1w before; >2026-01-20 since a date
  updated:>24h         the same for the last change
  tokens:<1000         the estimated size
  has:summary          also edges, tags, metadata, superseded
  from:ID  to:ID       with an edge from that node, or to it
  session:ID           made or changed in a session
  project:shop         short for tag:project:shop
  path:src/net.py      about a file or a folder
  id:01M7              by the beginning of an id
operators: AND OR NOT ( ); filters beside each other are joined by AND
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = f"{parser.description}\n{LANGUAGE.rstrip()}"
    parser.add_argument("query", nargs="+", metavar="QUERY", help="filters, words, or both")
    arguments.limit(parser)
    arguments.superseded(parser)
    arguments.scope(parser)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    answer(parse(" ".join(options.query)), options, settings, output)


def answer(query: Query, options: argparse.Namespace, settings: Settings, output: Output) -> None:
    """Show what matches; `ctx search` answers so too."""
    with opening.reading(settings, output) as memory:
        graph = arguments.within(memory, options).graph
        scope = Scope(include_superseded=options.include_superseded)
        found = find(graph, query, scope, options.limit)
        output.show(found, render)
        _note_superseded(graph, found, query, scope, output)
    _note_partial(found, output)


def _note_superseded(
    graph: Graphs, found: Found, query: Query, scope: Scope, output: Output
) -> None:
    """Where nothing is found, say whether something was once so."""
    if not found.nodes and not scope.include_superseded:
        hidden = find(graph, query, Scope(include_superseded=True), 1)
        if hidden.nodes and not hidden.partial:
            matching = count(hidden.total, "superseded node matches", "superseded nodes match")
            output.note(f"{matching}: --include-superseded.")


def _note_partial(found: Found, output: Output) -> None:
    if found.partial and found.nodes:
        which = "words that begin so" if found.beginnings else "some"
        none = "any" if found.beginnings else "all"
        output.note(f"No node has {none} of these words; these have {which}.")


def render(found: Found) -> list[Block]:
    if not found.nodes:
        return [Line("No matching nodes.")]
    blocks: list[Block] = [table(found.nodes, found.short_ids, found.scopes)]
    if found.total > len(found.nodes):
        blocks.append(Line(f"  … and {found.total - len(found.nodes):,} more (--limit)"))
    return blocks
