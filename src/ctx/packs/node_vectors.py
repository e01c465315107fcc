"""The vectors of nodes: computed on demand, used for ranking, removed with the node.

They are stored in a derived file beside each store, and nothing waits for them: a question computes
missing vectors for a fraction of a second, and finds all other nodes by words. If a database was
named (`--db`), nothing is written beside it, and only words are used.
"""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from ctx import clock
from ctx.errors import CtxError
from ctx.ids import NodeId, Ulid
from ctx.memory import lookups, stats
from ctx.memory.graph import PROJECT, Graph
from ctx.packs.node_ranking import Nearness
from ctx.search import embedders
from ctx.search.embedders import Embedder
from ctx.search.vectors import Vectors
from ctx.workspace import Memory, Workspace

if TYPE_CHECKING:
    from ctx.search.embedders import Matrix

QUICK_FILL_S = 0.25
"""The time that a question spends on missing vectors."""

_PATIENCE_S = 2.0
"""How long a question waits for an embedding server."""
_LONGEST_TEXT = 400
"""In characters. One vector says little about the parts of a long text, and its beginning states
its topic."""
_NEAREST = 200
_NEWEST = 100
"""The number of most recently changed nodes, and of documents, whose text is compared with the
embedded text."""
_PART = 400


class _QueryVector:
    """Embeds the question once and remembers the vector."""

    def __init__(self, embedder: Embedder, question: str) -> None:
        self._embedder = embedder
        self._question = question
        self._vector = embedder.embed([question])
        self.name, self.version = embedder.name, embedder.version
        self.dimensions = embedder.dimensions

    def embed(self, texts: Sequence[str]) -> "Matrix":
        return self._vector if list(texts) == [self._question] else self._embedder.embed(texts)


class _NodeSimilarity:
    """The similarity of the nodes of some stores to a question."""

    def __init__(
        self,
        stores: Sequence[tuple[Graph, Vectors]],
        embedder: Embedder,
        question: str,
        *,
        closes_files: bool,
    ) -> None:
        self._stores = stores
        self._embedder = embedder
        self._question = question
        self._closes_files = closes_files

    def __call__(self, node_ids: Collection[NodeId] | None) -> Mapping[NodeId, float]:
        limit = _NEAREST if node_ids is None else len(node_ids)
        cosines: dict[NodeId, float] = {}
        # If there is no embedder or the file cannot be read, only words are used.
        with suppress(CtxError):
            for _, file in self._stores:
                nearest = file.nearest(self._embedder, self._question, node_ids, limit)
                cosines.update((NodeId(Ulid(key)), cosine) for key, cosine in nearest)
            # An answer does not depend on how many vectors have been stored by now. A server
            # would take too long.
            is_quick = self._embedder.name == embedders.unchecked().name
            missing = [each for each in node_ids or () if each not in cosines] if is_quick else []
            texts = {
                node_id: text
                for graph, _ in self._stores
                if missing
                for node_id, text in _texts(graph, missing)
            }
            if texts:
                vectors = self._embedder.embed(list(texts.values()))
                near = (vectors * self._embedder.embed([self._question])).sum(axis=1)
                cosines.update(zip(map(NodeId, map(Ulid, texts)), near.tolist(), strict=True))
        return cosines

    def __del__(self) -> None:
        # The caller has only a function and cannot know that files are open.
        for _, file in self._stores if self._closes_files else ():
            file.close()


class OpenVectors:
    """Vectors that a process keeps in memory between questions, all in the same thread.

    Loading them takes longer than the rest of an answer. They are compared with the nodes again
    only if a store has changed since.
    """

    def __init__(self) -> None:
        self._files: dict[str, tuple[Vectors, tuple[int, int]]] = {}
        self._states: dict[str, tuple[str, ...]] = {}

    def file(self, path: str) -> Vectors:
        """The open file. If it was replaced, the new one is opened."""
        known = self._files.get(path)
        identity = _identity(path)
        if known is not None and known[1] == identity:
            return known[0]
        if known is not None:
            known[0].close()
        self._states.pop(path, None)
        file = Vectors(path)
        self._files[path] = file, identity
        return file

    def is_current(self, path: str, state: tuple[str, ...]) -> bool:
        return self._states.get(path) == state

    def set_current(self, path: str, state: tuple[str, ...]) -> None:
        # The file may have been created in the meantime.
        file, _ = self._files[path]
        self._files[path] = file, _identity(path)
        self._states[path] = state


