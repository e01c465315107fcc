"""The graph of a project as a picture can show it: memory, code, and where the two meet.

They meet in the anchors: the node that stands for a file or an item in memory is that file or item
in the code, and one vertex.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ctx.code import lookup, suggestions
from ctx.code.lookup import Code, LocatedItem
from ctx.code.vocabulary import SLOTS, file_of, item_id
from ctx.codebase import code_items
from ctx.codebase.indexing import IndexAge
from ctx.errors import AmbiguousId, NodeNotFound
from ctx.ids import NodeId
from ctx.memory import walk
from ctx.memory.graph import USER
from ctx.memory.graphs import Graphs
from ctx.memory.model import Node
from ctx.project.anchors import Anchor

_LABEL = 60


class AroundOptions(NamedTuple):
    start: str
    folder: str
    """Where paths may begin."""
    depth: int
    limit: int
    """Vertices, at most."""


class Vertex(NamedTuple):
    id: str
    """A node's id, `file:PATH`, or `item:PATH:LINE:NAME`."""
    kind: str
    """The type of a node, `file`, or the kind of an item."""
    label: str
    path: str
    line: int
    """0 if it has no line."""
    node: NodeId | None
    """The node of memory, if there is one."""
    created_at: str = ""
    """When the node was added; empty for what is only in the code."""
    tags: tuple[str, ...] = ()


class Arrow(NamedTuple):
    source: str
    type: str
    target: str
    confidence: str
    """`high`, `medium` or `low` for what was read out of code; empty for memory."""
    line: int


class GraphPicture(NamedTuple):
    """The answer of `ctx debug graph`."""

    around: str | None
    vertices: tuple[Vertex, ...]
    edges: tuple[Arrow, ...]
    left_out: int
    """Vertices for which there was no place."""
    age: IndexAge | None
    """Null where no code was looked at."""


class GraphFilter(NamedTuple):
    """Which nodes and files are drawn. Without values, all of them."""

    types: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    since: str | None = None

    @property
    def has_files(self) -> bool:
        """Whether files that memory does not mention are drawn: they have no tags and no age."""
        return not self.tags and self.since is None and (not self.types or "file" in self.types)


EVERYTHING = GraphFilter()


class GraphSources(NamedTuple):
    graph: Graphs
    code: Code | None
    project: str | None
    """Whose picture it is: in the user store there are nodes of other projects, too."""


def draw_everything(
    known: GraphSources, limit: int, age: IndexAge | None, only: GraphFilter = EVERYTHING
) -> GraphPicture:
    """Memory and the imports between files, up to the limit.

    The newest nodes come first, then the files and items that they mention, then the files with the
    most connections.
    """
    graph, code, _ = known
    drawing = _Drawing(known, limit)
    newest, _ = graph.newest(only.types, only.tags, only.since, None, include_superseded=True)
    own = [node_id for node_id in newest if node_id not in drawing.foreign]
    ids = _with_mentioned(graph, own, limit)
    for node in graph.nodes(ids):
        drawing.add(drawing.of_node(node))
    left_out = len(own) - len(ids)
    for from_id, type, to_id in walk.edges_from(graph, ids):
        drawing.connect_nodes(from_id, type, to_id)
    if code and only.has_files:
        left_out += drawing.add_files(code.importing_files(), code)
    return drawing.drawn(None, left_out, age)


