"""The context of a session: what an agent gets at its start, in layers.

The first layer is memory: the view `default`. Layers about past sessions follow. Pinned nodes come
on top of the budget, and are whole unless they take more than `MOST_PINNED` tokens. The same
memory gives the same text on the same day, byte for byte: it contains no times, and ages are in
days.

Hooks load this module, so it imports nothing slow.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from sqlite3 import Connection
from typing import NamedTuple

from ctx import tokens
from ctx.context import default_view, hook_queries, session_layers
from ctx.context.compose import ContextBody, item, short_item
from ctx.context.context_entries import load
from ctx.context.context_page import (
    LARGEST_PART,
    USUAL_BUDGET,
    ContextPage,
    MadeContext,
    item_of,
)
from ctx.context.contexts import (
    COMMANDS,
    EMPTY_MEMORY,
    MEMORY,
    MOST_PARTS,
    NOTHING,
    RULES,
    SESSIONS,
    Context,
    ContextItem,
)
from ctx.context.default_view import ViewScope
from ctx.context.layer_lines import Layer, LayerLimits
from ctx.ids import NodeId, Ulid

_HOW = (
    " `ctx recall WORDS` finds more. To store something, write"
    ' `<ctx:remember type="decision" tags="tier:reference">…</ctx:remember>` in an answer, outside'
    " of code. See the skill `ctx`."
)
PREFACE = f"The following is from memory (ctx).{_HOW}"
EMPTY = f"{EMPTY_MEMORY}{_HOW}"
CHANGED = "These parts of memory (ctx) have changed since this conversation last received them."
HINT = "---\nFor details: `ctx recall WORDS`.\n\n"
"""Below the layers of sessions, which have no ids."""

Connections = Sequence[Connection]
"""The stores that a context is made from, the project's first."""

_MOST_STATE = 40
_LONGEST_ITEM = 5_000
_LONG_PREVIEW = 2_000
_SMALL = 400
# Layers whose changes a resumed session gets.
_REPEATED_LAYERS = (MEMORY, RULES, COMMANDS, SESSIONS)


class ContextRequest(NamedTuple):
    """Which context is wanted, and how large."""

    project: str | None
    task: str | None
    budget: int
    part: int = 1
    """A budget too large for one answer is split into parts, each complete in itself."""
    notice: str = ""
    """A notice before the nodes."""
    limits: LayerLimits = LayerLimits()
    session: str = ""
    """A running session; its own work is left out."""


class CompactionState(NamedTuple):
    """What an agent was working on before its conversation was compacted."""

    nodes: Sequence[NodeId] = ()
    lines: Sequence[str] = ()


NO_COMPACTION_STATE = CompactionState()


def context(
    connections: Connections, wanted: ContextRequest, where: CompactionState = NO_COMPACTION_STATE
) -> Context:
    """A context, with the compaction state first."""
    return make_context(connections, wanted, where).context


def make_context(
    connections: Connections, wanted: ContextRequest, where: CompactionState = NO_COMPACTION_STATE
) -> MadeContext:
    further = islice(_in_parts(connections, wanted, where), wanted.part - 1, None)
    return next(further, MadeContext(NOTHING, ()))


