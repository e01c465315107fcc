"""Find nodes by filters, by words, or by both."""

from collections.abc import Mapping
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple

from ctx import clock
from ctx.ids import NodeId
from ctx.memory.graphs import Graphs
from ctx.memory.model import Node
from ctx.memory.query import execute
from ctx.memory.query.compile import Scope
from ctx.memory.query.query_parser import Query

if TYPE_CHECKING:
    from ctx.packs.node_ranking import Nearness

_COMPARED = 200
"""So many of the best matches by words alone are ranked; the rest follow in that order."""


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


def find(
    graph: Graphs,
    query: Query,
    scope: Scope,
    limit: int,
    *,
    offset: int = 0,
    nearness: "Nearness | None" = None,
) -> QueryResult:
    """The first nodes that match, or those from an offset on; a limit of 0 means no limit.

    The best matches for words are in the order of `ctx recall`.
    """
    return query_exact_first(
        *(graph, query, scope, limit),
        beginnings=True,
        offset=offset,
        counts_others=True,
        nearness=nearness,
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
    nearness: "Nearness | None" = None,
) -> QueryResult:
    """The same, without being content with words that only begin like those of the question, and
    without counting what the scope's project hides."""
    now, connections = clock.now_ms(), graph.connections
    most = offset + limit if limit else None
    compared = most and max(most, _COMPARED)
    matches = execute.matching(
        connections, query, scope, now, limit=compared, beginnings=beginnings
    )
    found = matches.ids
    if query.mode == "text" and not matches.beginnings and limit != 1:
        from ctx.packs import node_ranking

        first = list(islice(found, _COMPARED))
        ranked = node_ranking.rank(graph, query, scope, now, 0, nearness) if first[1:] else ()
        places = {each.node.id: place for place, each in enumerate(ranked)}
        first.sort(key=lambda node_id: places.get(node_id, len(places)))
        found = chain(first, found)
    nodes = tuple(graph.nodes(islice(found, offset, most)))
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
