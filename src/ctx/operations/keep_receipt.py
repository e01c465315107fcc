"""Keep the receipt of an answer. The answer does not depend on it."""

from collections.abc import Mapping, Sequence
from functools import partial

from ctx import clock
from ctx.errors import CtxError
from ctx.hook_files import spool
from ctx.ids import NodeId
from ctx.memory import receipts, user_store
from ctx.memory.model import Node
from ctx.memory.receipts import PackReceipt, Receipt, ReceiptItem
from ctx.sqlite import truth
from ctx.sqlite.connection import transaction
from ctx.workspace import Memory

_BUSY_MS = 500
"""A receipt waits for others that write, and no longer."""


def keep(memory: Memory, receipt: Receipt) -> str | None:
    """The id of the receipt; None if it cannot be stored."""
    path, later = memory.environment.graph_file, memory.environment.keep_later
    if later is not None:
        later(partial(_write, path, receipt))
        return receipt.id
    return receipt.id if _write(path, receipt) else None


def _write(path: str, receipt: Receipt) -> bool:
    try:
        with user_store.writing(path, _BUSY_MS) as connection:
            # Do not wait for the disk: a power failure may lose only the last receipts.
            truth.commit_without_sync(connection)
            with transaction(connection):
                receipts.keep(connection, receipt)
                receipts.forget_old(connection)
            truth.shorten_log(connection, path)
    except CtxError:
        return False
    return True


def keep_nodes(
    memory: Memory, event: str, nodes: Sequence[Node], costs: Mapping[NodeId, int], tokens: int
) -> str | None:
    """The receipt of an answer that consists of nodes, each with its tokens."""
    if not nodes:
        return None
    return keep(memory, new_receipt(memory, event, tokens, receipt_items(memory, nodes, costs)))


def keep_text(memory: Memory, event: str, tokens: int) -> str | None:
    """The receipt of an answer without nodes."""
    return keep(memory, new_receipt(memory, event, tokens, ()))


def new_receipt(
    memory: Memory,
    event: str,
    tokens: int,
    items: tuple[ReceiptItem, ...],
    packed: PackReceipt | None = None,
) -> Receipt:
    """The receipt of an answer that is given now."""
    now = clock.now_ms()
    place = memory.session, event, clock.iso(now), memory.project
    return Receipt(spool.new_id(now), *place, tokens, items, packed)


def receipt_items(
    memory: Memory, nodes: Sequence[Node], costs: Mapping[NodeId, int]
) -> tuple[ReceiptItem, ...]:
    """Nodes in the state in which they are given, each with its tokens."""
    shown = memory.graph.shown(node.id for node in nodes)
    return tuple(
        ReceiptItem(node.id, f"{node.type}:{shown[node.id]}", node.updated_at, costs[node.id])
        for node in nodes
    )
