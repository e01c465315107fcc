"""One text of a context: memory, then the layers of sessions, within a budget.

Pinned nodes come on top of the budget. They are whole, unless together they are too long. Each
layer of sessions has a limit, which scales with the budget. The other nodes get what these layers
leave, up to half of the budget. Layers are shortened before one is left out.

Hooks load this module.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from sqlite3 import Connection
from typing import NamedTuple
from zlib import crc32

from ctx import tokens
from ctx.context import compose
from ctx.context.compose import STATE, ContextBody, ContextEntry, ContextFrame, OmittedNodes
from ctx.context.context_entries import LoadedEntry, load
from ctx.context.contexts import MEMORY, Context, ContextItem
from ctx.context.layer_lines import FittedLayer, Layer, LayerLimits, LayerLine, fit
from ctx.context.layer_lines import layer_tokens as tokens_wanted
from ctx.ids import NodeId

USUAL_BUDGET = 2_000
"""The budget to which the limits of layers refer."""
LARGEST_PART = 2_500
"""Tokens of a part: a text of this size fits into one answer of every host, with room to spare."""
MOST_PINNED = 2_000
"""Tokens of the pinned nodes; above, they are shortened."""
_USUAL_ROOM = 1_870
"""What the preface and the headings leave of the usual budget."""
_WHERE = 200
"""Tokens for the compaction state, which comes first."""
_WHERE_HEADING = "## Where you were\n\n"
# At most so many omitted nodes are counted.
_MOST_COUNTED = 500
# At most so many of them are named.
_MOST_NAMED = 20


class LayerShare(NamedTuple):
    """How one layer used the budget."""

    name: str
    tokens: int
    shown: int
    left_out: int
    or_more: bool
    problem: str = ""


class MadeContext(NamedTuple):
    """A context, and how its layers share the budget."""

    context: Context
    shares: tuple[LayerShare, ...]
    texts: tuple[str, ...] = ()
    """The text of each item of the context."""
    reasons: tuple[str, ...] = ()
    """Why each item was chosen; empty if its layer says it."""
    omitted_nodes: tuple[NodeId, ...] = ()
    """The first nodes of memory for which there is no room."""
    omitted_lines: tuple[tuple[str, LayerLine], ...] = ()
    """The lines of other layers for which there is no room, each with the name of its layer."""


class ContextPage:
    """One text: memory, then the layers of sessions, as far as the budget allows."""

    def __init__(
        self,
        connections: Sequence[Connection],
        limits: LayerLimits,
        budget: int,
        preface: str,
        hint: str,
    ) -> None:
        self._connections = connections
        self._limits = limits
        self._frame = ContextFrame(preface=preface)
        # Notices are given in any case.
        self._budget = budget + max(0, -compose.room(budget, self._frame))
        self._hint = hint

    def made(
        self,
        pinned: Sequence[NodeId],
        ids: Iterator[NodeId],
        first: Sequence[NodeId],
        layers: Sequence[Layer],
        lines: Sequence[str],
    ) -> MadeContext:
        hint = self._hint if any(each.lines for each in layers) else ""
        around = tokens.estimate(hint)
        most = compose.room(self._budget, self._frame) - around
        where = _fit_compaction_state(lines, min(_WHERE * self._budget // USUAL_BUDGET, most))
        around += tokens.estimate(where)
        nodes, body = _Nodes(self._connections, ids, first), ContextBody()
        most = compose.room(LARGEST_PART, self._frame) - around
        body.fill(nodes.pinned(pinned), min(most, MOST_PINNED))
        budget = min(self._budget + body.tokens, LARGEST_PART)
        room = compose.room(budget, self._frame) - around
        usual = max(0, room - body.tokens)
        limits = self._limits._asdict()
        planned = {
            each.name: min(tokens_wanted(each), limits[each.name] * usual // _USUAL_ROOM)
            for each in layers
        }
        body.fill(nodes.entries(), min(self._budget // 2, usual - sum(planned.values())))
        items = nodes.items(body)
        fitted = _fit_layers(layers, planned, items)
        missing = nodes.left_out(len(items))
        every = (*items, *(one for each in fitted.values() for one in each.items))
        text = _compaction_section(where, body.text()) + "".join(
            each.text for each in fitted.values()
        )
        count = len({each.id for each in every if each.id})
        whole, used = compose.frame_text(
            text + (hint if len(every) > len(items) else ""),
            count,
            missing,
            budget,
            self._frame,
        )
        shares = (
            LayerShare(MEMORY, body.tokens, len(items), missing.nodes, missing.or_more),
            *(
                LayerShare(
                    each.name,
                    fitted[each.name].tokens,
                    len(fitted[each.name].items),
                    fitted[each.name].left_out,
                    False,
                    each.problem,
                )
                for each in layers
            ),
        )
        skipped = tuple(
            each.name for each in shares if each.problem or (each.left_out and not each.shown)
        )
        return MadeContext(
            Context(whole, used, every, skipped),
            shares,
            (
                *(each.text for each in body.items),
                *(text for each in fitted.values() for text in each.texts),
            ),
            (
                *("" for _ in items),
                *(reason for each in fitted.values() for reason in each.reasons),
            ),
            nodes.omitted(items),
            tuple((name, line) for name, each in fitted.items() for line in each.omitted),
        )


def _fit_compaction_state(lines: Sequence[str], most: int) -> str:
    """The compaction state, as far as there is room."""
    shown = list(lines)
    while shown and tokens.estimate(_WHERE_HEADING + "\n".join([*shown, "", ""])) > most:
        shown.pop()
    return _WHERE_HEADING + "\n".join([*shown, "", ""]) if shown else ""


def _compaction_section(where: str, body: str) -> str:
    """The lines and the nodes of the compaction state, below one heading."""
    if where and body.startswith(_WHERE_HEADING):
        return where.removesuffix("\n") + body.removeprefix(_WHERE_HEADING)
    return where + body


def _fit_layers(
    layers: Sequence[Layer], planned: dict[str, int], shown: Iterable[ContextItem]
) -> dict[str, FittedLayer]:
    """Each layer, with its planned tokens."""
    ids = {each.id for each in shown}
    fitted: dict[str, FittedLayer] = {}
    for layer in layers:
        said = "".join(each.text for each in fitted.values()).casefold()
        fitted[layer.name] = fit(layer.without(ids, said), planned.get(layer.name, 0))
    return fitted


class _Nodes:
    """The nodes of memory, read lazily."""

    def __init__(
        self, connections: Sequence[Connection], ids: Iterator[NodeId], first: Sequence[NodeId]
    ) -> None:
        self._connections = connections
        self._ids = ids
        self._first = first
        self._loaded: list[LoadedEntry] = []
        self._read: list[NodeId] = []

    def pinned(self, ids: Sequence[NodeId]) -> Iterator[ContextEntry]:
        self._read += ids
        for each in load(self._connections, ids):
            self._loaded.append(each)
            yield each.entry

    def entries(self) -> Iterator[ContextEntry]:
        for each in load(self._connections, self._count_reads(), self._first):
            self._loaded.append(each)
            yield each.entry._replace(tier=STATE) if each.entry.kept else each.entry

    def _count_reads(self) -> Iterator[NodeId]:
        for node_id in self._ids:
            self._read.append(node_id)
            yield node_id

    def items(self, body: ContextBody) -> tuple[ContextItem, ...]:
        return tuple(item_of(self._loaded[each.number], each.cost) for each in body.items)

    def left_out(self, shown: int) -> OmittedNodes:
        further = list(islice(self._ids, _MOST_COUNTED))
        read = len(self._read)
        self._read += further
        if next(self._ids, None) is not None:
            return OmittedNodes(len(further), or_more=True)
        return OmittedNodes(read - shown + len(further))

    def omitted(self, items: Iterable[ContextItem]) -> tuple[NodeId, ...]:
        """The first of those that `left_out` has counted."""
        shown = {each.id for each in items}
        return tuple([each for each in self._read if each not in shown][:_MOST_NAMED])


def item_of(each: LoadedEntry, cost: int) -> ContextItem:
    return ContextItem(each.node.id, each.entry.label, each.node.updated_at, cost, _digest(each))


def _digest(each: LoadedEntry) -> str:
    entry = each.entry
    state = (entry.content, entry.rationale, entry.tier, [*entry.depends_on], entry.superseded_by)
    told = (*state, entry.author) if entry.author else state
    return f"{crc32(json.dumps(told).encode()):08x}"