def nearness(memory: Memory, question: str, kept: OpenVectors | None = None) -> Nearness | None:
    """A function that returns the similarity of nodes to a question; None without vectors.

    Files that are `kept` stay open for the next question.
    """
    # Nothing is loaded for empty stores.
    stores = [store for store in _stores(memory) if stats.has_nodes(store[0].connection)]
    embedder = _embedder(memory, _PATIENCE_S) if stores else None
    if embedder is None:
        return None
    try:
        query_vector = _QueryVector(embedder, question)
    except CtxError:
        # The server did not answer in time: only words are used.
        return None
    files = [kept.file(path) if kept else Vectors(path) for _, path in stores]
    is_in_time = clock.deadline(QUICK_FILL_S)
    for (graph, path), file in zip(stores, files, strict=True):
        state = (embedder.name, embedder.version, *lookups.state(graph.connection))
        if kept and kept.is_current(path, state):
            continue
        with suppress(CtxError):
            bring_up_to_date(graph, file, query_vector, is_in_time)
            if kept and is_in_time():
                kept.set_current(path, state)
    opened = [(graph, file) for (graph, _), file in zip(stores, files, strict=True)]
    return _NodeSimilarity(opened, query_vector, question, closes_files=kept is None)


def _identity(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)
    except OSError:
        return (0, 0)
    return found.st_dev, found.st_ino


def fill(memory: Memory) -> int:
    """Embed everything that is missing, and return the number of nodes."""
    embedder = _embedder(memory)
    if embedder is None:
        return 0
    return sum(_fill_vectors(graph, path, embedder) for graph, path in _stores(memory))


def fill_slice(memory: Memory, seconds: float) -> int:
    """Embed what is missing for some seconds, and return the number of nodes."""
    embedder = _embedder(memory)
    if embedder is None:
        return 0
    is_in_time = clock.deadline(seconds)
    filled = 0
    for graph, path in _stores(memory):
        file = Vectors(path)
        try:
            filled += bring_up_to_date(graph, file, embedder, is_in_time)
        finally:
            file.close()
    return filled


def fill_project(workspace: Workspace) -> int:
    """Embed what is missing of a project's nodes, with the built-in table."""
    if not workspace.config.flag("search.vectors"):
        return 0
    return _fill_vectors(workspace.memory.graph, workspace.project.vectors, embedders.default())


def fill_project_anew(workspace: Workspace) -> int:
    """Embed all nodes of a project again."""
    file = Vectors(workspace.project.vectors)
    try:
        file.keep_only(())
    finally:
        file.close()
    return fill_project(workspace)


def forget(memory: Memory, node_ids: Iterable[NodeId]) -> None:
    """Remove the vectors of nodes from every file here."""
    gone = list(node_ids)
    for _, path in _stores(memory):
        if gone and os.path.exists(path):
            file = Vectors(path)
            try:
                file.forget(gone)
            finally:
                file.close()


def _stores(memory: Memory) -> list[tuple[Graph, str]]:
    """The graphs that can be read, each with the path of its vectors."""
    if memory.environment.is_single_store:
        return []
    stores: list[tuple[Graph, str]] = []
    for graph in memory.graph.graphs:
        if graph.scope == PROJECT and memory.project_memory is not None:
            stores.append((graph, memory.project_memory.project.vectors))
        elif graph.scope != PROJECT:
            stores.append((graph, memory.environment.user_store.vectors))
    return stores


def _embedder(memory: Memory, patience_s: float | None = None) -> Embedder | None:
    with suppress(CtxError):
        return embedders.configured_embedder(
            memory.config, memory.environment.variables, patience_s
        )
    return None


def _fill_vectors(graph: Graph, path: str, embedder: Embedder) -> int:
    file = Vectors(path)
    try:
        return bring_up_to_date(graph, file, embedder)
    finally:
        file.close()


def bring_up_to_date(
    graph: Graph, file: Vectors, embedder: Embedder, go_on: Callable[[], bool] = lambda: True
) -> int:
    """Embed new and changed nodes, remove deleted ones, and return the number embedded."""
    connection = graph.connection
    stamps = lookups.changed_at(connection)
    # Ranking needs all vectors in memory anyway.
    known = file.stamps(embedder)
    # Imported nodes may have old time stamps, so each node is compared with its own stamp.
    changed = [node_id for node_id, stamp in stamps.items() if known.get(node_id) != stamp]
    changed.sort(key=lambda node_id: (stamps[node_id], node_id), reverse=True)
    if known.keys() != stamps.keys() and (gone := set(file.keys()) - stamps.keys()):
        file.forget(gone)
    # A text can change twice within a second, and documents have no stamps.
    wanted: dict[str, None] = dict.fromkeys(lookups.changed_last(connection, _NEWEST))
    wanted.update(dict.fromkeys(lookups.newest_documents(connection, _NEWEST)))
    wanted.update(dict.fromkeys(changed))
    texts = _texts(graph, list(wanted))
    return file.fill(embedder, texts, stamps, limit=len(wanted), go_on=go_on)


def _texts(graph: Graph, node_ids: Sequence[str]) -> Iterator[tuple[str, str]]:
    for begin in range(0, len(node_ids), _PART):
        part = node_ids[begin : begin + _PART]
        yield from lookups.texts(graph.connection, part, _LONGEST_TEXT)
