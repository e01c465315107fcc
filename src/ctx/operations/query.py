"""Find nodes by filters, by words, or by both."""

from collections.abc import Mapping
from itertools import islice
from typing import NamedTuple

from ctx import clock
from ctx.ids import NodeId
from ctx.memory.graphs import Graphs
from ctx.memory.model import Node
from ctx.memory.query import execute
from ctx.memory.query.compile import Scope
from ctx.memory.query.query_parser import Query


class QueryResult(NamedTuple):
    """The answer of `ctx query` and `ctx search`."""

    query: str
    nodes: tuple[Node, ...]
    short_ids: Mapping[NodeId, str]
    total: int
    """How many match, of which the first are here."""
    partial: bool
    """Whether no node has all the words, so that these have only some of them."""
    beginnings: bool
    """Whether no node has any of them, so that these have words that begin so."""
    scopes: tuple[str, ...]
    """The stores that were asked: `project`, `user`, or both."""
    other_projects: int = 0
    """How many more match in other projects."""


def find(graph: Graphs, query: Query, scope: Scope, limit: int, *, offset: int = 0) -> QueryResult:
    """The first nodes that match, or those from an offset on; a limit of 0 means no limit."""
    return query_exact_first(
        graph, query, scope, limit, beginnings=True, offset=offset, counts_others=True
    )


def query_exact_first(
    graph: Graphs,
    query: Query,
    scope: Scope,
    limit: int,
    *,
    beginnings: bool = False,
    offset: int = 0,
    counts_others: bool = False,
) -> QueryResult:
    """The same, without being content with words that only begin like those of the question, and
    without counting what the scope's project hides."""
    now, connections = clock.now_ms(), graph.connections
    most = offset + limit if limit else None
    matches = execute.matching(connections, query, scope, now, limit=most, beginnings=beginnings)
    nodes = tuple(graph.nodes(islice(matches.ids, offset, None)))
    total = offset + len(nodes) if nodes else 0
    if limit and (len(nodes) == limit or (offset and not nodes)):
        total = max(total, execute.count(connections, query, scope, now, matches.words))
    others = 0
    if counts_others and scope.project is not None and not query.names_project:
        # Without the condition on projects, counting is cheap.
        everywhere = scope._replace(project=None)
        others = execute.count(connections, query, everywhere, now, matches.words) - total
    shown = graph.shown(node.id for node in nodes)
    kind = matches.partial, matches.beginnings
    return QueryResult(query.text, nodes, shown, total, *kind, graph.scopes, max(others, 0))
