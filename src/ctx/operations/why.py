"""Why an agent knew something: what it was given, when, and at what cost."""

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from ctx import clock, disk
from ctx.capture.session_state import SHORTEST_PREFIX
from ctx.codebase import anchor_check
from ctx.errors import AmbiguousId, ContentRefused, ReceiptNotFound
from ctx.hook_files import spool
from ctx.ids import NodeId
from ctx.memory import receipts
from ctx.memory.code_anchors import AnchorState
from ctx.memory.model import Node
from ctx.memory.receipts import HookReceipt, PackReceipt, Receipt, ReceiptItem
from ctx.workspace import Memory

_ALL = 2**31


class GivenNode(NamedTuple):
    """A node that was given, and what has become of it."""

    id: NodeId
    label: str
    tokens: int
    updated_at: str
    """The state in which it was given."""
    content: str | None
    """As it is now; None where it was deleted since, and where it is not known here."""
    changed: bool | None
    """Whether it is not any more what was given; None where it is not known here: what was given
    in a project, or on a branch, may be in no store that is open now."""
    layer: str = "memory"
    """The part of a context that it was in: `memory`, `standing`, `rules`, `commands`,
    `past_work`, `code`, `sessions`, `learnings`, or `said` for excerpts that came with a prompt.
    Changed files, commands and excerpts are no nodes, and have no id."""
    source: str | None = None
    """Who said it; None if it is not known here."""
    anchors: tuple[AnchorState, ...] = ()
    """The code that it is about, and what has become of it."""


class ReceiptDetails(NamedTuple):
    """The answer of `ctx why`."""

    receipt: str
    session: str
    event: str
    at: str
    project: str | None
    tokens: int
    """Of everything that was given."""
    frame: int
    """Of what stood around the nodes, or the chunks of a pack: how to use memory, headings, what
    was left out."""
    items: tuple[GivenNode, ...]
    packed: PackReceipt | None = None
    """Of a pack: why each part is in it, and what was left out."""


class ReceiptList(NamedTuple):
    """The answer of `ctx why --list`."""

    receipts: tuple[Receipt, ...]


def why(memory: Memory, named: str | None) -> ReceiptDetails:
    """A receipt; where none is named, the last one of those that `last` lists."""
    if named is not None:
        return _explained(memory, _named(memory, named))
    found = last(memory, 1).receipts
    if not found:
        raise ReceiptNotFound(
            "No receipts yet.",
            hint="`ctx install` registers the hooks; `ctx doctor` checks them.",
        )
    return _explained(memory, found[0])


def last(memory: Memory, limit: int) -> ReceiptList:
    """The last receipts of this project, or all of them if the limit is 0.

    Outside of any project, and where a project has none yet, they are those of all.
    """
    most = limit or _ALL
    found = _newest(memory, memory.project, most) or _newest(memory, None, most)
    return ReceiptList(tuple(found))


def _named(memory: Memory, text: str) -> Receipt:
    """The receipt whose id begins so, or the last one of a session whose id does."""
    waiting = _waiting(memory)
    found = [each for each in waiting if each.id.startswith(text)]
    found += receipts.with_prefix(memory.user.connection, text)
    found = found or _of_session(memory, waiting, text)
    if not found:
        raise ReceiptNotFound(f"There is no receipt {text[:80]!r}, and no session of that name.")
    several = {each.id for each in found if each.id.startswith(text)}
    if len(several) > 1:
        told = "\n".join(f"  {each.id}  {each.at}  {each.event}" for each in found[:5])
        raise AmbiguousId(f"Several receipts begin with {text}.", detail=told)
    return found[0]


def _of_session(memory: Memory, waiting: Sequence[Receipt], text: str) -> list[Receipt]:
    connection = memory.user.connection
    sessions = {each.session for each in waiting} | receipts.sessions(connection)
    if text not in sessions and len(text) >= SHORTEST_PREFIX:
        meant = sorted(each for each in sessions if each.startswith(text))
        if len(meant) > 1:
            told = "\n".join(f"  {each}" for each in meant[:5])
            raise AmbiguousId(f"Several sessions begin with {text}.", detail=told)
        text = next(iter(meant), text)
    found = [each for each in waiting if each.session == text]
    return found + receipts.of_session(connection, text)


def _newest(memory: Memory, project: str | None, limit: int) -> list[Receipt]:
    waiting = [each for each in _waiting(memory) if project in (None, each.project)]
    found = {each.id: each for each in receipts.newest(memory.user.connection, project, limit)} | {
        each.id: each for each in waiting
    }
    return [found[receipt_id] for receipt_id in sorted(found, reverse=True)[:limit]]


def _waiting(memory: Memory) -> list[Receipt]:
    """Those that hooks have written down and nobody has taken in yet, the newest first."""
    home = memory.environment.user_store.home
    found = []
    for name in reversed(spool.waiting(home, spool.mark_of(home, memory.environment.graph_file))):
        if spool.kind_of(name) == spool.RECEIPT:
            # It may be taken in at this moment.
            with suppress(OSError, ValueError, ContentRefused):
                handed = read_receipt(name, disk.read(spool.path_of(home, name)))
                found.append(handed.receipt)
    return found


def read_receipt(name: str, said: bytes) -> HookReceipt:
    """A receipt as a file of the spool says it."""
    try:
        told = json.loads(said)
    except ValueError:
        raise ContentRefused("It is not JSON.") from None
    receipt_id = spool.id_of(name)
    return receipts.read(receipt_id, clock.iso(spool.made_ms(receipt_id)), told)


def _explained(memory: Memory, receipt: Receipt) -> ReceiptDetails:
    ids = [item.id for item in receipt.items if item.id]
    now = {node.id: node for node in memory.graph.nodes(ids)}
    states = anchor_check.check(memory, now.values())
    items = tuple(
        _given_node(memory, item, now.get(item.id), states.get(item.id, ()))
        for item in receipt.items
    )
    told = sum(item.tokens for item in items)
    if receipt.packed is not None:
        told = receipt.packed.narrative + sum(each.tokens for each in receipt.packed.chunks)
    return ReceiptDetails(*receipt[:6], receipt.tokens - told, items, receipt.packed)


def _given_node(
    memory: Memory, item: ReceiptItem, now: Node | None, anchors: tuple[AnchorState, ...]
) -> GivenNode:
    changed: bool | None = None
    if now is not None:
        changed = now.updated_at != item.updated_at
    elif item.id and any(graph.was_deleted(item.id) for graph in memory.graph.graphs):
        changed = True
    content = now.content if now else None
    source = now.source if now else None
    shape = item.id, item.label, item.tokens, item.updated_at
    return GivenNode(*shape, content, changed, item.layer, source, anchors)