def _in_parts(
    connections: Connections, wanted: ContextRequest, where: CompactionState = NO_COMPACTION_STATE
) -> Iterator[MadeContext]:
    """One part after the other, as many as there are answers."""
    budget = min(wanted.budget // parts(wanted.budget), LARGEST_PART)
    before = existing_nodes(connections, where.nodes)
    layers = _layers(connections, wanted)
    past: set[str] = set()
    lines = where.lines
    seen = ViewScope(wanted.project, wanted.task)
    for _ in range(parts(wanted.budget)):
        pinned, others = default_view.nodes_in_view(connections, seen)
        if past:
            # For what is left of them, there was no room.
            pinned, others = [], chain(pinned, others)
        ids = _remaining_ids({*past, *pinned}, chain(before, others))
        first_id = next(ids, None)
        is_empty = not (first_id or pinned or past or any(each.lines for each in layers))
        found = ids if first_id is None else chain([first_id], ids)
        preface = _preface(budget, is_empty=is_empty) + wanted.notice
        left = [each.without(past) for each in layers]
        page = ContextPage(connections, wanted.limits, budget, preface.strip(), _hint(budget))
        part = page.made(pinned, found, before, left, lines)
        yield part
        past.update(each.key for each in part.context.items)
        lines = ()


def _layers(connections: Connections, wanted: ContextRequest) -> list[Layer]:
    limits = wanted.limits
    budget = min(wanted.budget, LARGEST_PART)
    asked = session_layers.LayerRequest(
        *(wanted.project, wanted.session, limits), limits.rules * budget // USUAL_BUDGET
    )
    return session_layers.build_layers(connections, asked)


def _preface(budget: int, *, is_empty: bool) -> str:
    """The preface, left out if there is hardly room for nodes."""
    if budget <= _SMALL:
        return ""
    return EMPTY if is_empty else PREFACE


def _hint(budget: int) -> str:
    return HINT if budget > _SMALL else ""


def parts(budget: int) -> int:
    """How many answers a budget is split into."""
    return max(1, min(MOST_PARTS, -(-budget // LARGEST_PART)))


def changed_context(
    connections: Connections, wanted: ContextRequest, given: dict[str, str]
) -> Context:
    """What is new or changed in the context compared with a receipt."""
    return make_changed_context(connections, wanted, given).context


def make_changed_context(
    connections: Connections, wanted: ContextRequest, given: dict[str, str]
) -> MadeContext:
    found = _in_parts(connections, wanted)
    now = [each for part in found for each in part.context.items if each.layer in _REPEATED_LAYERS]
    news = {each.key: each for each in now if given.get(each.key) != each.digest}
    still = {each.key for each in now}
    nodes = [key for key in given if _is_node(key) and key not in still]
    gone = _removed_labels(connections, nodes)
    if not news and not gone:
        return MadeContext(NOTHING, ())
    budget = min(wanted.budget, LARGEST_PART)
    seen = ViewScope(wanted.project, wanted.task)
    pinned = [each for each in default_view.nodes_in_view(connections, seen)[0] if each in news]
    preface = CHANGED + (_removal_notice(gone, budget // 3) if gone else "") + wanted.notice
    others = [each.id for each in news.values() if each.layer == MEMORY and each.id not in pinned]
    layers = [each.only(news) for each in _layers(connections, wanted)]
    page = ContextPage(connections, wanted.limits, budget, preface, "")
    return page.made(pinned, iter(others), (), layers, ())


def pinned_tokens(connections: Connections, project: str | None) -> int:
    """What the pinned nodes take whole."""
    pinned, _ = default_view.nodes_in_view(connections, ViewScope(project, None))
    body = ContextBody()
    body.fill((each.entry for each in load(connections, pinned)), sys.maxsize)
    return body.tokens


def still_valid(connections: Connections, given: dict[str, str]) -> dict[str, str]:
    """The items of a receipt that still exist."""
    held = set(existing_nodes(connections, filter(_is_node, given)))
    return {key: state for key, state in given.items() if not _is_node(key) or key in held}


def existing_nodes(connections: Connections, node_ids: Iterable[str]) -> list[NodeId]:
    """The nodes that are neither deleted nor superseded nor off-context."""
    return [NodeId(Ulid(each)) for each in node_ids if not _removed_labels(connections, [each])]


def _is_node(key: str) -> bool:
    """Whether an item is a node of memory; keys of other layers have a prefix."""
    return ":" not in key


def _removal_notice(gone: Sequence[str], most: int) -> str:
    """The sentence about removed nodes, as far as there is room."""
    count = len(gone)
    while count > 1 and tokens.estimate(", ".join(gone[:count])) > most:
        count //= 2
    more = f" and {len(gone) - count:,} more" if count < len(gone) else ""
    return f" No longer included: {', '.join(gone[:count])}{more}."


def state(
    connections: Connections, project: str | None, task: str | None, session: str
) -> list[NodeId]:
    """The nodes an agent works with: its task, working nodes, open questions, and what it wrote in
    this session, newest first."""
    rows = [
        row
        for connection in connections
        for row in hook_queries.nodes_in_work(connection, project, task, session, _MOST_STATE)
    ]
    rows.sort(key=lambda row: row[1], reverse=True)
    rows.sort(key=lambda row: row[0])
    return [row[1] for row in rows[:_MOST_STATE]]


def items_of(connections: Connections, node_ids: Iterable[NodeId]) -> list[tuple[ContextItem, str]]:
    """Nodes that were asked for, as items of a list: shortened if one would fill half an answer."""
    found = []
    for each in load(connections, node_ids):
        text = item(each.entry, with_tags=True)
        if units(text) > _LONGEST_ITEM:
            text = short_item(each.entry, with_tags=True, characters=_LONG_PREVIEW)
        found.append((item_of(each, tokens.estimate(text)), text))
    return found


def units(text: str) -> int:
    """Its length in UTF-16, in which Claude Code's limit is given."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def fit_blocks(
    blocks: Sequence[str],
    most: int,
    missing: Callable[[int], str],
    length: Callable[[str], int] = units,
) -> tuple[str, int]:
    """As many blocks as an answer can hold, one below the other, and how many that is.

    What is missing is said at the end.
    """
    left = most - max((length(missing(n)) for n in range(1, len(blocks) + 1)), default=0)
    shown = 0
    for block in blocks:
        left -= length(block)
        if left < 0:
            break
        shown += 1
    text = "".join(blocks[:shown])
    return (text if shown == len(blocks) else text + missing(len(blocks) - shown)), shown


def _remaining_ids(past: set[str], ids: Iterable[NodeId]) -> Iterator[NodeId]:
    """Each once."""
    seen = set(past)
    for node_id in ids:
        if node_id not in seen:
            seen.add(node_id)
            yield node_id


def _removed_labels(connections: Connections, node_ids: Sequence[str]) -> list[str]:
    """Labels of the nodes that are deleted, superseded or off-context, not merely unshown."""
    found = []
    for node_id in node_ids:
        rows = hook_queries.type_and_validity(connections, node_id)
        if not any(row[1] for row in rows):
            found.append(f"[{rows[0][0] if rows else 'node'}:{node_id[:12]}]")
    return found
