"""The pack for a task: chunks within a budget, and the reason for each."""

from typing import Literal, NamedTuple

from ctx.codebase.index_state import IndexState
from ctx.memory.code_anchors import AnchorState

ChunkKind = Literal[
    "FileContent", "NarrativeExcerpt", "Decision", "DiagnosticOutput", "SymbolDefinition", "Memory"
]


class Signal(NamedTuple):
    """One reason why something matched."""

    name: str
    """`text`, `path`, `names`, `history`, `mentioned`, `vectors`, `graph`, …"""
    value: float
    """What it adds to the score."""


class Chunk(NamedTuple):
    """A piece of text that an agent should read."""

    title: str
    object_id: str
    """The node, or the hash of the file, which `ctx debug cat` takes."""
    snippet: str
    relevance_score: float
    chunk_kind: ChunkKind
    tokens: int
    path: str | None
    first_line: int | None
    last_line: int | None
    name: str | None
    """The qualified name of the item, or the id of the node."""
    signals: tuple[Signal, ...]
    via: tuple[str, ...]
    """The path through the graph from a seed: `Client.connect`, `CALLS`, `Backoff.new`; empty for a
    direct hit."""
    source: str = ""
    """Who said it: the source of a node, and `repository` for a file."""
    anchors: tuple[AnchorState, ...] = ()
    """What has become of the code that a node is about."""


class LeftOutChunk(NamedTuple):
    """A match that is not in the pack."""

    title: str
    relevance_score: float
    tokens: int
    reason: str
    """`budget`, `below the threshold`, `superseded`, …"""


class RelatedItem(NamedTuple):
    """An item that shown code calls or uses, or that calls it."""

    path: str
    line: int
    name: str
    signature: str
    via: tuple[str, ...]
    """The path through the graph from what is shown."""


class PackFile(NamedTuple):
    """A file with its rank for the task."""

    path: str
    score: float
    signals: tuple[Signal, ...]


class GraphContext(NamedTuple):
    seed_nodes: tuple[str, ...]
    expanded_nodes: tuple[str, ...]
    expansion_depth: int
    scc_dag_used: bool


class TokenBudget(NamedTuple):
    total: int
    used: int
    reserved_for_response: int


class PromptPack(NamedTuple):
    task: str
    """As it was asked; a very long one is cut."""
    head_commit: str | None
    """The commit of the project's memory; None if there is none."""
    retrieved: tuple[Chunk, ...]
    graph_context: GraphContext
    recent_narrative: str
    token_budget: TokenBudget
    confidence: float
    """The probability that the first file is right, from 0 to 1: if it is low, an agent should
    search further. Without a file it is at most 0.5, by how well the first node answers."""
    files: tuple[PackFile, ...]
    left_out: tuple[LeftOutChunk, ...]
    code_index: IndexState
    receipt: str | None
    """The receipt that `ctx why` explains."""
    withheld: bool = False
    """Whether the project has its own memory that is not trusted and therefore not included."""
    more_left_out: int = 0
    """How many more were left out than are listed."""
    related: tuple[RelatedItem, ...] = ()
    """What the shown code calls or uses, and what calls it."""
    unlikely: int = 0
    """How many were left out because they are unlikely to be needed."""
