"""What was compiled for a task: chunks under a budget, and why each is there."""

from typing import Literal, NamedTuple

from ctx.codebase.index_state import IndexState

ChunkKind = Literal[
    "FileContent", "NarrativeExcerpt", "Decision", "DiagnosticOutput", "SymbolDefinition", "Memory"
]


class Signal(NamedTuple):
    """One reason why something was found."""

    name: str
    """`text`, `path`, `names`, `history`, `mentioned`, `vectors`, `graph`, …"""
    value: float
    """What it adds to the score."""


class Chunk(NamedTuple):
    """A piece of text that an agent should read."""

    title: str
    object_id: str
    """The node, or the hash of the file that it is a part of."""
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
    """How the graph led there, from a seed: `Client.connect`, `CALLS`, `Backoff.new`; empty for a
    hit of its own."""


class LeftOutChunk(NamedTuple):
    """What was found and is not in the pack."""

    title: str
    relevance_score: float
    tokens: int
    reason: str
    """`budget`, `below the threshold`, `superseded`, …"""


class PackFile(NamedTuple):
    """A file as it was ranked for the task."""

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
    """As it was asked; of a very long one the beginning."""
    head_commit: str | None
    """The commit of the project's memory that it was built from; None where there is none."""
    retrieved: tuple[Chunk, ...]
    graph_context: GraphContext
    recent_narrative: str
    token_budget: TokenBudget
    confidence: float
    """How likely it is that the first file is the right one, from 0 to 1: an agent that gets a low
    one looks further. Without a file at most 0.5, by how well the first node answers."""
    files: tuple[PackFile, ...]
    left_out: tuple[LeftOutChunk, ...]
    code_index: IndexState
    receipt: str | None
    """What `ctx why` explains."""
    withheld: bool = False
    """Whether the project has memory of its own that is not trusted, so that nothing of it is
    here."""
    more_left_out: int = 0
    """How many more were left out than are named."""
