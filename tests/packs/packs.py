"""A small project with its index and a memory, from which packs are built."""

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ctx import checkouts, tokens
from ctx.code import build, index_file, lookup
from ctx.code.history import history_refresh as history
from ctx.code.index_check import SourceTree
from ctx.ids import NodeId, anchor_id
from ctx.layout import Project
from ctx.memory.changes import changing
from ctx.memory.graph import Graph
from ctx.memory.graphs import Graphs
from ctx.memory.model import Evidence
from ctx.memory.query.compile import Scope
from ctx.packs import node_ranking, pack_pipeline, pack_text
from ctx.packs.pack_pipeline import RetrievalConfig, Sources
from ctx.packs.prompt_pack import PromptPack
from tests.memory.graphs import WHO, graph

NOW_MS = 1_800_000_000_000
DAY_MS = 86_400_000


class Packing:
    """The sources of a pack, and a method that builds it."""

    def __init__(self, root: Path, memory: Graph, sources: Sources) -> None:
        self.root = root
        self.memory = memory
        self.sources = sources

    def build(self, task: str, budget: int = 8_000, **settings: object) -> PromptPack:
        config = RetrievalConfig(budget=budget)._replace(**settings)  # type: ignore[arg-type]
        pack = pack_pipeline.build(task, self.sources, config, NOW_MS)
        check(pack)
        return pack

    def add(self, type: str, content: str, mentions: Mapping[str, str] | None = None) -> NodeId:
        """Add a node that mentions things in the code, by name and kind."""
        with changing(self.memory, "add", WHO) as change:
            made = change.add_node(type, content)
            for name, kind in (mentions or {}).items():
                anchor = anchor_id(kind, name)
                if not change.graph.has(anchor):
                    metadata = {"path" if kind == "file" else "name": name}
                    change.add_node(kind, name, metadata=metadata, node_id=anchor)
                change.link(made, anchor, "MENTIONS", Evidence("cli"))
        return made

    def write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)


def check(pack: PromptPack) -> None:
    """Check what holds for every pack."""
    budget = pack.token_budget
    assert budget.used <= budget.total - budget.reserved_for_response
    assert tokens.estimate(pack_text.as_markdown(pack)) <= budget.used
    assert 0 <= pack.confidence <= 1
    scores = [chunk.relevance_score for chunk in pack.retrieved]
    assert scores == sorted(scores, reverse=True)
    for chunk in pack.retrieved:
        assert 0 < chunk.relevance_score <= 1.0001
        assert sum(each.value for each in chunk.signals) <= chunk.relevance_score * 1.01 + 0.01


@contextmanager
def packing(root: Path, files: Mapping[str, str | bytes]) -> Iterator[Packing]:
    """A project of some files, indexed, with an empty memory."""
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(text.encode() if isinstance(text, str) else text)
    root.mkdir(parents=True, exist_ok=True)
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    index(root)
    with graph() as memory:
        graphs = Graphs([memory])
        code = lookup.open_index(str(root.parent / "code.db"), str(root))
        assert code is not None
        with code:
            sources = Sources(
                graphs,
                lambda asked, limit: node_ranking.rank(graphs, asked, Scope(), NOW_MS, limit),
                code,
                str(root),
            )
            yield Packing(root, memory, sources)


def index(root: Path) -> None:
    database = str(root.parent / "code.db")
    checkout = checkouts.find_checkout(str(root))
    place = SourceTree(str(root), checkout, database)
    build.refresh(place)
    connection = index_file.open_for_writing(database)
    try:
        history.refresh(connection, Project(str(root), checkout))
    finally:
        connection.close()
    build.follow(place)