def _with_mentioned(graph: Graphs, own: Sequence[NodeId], limit: int) -> list[NodeId]:
    """The newest nodes, and what they mention: without it, they would not be connected."""
    if len(own) <= limit:
        return list(own)
    newest = dict.fromkeys(own[: limit - limit // 5])
    known = set(own)
    counts: dict[NodeId, int] = {}
    for _, type, to_id in walk.edges_from(graph, list(newest)):
        if type == "MENTIONS" and to_id in known and to_id not in newest:
            counts[to_id] = counts.get(to_id, 0) + 1
    mentioned = sorted(counts, key=lambda each: (-counts[each], each))[: limit // 5]
    chosen = {**newest, **dict.fromkeys(mentioned)}
    for node_id in own:
        if len(chosen) == limit:
            break
        chosen.setdefault(node_id)
    return list(chosen)


def draw_around(known: GraphSources, wanted: AroundOptions, age: IndexAge | None) -> GraphPicture:
    """What is near something: a node by its id, an item by its name, a file."""
    drawing = _Drawing(known, wanted.limit)
    if known.code:
        # Here or there something leads to almost all of it.
        known.code.have_all_followed()
    ring = drawing.start(wanted.start, wanted.folder, age)
    left_out: set[str] = set()
    for _ in range(wanted.depth):
        following: list[str] = []
        for here in ring:
            for arrow, vertex in drawing.neighbours(here):
                other = vertex.id
                if other not in drawing.vertices:
                    if not drawing.add(vertex):
                        left_out.add(other)
                        continue
                    following.append(other)
                drawing.connect(arrow)
        ring = following
    return drawing.drawn(wanted.start, len(left_out), age)


class _Drawing:
    """What has been drawn, and what each vertex stands for."""

    def __init__(self, known: GraphSources, limit: int) -> None:
        self._graph, self._code, project = known
        self._limit = limit
        self._tag = f"project:{project}" if project else ""
        self.foreign = foreign_nodes(self._graph, self._tag) if project else set()
        self.vertices: dict[str, Vertex] = {}
        self._arrows: dict[tuple[str, str, str], Arrow] = {}
        self._of_nodes: dict[NodeId, Vertex] = {}
        self._items: dict[str, int] = {}
        """The item of a vertex, if it is one of the code."""

    def add(self, vertex: Vertex) -> bool:
        """Draw a vertex if there is place for it."""
        if vertex.id not in self.vertices and len(self.vertices) >= self._limit:
            return False
        self.vertices[vertex.id] = vertex
        return True

    def connect(self, arrow: Arrow) -> None:
        self._arrows.setdefault((arrow.source, arrow.type, arrow.target), arrow)

    def drawn(self, around: str | None, left_out: int, age: IndexAge | None) -> GraphPicture:
        arrows = [
            arrow
            for arrow in self._arrows.values()
            if arrow.source in self.vertices and arrow.target in self.vertices
        ]
        return GraphPicture(around, tuple(self.vertices.values()), tuple(arrows), left_out, age)

    # Memory

    def of_node(self, node: Node) -> Vertex:
        """What stands for a node: itself, or the file or item that it is the anchor of."""
        found = self._of_nodes.get(node.id)
        if found is None:
            about = node.created_at, node.tags
            found = self._in_code(node)
            if found is not None:
                found = found._replace(created_at=about[0], tags=about[1])
            else:
                text = " ".join((node.summary or node.content).split())
                label = text if len(text) <= _LABEL else f"{text[: _LABEL - 1].rstrip()}…"
                path = node.metadata.get("path")
                where = path if isinstance(path, str) else ""
                found = Vertex(node.id, node.type, label, where, 0, node.id, *about)
            self._of_nodes[node.id] = found
        return found

    def _in_code(self, node: Node) -> Vertex | None:
        if self._code is None or node.type not in ("file", "item"):
            return None
        key = "path" if node.type == "file" else "name"
        name = node.metadata.get(key, node.content)
        if not isinstance(name, str):
            return None
        if node.type == "file":
            file = self._code.file(name)
            return self._vertex(item_id(file.id, 0), node.id) if file else None
        meant = lookup.exact_matches(self._code.named(name), name)
        named = [each for each in meant if each.kind != "impl"]
        return self._vertex(named[0].id, node.id) if len(named) == 1 else None

    def connect_nodes(self, from_id: NodeId, type: str, to_id: NodeId) -> None:
        ends = [self._of_nodes.get(end) for end in (from_id, to_id)]
        if ends[0] and ends[1]:
            self.connect(Arrow(ends[0].id, type, ends[1].id, "", 0))

    # Code

    def _vertex(self, item: int, node: NodeId | None = None) -> Vertex | None:
        assert self._code is not None
        found = self._code.located([item])
        return self._of_item(found[0], node) if found else None

    def _of_item(self, item: LocatedItem, node: NodeId | None = None) -> Vertex:
        if item.id == item_id(file_of(item.id), 0):
            vertex = Vertex(f"file:{item.path}", "file", item.path, item.path, 0, node)
        else:
            key = f"item:{item.path}:{item.line}:{item.name}"
            vertex = Vertex(key, item.kind, item.name, item.path, item.line, node)
        self._items[vertex.id] = item.id
        drawn = self.vertices.get(vertex.id)
        return drawn if drawn and drawn.node else vertex

    def add_files(self, pairs: list[tuple[int, int]], code: Code) -> int:
        """Draw files and their imports; how many there was no place for."""
        weight: dict[int, int] = {}
        for pair in pairs:
            for end in pair:
                weight[end] = weight.get(end, 0) + 1
        known = {file_of(self._items[key]) for key in self.vertices if key.startswith("file:")}
        first = sorted(weight, key=lambda each: (each not in known, -weight[each], each))
        room = self._limit - len(self.vertices) + len(known & weight.keys())
        vertices = {
            file_of(item.id): self._of_item(item)
            for item in code.located(item_id(each, 0) for each in first[:room])
        }
        for vertex in vertices.values():
            self.add(vertex)
        for one, other in pairs:
            if one in vertices and other in vertices:
                self.connect(Arrow(vertices[one].id, "IMPORTS", vertices[other].id, "high", 0))
        return len(weight) - len(vertices)

    # Around something

    def start(self, word: str, folder: str, age: IndexAge | None) -> list[str]:
        """What a word means: a node by its id, else what is called so in the code or in memory."""
        vertices: list[Vertex] = []
        try:
            vertices.append(self.of_node(self._graph.node(self._graph.find(word))))
        except AmbiguousId:
            raise
        except NodeNotFound:
            if self._code:
                found = [each for each in self._code.find(word, folder) if each.kind != "impl"]
                vertices += [self._with_node(self._of_item(each)) for each in found]
            if not vertices:
                vertices += [self.of_node(node) for node in self._anchors(word)]
        if not vertices:
            if age and (doubt := code_items.reservation(age)):
                raise NodeNotFound(f"{word[:80]!r} is not known yet.", hint=doubt)
            close = suggestions.similar_names(self._code, word, folder) if self._code else []
            told = " or ".join(f"`{name}`" for name in close)
            raise NodeNotFound(
                f"{word[:80]!r} is not known here.",
                hint=f"Did you mean {told}?" if told else None,
            )
        return [vertex.id for vertex in vertices if self.add(vertex)]

    def _anchors(self, word: str) -> Iterator[Node]:
        """The anchors of a name or path that the code does not have any more."""
        for kind in ("file", "item", "package"):
            for node in self._graph.nodes(self._graph.of_type(kind)):
                if node.content == word and node.id not in self.foreign:
                    yield node

    def _with_node(self, vertex: Vertex) -> Vertex:
        """The same with its node, if memory has an anchor of it."""
        if vertex.node is None:
            for node_id in self._standing_for(vertex):
                vertex = vertex._replace(node=node_id)
                self._of_nodes[node_id] = vertex
        return vertex

    def _standing_for(self, vertex: Vertex) -> list[NodeId]:
        """The nodes of something in the code: what is everybody's, and what is this project's."""
        kind, name = ("file", vertex.path) if vertex.kind == "file" else ("item", vertex.label)
        every = dict.fromkeys(Anchor(kind, name, tag).id for tag in ("", self._tag))
        return [node_id for node_id in every if self._graph.has(node_id)]

    def neighbours(self, key: str) -> Iterator[tuple[Arrow, Vertex]]:
        vertex = self.vertices[key]
        nodes = [vertex.node] if vertex.node else []
        if key in self._items:
            nodes += (each for each in self._standing_for(vertex) if each != vertex.node)
        for node_id in nodes:
            yield from self._in_memory(vertex, node_id)
        item = self._items.get(key)
        if item is not None and self._code:
            yield from self._around_item(self._code, key, item)

    def _in_memory(self, vertex: Vertex, node_id: NodeId) -> Iterator[tuple[Arrow, Vertex]]:
        edges = self._graph.edges(node_id)
        others = {edge.to_id if edge.from_id == node_id else edge.from_id for edge in edges}
        own = sorted(others - self.foreign)
        by_id = {node.id: self.of_node(node) for node in self._graph.nodes(own)}
        for edge in edges:
            outward = edge.from_id == node_id
            other = by_id.get(edge.to_id if outward else edge.from_id)
            if other:
                ends = (vertex.id, other.id) if outward else (other.id, vertex.id)
                yield Arrow(ends[0], edge.type, ends[1], "", 0), other

    def _around_item(self, code: Code, key: str, item: int) -> Iterator[tuple[Arrow, Vertex]]:
        outward, inward = code.edges_from([item]), code.edges_to([item])
        parent = code.connection.execute(
            "SELECT parent FROM items WHERE id = ?", (item,)
        ).fetchone()
        inside = code.connection.execute(
            "SELECT id FROM items WHERE parent = ? AND id BETWEEN ? AND ?",
            (item, item, file_of(item) << SLOTS | (1 << SLOTS) - 1),
        ).fetchall()
        ends = [edge.target for edge in outward] + [edge.source for edge in inward]
        ends += [each for each in parent or () if each is not None] + [each for (each,) in inside]
        by_id = {
            each.id: self._with_node(self._of_item(each))
            for each in code.located(dict.fromkeys(ends))
        }
        for edge in (*outward, *inward):
            other = by_id.get(edge.target if edge.source == item else edge.source)
            if other:
                one, two = (key, other.id) if edge.source == item else (other.id, key)
                yield Arrow(one, edge.label, two, edge.confidence, edge.line), other
        for (each,) in inside:
            if each in by_id:
                yield Arrow(key, "DEFINES", by_id[each].id, "high", by_id[each].line), by_id[each]
        if parent and parent[0] in by_id:
            yield Arrow(by_id[parent[0]].id, "DEFINES", key, "high", 0), by_id[parent[0]]


def foreign_nodes(graph: Graphs, own: str) -> set[NodeId]:
    """The nodes of other projects alone."""
    found: set[NodeId] = set()
    for user in (each for each in graph.graphs if each.scope == USER):
        for tag, _ in user.tag_counts("project:"):
            if tag != own:
                found.update(user.newest((), (tag,), None, None, include_superseded=True)[0])
        found.difference_update(user.newest((), (own,), None, None, include_superseded=True)[0])
    return found
