"""Which chunks fit into a budget, which are left out, and why.

The chunk with the best value per token comes first. A second chunk of a file is worth less than the
first, and a chunk that nearly repeats another is worth nothing. A pack ends where further chunks
would hardly help, however much room there is.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush
from itertools import chain
from typing import NamedTuple

from ctx.errors import BudgetExceeded
from ctx.packs import pack_text
from ctx.packs.pack_text import BUDGET, LEAST_PROBABILITY, UNLIKELY
from ctx.packs.prompt_pack import Chunk, LeftOutChunk
from ctx.redaction import redact

THRESHOLD = 0.12
"""Memory below this share of the best score does not help, however much room there is."""

_PRICE = 0.25
"""How much the length of a chunk counts. Of two chunks with equal scores, the shorter one wins."""
_CHEAP = 20
_FURTHER_CHUNKS = 0.185
"""How much the number of chunks of the same file counts."""
_SAME_LINES_SHARE = 0.8
_FEW_LINES = 3
WEAK, REPEATED, INSIDE, ENOUGH = (
    "below the threshold",
    "repeats another chunk",
    "is a part of another chunk",
    "over the limit of chunks",
)


class ChunkOffer(NamedTuple):
    """A chunk that may be chosen, whole or in brief."""

    chunk: Chunk
    brief: str | None = None
    """A shorter snippet for small budgets; None if it cannot be shorter."""
    probability: float | None = None
    """The probability that the task changes what it shows; None for memory."""


class FilledBudget(NamedTuple):
    chunks: tuple[Chunk, ...]
    """The most relevant first."""
    left_out: tuple[LeftOutChunk, ...]


class _TakenChunks:
    def __init__(self) -> None:
        self.chunks: list[Chunk] = []
        self.having: dict[str, list[int]] = {}
        """The chunks that contain a line, by index."""
        self.by_path: dict[str, list[Chunk]] = {}
        self.of_file: dict[str, int] = {}
        self.tokens = 0

    def worth(self, chunk: Chunk) -> float:
        number = 1 + self.of_file.get(chunk.path or chunk.object_id, 0)
        price: float = max(chunk.tokens, _CHEAP) ** _PRICE * number**_FURTHER_CHUNKS
        return chunk.relevance_score / price

    def add(self, chunk: Chunk) -> None:
        for line in _lines(chunk):
            self.having.setdefault(line, []).append(len(self.chunks))
        self.chunks.append(chunk)
        if chunk.path is not None:
            self.by_path.setdefault(chunk.path, []).append(chunk)
        self.tokens += chunk.tokens
        group = chunk.path or chunk.object_id
        self.of_file[group] = self.of_file.get(group, 0) + 1

    def objection(self, chunk: Chunk) -> str | None:
        if any(_is_inside(chunk, other) for other in self.by_path.get(chunk.path or "", ())):
            return INSIDE
        own = _lines(chunk)
        if len(own) < _FEW_LINES:
            return None
        shared = Counter(chain.from_iterable(self.having.get(line, ()) for line in own))
        if max(shared.values(), default=0) > _SAME_LINES_SHARE * len(own):
            return REPEATED
        return None


def fill(
    offers: Sequence[ChunkOffer],
    room: int,
    limit: int = 0,
    least: float = LEAST_PROBABILITY,
) -> FilledBudget:
    """Choose the offers that are likely enough and fit into `room` tokens."""
    taken = _TakenChunks()
    left_out: list[LeftOutChunk] = []
    best = max((offer.chunk.relevance_score for offer in offers), default=0.0)
    waiting = []
    for offer in offers:
        if offer.probability is None and offer.chunk.relevance_score < THRESHOLD * best:
            left_out.append(_left_out_chunk(offer.chunk, WEAK))
        else:
            waiting.append(offer)
    if waiting:
        offer = waiting.pop(_best(waiting))
        first = _first_chunk(offer, room)
        taken.add(first)
        room -= first.tokens
    # The value of an offer never rises, so the first one with an unchanged value is the best of
    # all.
    heap = [(-taken.worth(offer.chunk), place, offer) for place, offer in enumerate(waiting)]
    heapify(heap)
    while heap:
        _, place, offer = heappop(heap)
        worth = taken.worth(offer.chunk)
        if heap and worth < -heap[0][0]:
            heappush(heap, (-worth, place, offer))
        elif offer.probability is not None and offer.probability < least:
            left_out.append(_left_out_chunk(offer.chunk, UNLIKELY))
        elif reason := taken.objection(offer.chunk):
            left_out.append(_left_out_chunk(offer.chunk, reason))
        elif chunk := _fit_chunk(offer, room):
            taken.add(chunk)
            room -= chunk.tokens
        else:
            left_out.append(_left_out_chunk(offer.chunk, BUDGET))
    chosen = sorted(taken.chunks, key=lambda chunk: -chunk.relevance_score)
    if limit:
        # The first of what is there without a limit.
        left_out += [_left_out_chunk(chunk, ENOUGH) for chunk in chosen[limit:]]
        chosen = chosen[:limit]
    return FilledBudget(
        tuple(chosen),
        tuple(sorted(left_out, key=lambda chunk: -chunk.relevance_score)),
    )


def smallest(offers: Sequence[ChunkOffer]) -> int:
    """The tokens that the smallest possible pack needs: those of the most relevant chunk in
    brief."""
    return _smallest(offers[_best(offers)]).tokens if offers else 0


def _best(offers: Sequence[ChunkOffer]) -> int:
    return max(range(len(offers)), key=lambda at: (offers[at].chunk.relevance_score, -at))


def _smallest(offer: ChunkOffer) -> Chunk:
    *_, shortest = _versions(offer)
    return _without_secrets(shortest)


def _first_chunk(offer: ChunkOffer, room: int) -> Chunk:
    """The most relevant chunk, whole or in brief. A pack without it is useless: E010."""
    chunk = _fit_chunk(offer, room) or _smallest(offer)
    if chunk.tokens > room:
        raise BudgetExceeded(f"One chunk takes {chunk.tokens:,} tokens, and there are {room:,}.")
    return chunk


def _fit_chunk(offer: ChunkOffer, room: int) -> Chunk | None:
    """An offer, whole or in brief; None if it does not fit."""
    for version in _versions(offer):
        if version.tokens <= room:
            chunk = _without_secrets(version)
            if chunk.tokens <= room:
                return chunk
    return None


def _versions(offer: ChunkOffer) -> Iterator[Chunk]:
    """The whole chunk, then the one in brief if there is one."""
    yield offer.chunk
    if offer.brief is not None:
        yield _with_snippet(offer.chunk, offer.brief)


def _without_secrets(chunk: Chunk) -> Chunk:
    """Memory contains no secrets, but code may, and nobody checks a pack before a model reads
    it."""
    redacted = redact(chunk.snippet)
    if not redacted.findings:
        return chunk
    return _with_snippet(chunk, redacted.text)


def _with_snippet(chunk: Chunk, snippet: str) -> Chunk:
    return pack_text.with_cost(chunk._replace(snippet=snippet))


def _lines(chunk: Chunk) -> frozenset[str]:
    return frozenset(line.strip() for line in chunk.snippet.splitlines() if line.strip())


def _is_inside(chunk: Chunk, other: Chunk) -> bool:
    """Whether one chunk of a file is a part of another."""
    if None in (chunk.first_line, chunk.last_line, other.first_line, other.last_line):
        return False
    return (
        (other.first_line or 0) <= (chunk.first_line or 0)
        and (chunk.last_line or 0) <= (other.last_line or 0)
        and all(line in other.snippet for line in _lines(chunk))
    )


def _left_out_chunk(chunk: Chunk, reason: str) -> LeftOutChunk:
    return LeftOutChunk(chunk.title, chunk.relevance_score, chunk.tokens, reason)
