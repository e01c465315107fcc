"""Compose a context: the nodes that matter, within a budget."""

from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from sqlite3 import Connection
from typing import NamedTuple

from ctx import clock
from ctx.context import compose as composer
from ctx.context.compose import ContextEntry, ContextFrame, OmittedNodes
from ctx.context.context_entries import ContextNode, load
from ctx.ids import NodeId
from ctx.memory import model, walk
from ctx.memory.query import execute
from ctx.memory.query.compile import Scope, hidden_nodes
from ctx.memory.query.query_parser import And, Query, parse
from ctx.operations.visible_nodes import VisibleNodes, is_visible, scope_of
from ctx.workspace import Memory

MOST_COUNTED = 500
"""Hidden nodes are counted up to this; beyond it, only that there are more."""


_MOST_NEAR = 2_000


class Options(NamedTuple):
    query: str | None = None
    """None: whatever has a tier that is shown; with seeds, anything."""
    budget: int | None = None
    seeds: Sequence[NodeId] = ()
    """Where there are some: they, and of what is near them all that the query finds."""
    depth: int = 1
    visible: VisibleNodes = VisibleNodes()


class ContextMeta(NamedTuple):
    node_count: int
    token_count: int
    rendered_at: str
    left_out: int
    """Nodes that match and did not fit. Where there are very many, they are not all counted."""
    more_left_out: bool
    """Whether there are more than that."""
    budget: int
    query: str | None
    project: str | None
    other_projects: int
    """Nodes that match and belong to other projects."""
    more_other_projects: bool
    task: str | None


class ComposedContext(NamedTuple):
    """The answer of `ctx compose` and `ctx view render`."""

    meta: ContextMeta
    nodes: tuple[ContextNode, ...]


class Composition(NamedTuple):
    """A context as an agent reads it, and as a program does."""

    text: str
    context: ComposedContext


class ComposeCandidates(NamedTuple):
    node_ids: Iterator[NodeId]
    query: Query | None
    of_other_projects: OmittedNodes
    kept: Collection[NodeId] | None = None
    """The nodes that are shortened rather than left out; None: the pinned ones."""


def compose(memory: Memory, options: Options) -> Composition:
    """The markdown that an agent is given, and what is in it."""
    scope = scope_of(memory, options.visible)
    if options.seeds:
        return _compose_near(memory, options, scope)
    query = parse(model.DEFAULT_QUERY if options.query is None else options.query)
    now = clock.now_ms()
    connections = memory.graph.connections
    found = (node_id for _, node_id in execute.in_tiers(connections, query, scope, now))
    candidates = ComposeCandidates(found, query, of_other_projects(connections, query, scope, now))
    return _compose_candidates(memory, options, scope, candidates)


def of_other_projects(
    connections: Sequence[Connection], query: Query, scope: Scope, now_ms: int
) -> OmittedNodes:
    """How many nodes are out of sight because they belong to other projects."""
    if scope.project is None or query.names_project:
        return OmittedNodes(0)
    if query.mode == "text":
        return OmittedNodes(execute.left_out_by_scope(connections, query, scope, now_ms))
    # Counting all of them would take longer than everything else.
    asked = query._replace(tree=And((query.tree or And(()), hidden_nodes(scope))))
    found = execute.matching(connections, asked, scope._replace(project=None), now_ms)
    return _count_omitted(found.ids)


def _count_omitted(rest: Iterator[NodeId]) -> OmittedNodes:
    number = sum(1 for _ in islice(rest, MOST_COUNTED))
    return OmittedNodes(number, or_more=next(rest, None) is not None)


def _compose_near(memory: Memory, options: Options, scope: Scope) -> Composition:
    """The seeds and what is near them. What is out of sight is left out, but never a seed."""
    graph = memory.graph
    seeds = frozenset(options.seeds)
    query = None if options.query is None else parse(options.query)
    asked_for: Collection[NodeId] | None = None
    if query is not None:
        found = execute.matching(graph.connections, query, scope, clock.now_ms())
        asked_for = frozenset(found.ids)
    reached = walk.related(graph, options.seeds, options.depth, limit=_MOST_NEAR)
    wanted: list[NodeId] = []
    others = 0
    for node in graph.nodes(step.id for step in reached):
        # What a query finds is in sight already, and it may name what otherwise is not.
        seen = is_visible(node, scope) if asked_for is None else node.id in asked_for
        if node.id in seeds or seen:
            wanted.append(node.id)
        elif asked_for is None and is_visible(node, scope._replace(project=None)):
            others += 1
    candidates = ComposeCandidates(iter(wanted), query, OmittedNodes(others), seeds)
    return _compose_candidates(memory, options, scope, candidates)


def _compose_candidates(
    memory: Memory, options: Options, scope: Scope, candidates: ComposeCandidates
) -> Composition:
    budget = options.budget
    if budget is None:
        budget = memory.config.integer("view.default_budget")
    rendered_at = clock.iso(clock.now_ms())
    loaded: list[ContextNode] = []
    read = 0

    def reading() -> Iterator[NodeId]:
        nonlocal read
        for node_id in candidates.node_ids:
            read += 1
            yield node_id

    def entries() -> Iterator[ContextEntry]:
        stores = memory.graph.connections
        for each in load(stores, reading(), candidates.kept):
            loaded.append(each.node)
            yield each.entry

    def left_out(shown: int) -> OmittedNodes:
        rest = _count_omitted(candidates.node_ids)
        return rest if rest.or_more else OmittedNodes(read - shown + rest.nodes)

    composed = composer.compose(entries(), left_out, budget, ContextFrame(rendered_at))
    meta = ContextMeta(
        len(composed.shown),
        composed.token_count,
        rendered_at,
        composed.left_out.nodes,
        composed.left_out.or_more,
        budget,
        candidates.query.text if candidates.query else None,
        scope.project,
        candidates.of_other_projects.nodes,
        candidates.of_other_projects.or_more,
        scope.task,
    )
    nodes = tuple(loaded[at] for at in composed.shown)
    return Composition(composed.text, ComposedContext(meta, nodes))
