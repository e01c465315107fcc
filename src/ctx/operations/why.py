"""Receipts: what an agent was given, when, and at what cost."""

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


class ReceiptNode(NamedTuple):
    """A node that an agent was given, and its current state."""

    id: NodeId
    label: str
    tokens: int
    updated_at: str
    """The version that was given."""
    content: str | None
    """The current content; None if it was deleted, or if no open store has it."""
    changed: bool | None
    """Whether it has changed since; None if no open store has it, such as a node of another
    project or branch."""
    layer: str = "memory"
    """Its part of the context: `memory`, `standing`, `rules`, `commands`, `past_work`, `code`,
    `sessions`, `learnings`, or `said` for excerpts with a prompt. Changed files, commands and
    excerpts are not nodes and have no id."""
    source: str | None = None
    """Its source; None if no open store has it."""
    anchors: tuple[AnchorState, ...] = ()
    """The code that it is about, and the state of that code."""


class ReceiptDetails(NamedTuple):
    """The answer of `ctx why`."""

    receipt: str
    session: str
    event: str
    at: str
    project: str | None
    tokens: int
    """Tokens of the whole text."""
    frame: int
    """Tokens of the text around the nodes or chunks: instructions, headings, and counts of what
    was left out."""
    items: tuple[ReceiptNode, ...]
    packed: PackReceipt | None = None
    """For a pack: why each part is in it, and what was left out."""


class ReceiptList(NamedTuple):
    """The answer of `ctx why --list`."""

    receipts: tuple[Receipt, ...]
    more: int = 0
    """How many older receipts there are."""


def why(memory: Memory, named: str | None) -> ReceiptDetails:
    """A receipt by name, or the last one that `last` lists."""
    if named is not None:
        return _receipt_details(memory, _find_receipt(memory, named))
    latest = last(memory, 1).receipts
    if not latest:
        raise ReceiptNotFound(
            "No receipts yet.",
            hint="`ctx install` registers the hooks; `ctx doctor` checks them.",
        )
    return _receipt_details(memory, latest[0])


def last(memory: Memory, limit: int) -> ReceiptList:
    """The last receipts of this project, or all of them if the limit is 0.

    Outside of a project, or if the project has none yet, receipts of all projects count.
    """
    most = limit or _ALL
    of_project = _newest(memory, memory.project, most)
    return of_project if of_project.receipts else _newest(memory, None, most)


def _find_receipt(memory: Memory, text: str) -> Receipt:
    """The receipt whose id begins with the text, or the last one of such a session."""
    waiting = _spooled_receipts(memory)
    matches = [each for each in waiting if each.id.startswith(text)]
    matches += receipts.with_prefix(memory.local, text)
    matches = matches or _of_session(memory, waiting, text)
    if not matches:
        raise ReceiptNotFound(f"There is no receipt {text[:80]!r}, and no session of that name.")
    several = {each.id for each in matches if each.id.startswith(text)}
    if len(several) > 1:
        candidates = "\n".join(f"  {each.id}  {each.at}  {each.event}" for each in matches[:5])
        raise AmbiguousId(f"Several receipts begin with {text}.", detail=candidates)
    return matches[0]


def _of_session(memory: Memory, waiting: Sequence[Receipt], text: str) -> list[Receipt]:
    sessions = {each.session for each in waiting} | receipts.sessions(memory.local)
    if text not in sessions and len(text) >= SHORTEST_PREFIX:
        meant = sorted(each for each in sessions if each.startswith(text))
        if len(meant) > 1:
            candidates = "\n".join(f"  {each}" for each in meant[:5])
            raise AmbiguousId(f"Several sessions begin with {text}.", detail=candidates)
        text = next(iter(meant), text)
    pending = [each for each in waiting if each.session == text]
    return pending + receipts.of_session(memory.local, text)


def _newest(memory: Memory, project: str | None, limit: int) -> ReceiptList:
    waiting = [each for each in _spooled_receipts(memory) if project in (None, each.project)]
    by_id = {each.id: each for each in receipts.newest(memory.local, project, limit)} | {
        each.id: each for each in waiting
    }
    listed = [by_id[receipt_id] for receipt_id in sorted(by_id, reverse=True)[:limit]]
    every = receipts.ids(memory.local, project).union(by_id)
    return ReceiptList(tuple(listed), len(every) - len(listed))


def _spooled_receipts(memory: Memory) -> list[Receipt]:
    """The receipts that are still in the spool, newest first."""
    home = memory.environment.user_store.home
    pending = []
    for name in reversed(
        spool.pending_names(home, spool.mark_of(home, memory.environment.graph_file))
    ):
        if spool.kind_of(name) == spool.RECEIPT:
            # Another process may remove it at this moment.
            with suppress(OSError, ValueError, ContentRefused):
                handed = read_receipt(name, disk.read(spool.path_of(home, name)))
                pending.append(handed.receipt)
    return pending


def read_receipt(name: str, data: bytes) -> HookReceipt:
    """Read a receipt from a file of the spool."""
    try:
        value = json.loads(data)
    except ValueError:
        raise ContentRefused("It is not JSON.") from None
    receipt_id = spool.id_of(name)
    return receipts.read(receipt_id, clock.iso(spool.made_ms(receipt_id)), value)


def _receipt_details(memory: Memory, receipt: Receipt) -> ReceiptDetails:
    ids = [item.id for item in receipt.items if item.id]
    now = {node.id: node for node in memory.graph.nodes(ids)}
    states = anchor_check.check(memory, now.values())
    items = tuple(
        _given_node(memory, item, now.get(item.id), states.get(item.id, ()))
        for item in receipt.items
    )
    item_tokens = sum(item.tokens for item in items)
    if receipt.packed is not None:
        item_tokens = receipt.packed.narrative + sum(each.tokens for each in receipt.packed.chunks)
    return ReceiptDetails(*receipt[:6], receipt.tokens - item_tokens, items, receipt.packed)


def _given_node(
    memory: Memory, item: ReceiptItem, now: Node | None, anchors: tuple[AnchorState, ...]
) -> ReceiptNode:
    changed: bool | None = None
    if now is not None:
        changed = now.updated_at != item.updated_at
    elif item.id and any(graph.was_deleted(item.id) for graph in memory.graph.graphs):
        changed = True
    content = now.content if now else None
    source = now.source if now else None
    shape = item.id, item.label, item.tokens, item.updated_at
    return ReceiptNode(*shape, content, changed, item.layer, source, anchors)
