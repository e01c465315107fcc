"""List nodes, the newest first."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from ctx import clock
from ctx.ids import NodeId, short
from ctx.memory import model
from ctx.memory.graphs import Graphs
from ctx.memory.model import Node
from ctx.operations.visible_nodes import VisibleNodes, project_of
from ctx.workspace import Memory


class NodeList(NamedTuple):
    nodes: tuple[Node, ...]
    short_ids: Mapping[NodeId, str]
    """How each is shown: long enough to name it in this store."""
    total: int
    """How many there are, of which the first are here."""
    scopes: tuple[str, ...]
    """The stores that were asked: `project`, `user`, or both."""
    other_projects: int = 0
    """How many more there are in other projects."""


def node_list(graph: Graphs, node_ids: Iterable[NodeId], total: int | None = None) -> NodeList:
    nodes = tuple(graph.nodes(node_ids))
    shown = graph.shown(node.id for node in nodes)
    return NodeList(nodes, shown, len(nodes) if total is None else total, graph.scopes)


class Options(NamedTuple):
    types: Sequence[str] = ()
    tags: Sequence[str] = ()
    since: str | None = None
    limit: int = 20
    """0 is no limit."""
    deleted: bool = False
    """Those that were deleted, the last one first; nothing else counts then."""
    anchors: bool = False
    """Whether to include the nodes that stand for something in the code, if no type is named."""
    offset: int = 0
    """How many of the newest to skip."""
    visible: VisibleNodes = VisibleNodes()


def list_nodes(memory: Memory, options: Options) -> NodeList:
    """The newest nodes; of all projects if a tag names one. Deleted nodes are always of all."""
    graph = memory.graph
    if options.deleted:
        gone, total = graph.deleted(options.limit or None)
        shown = {node.id: short(node.id) for node in gone}
        return NodeList(tuple(gone), shown, total, graph.scopes)
    since = None
    if options.since is not None:
        from ctx.memory.query.time_filters import moment

        since = clock.iso(moment(options.since, clock.now_ms()))
    tags = [model.tag(tag) for tag in options.tags]
    names_project = any(tag.startswith("project:") for tag in tags)
    project = None if names_project else project_of(memory, options.visible)
    if options.visible.only_project and memory.own_tag:
        tags.append(memory.own_tag)
    newest = partial(
        graph.newest,
        [model.node_type(word) for word in options.types],
        tags,
        since,
        include_superseded=options.visible.include_superseded,
        except_types=() if options.types or options.anchors else model.ANCHOR_TYPES,
    )
    most = options.offset + options.limit if options.limit else None
    found, total = newest(most, project=project)
    others = 0 if project is None else newest(1)[1] - total
    return node_list(graph, found[options.offset :], total)._replace(other_projects=max(others, 0))
