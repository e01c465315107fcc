"""What agents were given: which nodes, in which state, at what cost; of a pack also why."""

import json
from collections.abc import Iterable, Sequence
from sqlite3 import Connection
from typing import Any, NamedTuple

from ctx import clock
from ctx.errors import ContentRefused
from ctx.ids import NodeId

QUERY = "query"
"""The event of a pack that somebody asked for."""

_KEPT_DAYS = 90
_MOST_FORGOTTEN = 100
"""At a time: so many are looked at."""
_GONE = "(deleted since)"
_KNOWN_BY = 60
"""Characters by which a line is known where only its beginning is kept."""


class ReceiptItem(NamedTuple):
    id: NodeId
    """Empty for what is no node: a file in which code has changed."""
    label: str
    """As it stood in the text: `fact:01HQ1A2B3C4D`."""
    updated_at: str
    """The state of the node that was given."""
    tokens: int
    layer: str = "memory"
    """The part of a context that it was in."""


class Reason(NamedTuple):
    """One signal that led to a chunk, and what it added to the score."""

    signal: str
    value: float


class PackedChunk(NamedTuple):
    """A part of a pack. What it said is not kept: a receipt is no second copy."""

    title: str
    kind: str
    tokens: int
    score: float
    reasons: tuple[Reason, ...]
    via: tuple[str, ...]
    """How the graph led there; empty for what was found by itself."""


class LeftOutChunk(NamedTuple):
    """What was found and did not come along."""

    title: str
    tokens: int
    score: float
    reason: str


class PackReceipt(NamedTuple):
    """What there is to say about a pack as a whole."""

    task: str
    budget: int
    reserved: int
    """Tokens that were left free for the answer."""
    confidence: float
    code: str
    """How the index of the code was: `fresh`, `as it was`, `scanned`, `none`, …"""
    chunks: tuple[PackedChunk, ...]
    left_out: tuple[LeftOutChunk, ...]
    more_left_out: int
    """How many more were left out than are named."""
    narrative: int = 0
    """Tokens of what happened lately: the log, and the task at hand."""


class Receipt(NamedTuple):
    id: str
    session: str
    event: str
    """What it was given at, as the client calls it; `query` for a pack."""
    at: str
    project: str | None
    tokens: int
    """Of the whole text, with what stands around the nodes."""
    items: tuple[ReceiptItem, ...]
    packed: PackReceipt | None = None


class HookReceipt(NamedTuple):
    """A receipt as a hook wrote it down, with what is not kept in it."""

    receipt: Receipt
    made: dict[str, Any]
    """Of a context how it came about: which layers it has, how long it took."""


def read(receipt_id: str, at: str, told: Any) -> HookReceipt:
    """What a hook wrote down when it gave something. `ContentRefused` where it is no receipt."""
    try:
        items = tuple(ReceiptItem(*each[:4], *each[5:6]) for each in told["items"])
        project = None if told["project"] is None else str(told["project"])
        shape = str(told["session"]), str(told["event"]), at, project, int(told["tokens"])
    except (KeyError, TypeError, ValueError):
        raise ContentRefused("It is no receipt.") from None
    made = told.get("context")
    return HookReceipt(Receipt(receipt_id, *shape, items), made if isinstance(made, dict) else {})


def keep(connection: Connection, receipt: Receipt) -> bool:
    """Inside a transaction. Whether it is new: to keep it twice is harmless."""
    kept: object = receipt.items
    if receipt.packed is not None:
        kept = {"items": receipt.items, "packed": receipt.packed}
    added = connection.execute(
        "INSERT OR IGNORE INTO receipts (id, session, event, at, project, tokens, items)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        (*receipt[:6], json.dumps(kept)),
    )
    return added.rowcount > 0


def with_prefix(connection: Connection, text: str) -> list[Receipt]:
    """Those whose id begins so, the newest first."""
    return _rows(connection, "WHERE substr(id, 1, length(?1)) = ?1", text)


def sessions(connection: Connection) -> set[str]:
    """All that were given something."""
    return {row[0] for row in connection.execute("SELECT DISTINCT session FROM receipts")}


def of_session(connection: Connection, session: str) -> list[Receipt]:
    """Those of a session, the newest first."""
    return _rows(connection, "WHERE session = ?1", session)


def heads(connection: Connection, session: str) -> list[tuple[str, str, str, int]]:
    """Those of a session in order, without what was given: id, event, when, and how many tokens."""
    return connection.execute(
        "SELECT id, event, at, tokens FROM receipts WHERE session = ? ORDER BY id", (session,)
    ).fetchall()


