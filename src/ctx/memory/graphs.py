"""Reads several graphs as one: the project's and the user's.

A node lives in one of them. Questions about a node go to the graph that has it; lists are merged in
the order that each graph returns.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import merge
from itertools import islice
from sqlite3 import Connection
from typing import NamedTuple

from ctx import ids
from ctx.errors import AmbiguousId, NodeNotFound, UsageError, ViewNotFound
from ctx.ids import NodeId
from ctx.memory import short_ids
from ctx.memory.graph import Direction, Graph, NodeDeletion, TagCount
from ctx.memory.model import Edge, Node, View
from ctx.memory.records import Record

_PART = 500

_MOST_MENTIONS = 20_000
"""How many are read from each store, the newest."""


class AnchorMention(NamedTuple):
    """A node that mentions a file or an item."""

    type: str
    """`file` or `item`."""
    name: str
    """The path, or the name of the item."""
    anchor: NodeId
    node: NodeId
    node_type: str
    kind: str
    """The `kind:` tag of the node without its prefix; empty if it has none."""
    created_at: str


class Graphs:
    """Graphs that are read as one. If two have a view of the same name, the first wins."""

    def __init__(self, graphs: Sequence[Graph]) -> None:
        self.graphs = tuple(graphs)

    @property
    def connections(self) -> tuple[Connection, ...]:
        return tuple(graph.connection for graph in self.graphs)

    @property
    def scopes(self) -> tuple[str, ...]:
        """The scopes of the graphs."""
        return tuple(graph.scope for graph in self.graphs)

    def holding(self, node_id: NodeId) -> Graph:
        """The graph in which a node lives."""
        for graph in self.graphs:
            if graph.has(node_id):
                return graph
        raise NodeNotFound(f"There is no node {node_id}.")

    def by_scope(self, node_ids: Iterable[NodeId]) -> dict[str, list[NodeId]]:
        """Nodes by the scope in which they live."""
        by_scope: dict[str, list[NodeId]] = {}
        for node_id in dict.fromkeys(node_ids):
            by_scope.setdefault(self.holding(node_id).scope, []).append(node_id)
        return by_scope

    def shared_scope(self, node_ids: Iterable[NodeId], doing: str) -> str | None:
        """The scope in which nodes live that are changed together; None for no nodes."""
        scopes = {self.holding(node_id).scope for node_id in node_ids}
        if len(scopes) > 1:
            raise UsageError(
                f"Some of these nodes are the project's and some are yours, so {doing} them"
                " together is not possible.",
                hint="`ctx move ID --user` or `--project` moves a node to the others.",
            )
        return next(iter(scopes), None)

    def find(self, text: str) -> NodeId:
        """The node whose id has this prefix."""
        return self._only_match(text, Graph.find)

    def find_deleted(self, text: str) -> NodeId:
        """The deleted node whose id has this prefix. A node that was moved is not deleted."""
        node_id = self._only_match(text, Graph.find_deleted)
        if self.has(node_id):
            shown = ids.short(node_id)
            raise UsageError(f"The node {shown} is not deleted.", hint=f"ctx show {shown}")
        return node_id

    def _only_match(self, text: str, find: Callable[[Graph, str], NodeId]) -> NodeId:
        """The one match in all graphs. Without a match, the most specific error is raised."""
        node_ids: dict[NodeId, None] = {}
        refusals: list[NodeNotFound | UsageError] = []
        for graph in self.graphs:
            try:
                node_ids[find(graph, text)] = None
            except (NodeNotFound, UsageError) as error:
                refusals.append(error)
        if len(node_ids) > 1:
            detail = "\n".join(f"  {node_id}" for node_id in node_ids)
            raise AmbiguousId(f"Several nodes have an id that begins with {text}.", detail=detail)
        if not node_ids:
            # "It was deleted" and "it is not deleted" say more than "there is none".
            raise max(refusals, key=lambda error: (isinstance(error, UsageError), bool(error.hint)))
        return next(iter(node_ids))

    def deleted(self, limit: int | None) -> tuple[list[Node], int]:
        """The most recently deleted nodes as they were, and the number of all deleted nodes."""
        last: dict[NodeId, tuple[NodeDeletion, Graph]] = {}
        for graph in self.graphs:
            for deletion in graph.deletions():
                known = last.get(deletion.node_id)
                if known is None or deletion > known[0]:
                    last[deletion.node_id] = deletion, graph
        # A node that was moved to another graph is not deleted.
        gone = [found for node_id, found in last.items() if not self.has(node_id)]
        gone.sort(key=lambda found: found[0].order, reverse=True)
        nodes = (graph.deleted_node(deletion.node_id) for deletion, graph in gone[:limit])
        return [node for node in nodes if node], len(gone)

    def lost_in(self, node_id: NodeId) -> Graph:
        """The graph in which a node was deleted, rather than moved to another."""
        found = {last: graph for graph in self.graphs for last in graph.deletions(node_id)}
        if not found:
            raise NodeNotFound(
                f"The node {ids.short(node_id)} is no longer stored.",
                hint="A node that is deleted before it is committed is not kept.",
            )
        return found[max(found)]

    def shown(self, node_ids: Iterable[NodeId]) -> dict[NodeId, str]:
        """Short ids that are long enough to be unambiguous in these graphs."""
        return short_ids.short_ids(self.connections, node_ids)

    def node(self, node_id: NodeId) -> Node:
        return self.holding(node_id).node(node_id)

    def nodes(self, node_ids: Iterable[NodeId]) -> Iterator[Node]:
        """The nodes in the order of their ids as passed, read in batches. Skips missing nodes."""
        if len(self.graphs) == 1:
            yield from self.graphs[0].nodes(node_ids)
            return
        waiting = iter(node_ids)
        while part := list(islice(waiting, _PART)):
            by_id: dict[NodeId, Node] = {}
            for graph in reversed(self.graphs):
                by_id.update((node.id, node) for node in graph.nodes(part))
            yield from (by_id[node_id] for node_id in part if node_id in by_id)

    def newest(
        self,
        node_types: Sequence[str],
        tags: Sequence[str],
        since: str | None,
        limit: int | None,
        *,
        include_superseded: bool = False,
        except_types: Sequence[str] = (),
        project: str | None = None,
    ) -> tuple[list[NodeId], int]:
        """The newest nodes with one of the types and all of the tags, and their total number;
        with a project, those of it and of none."""
        parts = [
            graph.newest(
                node_types,
                tags,
                since,
                limit,
                include_superseded=include_superseded,
                except_types=except_types,
                project=project,
            )
            for graph in self.graphs
        ]
        merged = list(merge(*(ids for ids, _ in parts), reverse=True))
        # Both graphs may have the same anchor.
        every = list(dict.fromkeys(merged))
        twice = len(merged) - len(every)
        return every[:limit], sum(total for _, total in parts) - twice

    def newest_with_prefix(self, prefix: str, limit: int) -> list[NodeId]:
        """The newest nodes whose id begins so."""
        parts = (graph.newest_with_prefix(prefix, limit) for graph in self.graphs)
        return list(dict.fromkeys(merge(*parts, reverse=True)))[:limit]

    def has(self, node_id: str) -> bool:
        return any(graph.has(node_id) for graph in self.graphs)

    def tags_of(self, node_id: NodeId) -> tuple[str, ...]:
        return self.holding(node_id).tags_of(node_id)

    def of_type(self, node_type: str) -> list[NodeId]:
        node_ids = (node_id for graph in self.graphs for node_id in graph.of_type(node_type))
        return list(dict.fromkeys(node_ids))

    def tag_counts(self, prefix: str = "") -> list[TagCount]:
        """The number of nodes of every tag, sorted by tag."""
        counts: dict[str, int] = {}
        for graph in self.graphs:
            for tag, nodes in graph.tag_counts(prefix):
                counts[tag] = counts.get(tag, 0) + nodes
        return [TagCount(tag, counts[tag]) for tag in sorted(counts)]

    def edges(
        self, node_id: NodeId, direction: Direction = "both", edge_type: str | None = None
    ) -> list[Edge]:
        """The edges of a node, including those that start in another graph."""
        edges = [
            edge for graph in self.graphs for edge in graph.edges(node_id, direction, edge_type)
        ]
        if len(self.graphs) == 1:
            return edges
        return [edge for edge in edges if self.has(edge.from_id) and self.has(edge.to_id)]

    def edge(self, from_id: NodeId, to_id: NodeId, edge_type: str) -> Edge | None:
        edges = (graph.edge(from_id, to_id, edge_type) for graph in self.graphs)
        return next((edge for edge in edges if edge), None)

    def source_of(self, path: str) -> Node | None:
        nodes = (graph.source_of(path) for graph in self.graphs)
        return next((node for node in nodes if node), None)

    def views(self) -> list[View]:
        by_name = {view.name: view for graph in reversed(self.graphs) for view in graph.views()}
        return [by_name[name] for name in sorted(by_name)]

    def view(self, name: str) -> View:
        for graph in self.graphs:
            try:
                return graph.view(name)
            except ViewNotFound:
                continue
        raise ViewNotFound(f"There is no view {name!r}.")

    def history(self, node_id: NodeId) -> list[Record]:
        """All records about a node from all graphs, oldest first."""
        records = [record for graph in self.graphs for record in graph.history(node_id)]
        return sorted(records, key=lambda record: record.order)

    def code_mentions(self) -> list[AnchorMention]:
        """The files and items that valid nodes mention, the newest nodes first."""
        anchors: dict[NodeId, tuple[str, str]] = {}
        for connection in self.connections:
            rows = connection.execute(
                "SELECT id, type, content FROM nodes WHERE type IN ('file', 'item')"
            )
            anchors.update((node_id, (kind, name)) for node_id, kind, name in rows)
        found: dict[tuple[NodeId, NodeId], AnchorMention] = {}
        for connection in self.connections:
            # Edges to a node of another store are in `outside`.
            for table in ("edges", "outside"):
                rows = connection.execute(
                    "SELECT e.to_id, n.id, n.type, n.created_at,"
                    " (SELECT min(substr(tag, 6)) FROM tags WHERE node_id = n.id"
                    " AND tag >= 'kind:' AND tag < 'kind;')"
                    f" FROM {table} AS e JOIN nodes AS n ON n.id = e.from_id"
                    " WHERE e.type = 'MENTIONS' AND n.superseded_by IS NULL"
                    " ORDER BY n.id DESC LIMIT ?",
                    (_MOST_MENTIONS,),
                )
                for anchor, node, node_type, created_at, kind in rows:
                    if anchor in anchors:
                        mention = AnchorMention(
                            *anchors[anchor], anchor, node, node_type, kind or "", created_at
                        )
                        found[anchor, node] = mention
        return sorted(found.values(), key=lambda each: (each.node, each.anchor), reverse=True)