def nodes_given(connection: Connection, session: str, most: int) -> set[str]:
    """The nodes in the last receipts of a session. Whoever asks answers a prompt: nothing else of
    the receipts is read."""
    rows = connection.execute(
        "SELECT items FROM receipts WHERE session = ? ORDER BY id DESC LIMIT ?", (session, most)
    )
    kept = (json.loads(row[0]) for row in rows)
    return {
        each[0] for told in kept for each in (told["items"] if isinstance(told, dict) else told)
    }


def newest(connection: Connection, project: str | None, limit: int) -> list[Receipt]:
    """The last ones that were given in a project, the newest first; in any where it is None."""
    where = "WHERE project = ?1" if project else "WHERE ?1 IS NULL"
    return _rows(connection, where, project, limit)


def forget_session(connection: Connection, session: str) -> None:
    """Inside a transaction."""
    connection.execute("DELETE FROM receipts WHERE session = ?", (session,))


def forget_old(connection: Connection) -> None:
    """Inside a transaction. Of very many, the oldest: the next one goes on from there."""
    since, before = clock.expired(_KEPT_DAYS)
    connection.execute(
        # Ids begin with the time: to look at all of them would take longer with each one kept.
        "DELETE FROM receipts WHERE id IN (SELECT id FROM (SELECT id, at FROM receipts"
        " WHERE id >= ? ORDER BY id LIMIT ?) WHERE at >= ? AND at < ?)",
        (str(clock.parse_iso(since)), _MOST_FORGOTTEN, since, before),
    )


def forget(connection: Connection, lines: Iterable[str]) -> None:
    """Inside a transaction. Take out of packs how nodes began that are gone."""
    for line in lines:
        rows = connection.execute(
            "SELECT id, items FROM receipts WHERE event = ? AND instr(items, ?)",
            (QUERY, json.dumps(line[:_KNOWN_BY])[1:-1]),
        ).fetchall()
        for receipt_id, kept in rows:
            items, packed = _read_items(json.loads(kept))
            if packed is not None:
                without = {"items": items, "packed": _without(packed, line)}
                connection.execute(
                    "UPDATE receipts SET items = ? WHERE id = ?", (json.dumps(without), receipt_id)
                )


def _without(packed: PackReceipt, line: str) -> PackReceipt:
    def told(said: str) -> str:
        kind, found, title = said.partition(": ")
        if _begins(line, said):
            return _GONE
        return f"{kind}: {_GONE}" if found and _begins(line, title) else said

    return packed._replace(
        chunks=tuple(
            each._replace(title=told(each.title), via=tuple(map(told, each.via)))
            for each in packed.chunks
        ),
        left_out=tuple(each._replace(title=told(each.title)) for each in packed.left_out),
    )


def _begins(line: str, title: str) -> bool:
    start = title.removesuffix("…")
    return title == line or (len(start) >= _KNOWN_BY and line.startswith(start))


def _rows(connection: Connection, where: str, value: str | None, limit: int = 20) -> list[Receipt]:
    rows = connection.execute(
        "SELECT id, session, event, at, project, tokens, items FROM receipts"
        f" {where} ORDER BY id DESC LIMIT ?2",
        (value, limit),
    )
    return [Receipt._make((*row[:6], *_read_items(json.loads(row[6])))) for row in rows]


def _read_items(told: Any) -> tuple[tuple[ReceiptItem, ...], PackReceipt | None]:
    """A list of nodes, as it always was; of a pack an object that has them and the rest."""
    items, packed = (told["items"], told["packed"]) if isinstance(told, dict) else (told, None)
    return tuple(ReceiptItem(*each[:5]) for each in items), _read_pack(packed) if packed else None


def _read_pack(told: Sequence[Any]) -> PackReceipt:
    task, budget, reserved, confidence, code, chunks, left_out, more = told[:8]
    return PackReceipt(
        task,
        budget,
        reserved,
        confidence,
        code,
        tuple(map(_read_chunk, chunks)),
        tuple(LeftOutChunk(*each[:4]) for each in left_out),
        more,
        *told[8:9],
    )


def _read_chunk(told: Sequence[Any]) -> PackedChunk:
    title, kind, tokens, score, reasons, via = told[:6]
    return PackedChunk(
        title, kind, tokens, score, tuple(Reason(*each[:2]) for each in reasons), tuple(via)
    )
