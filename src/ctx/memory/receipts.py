"""Receipts of what agents were given: nodes, their state and cost; for a pack also why."""

import json
from collections.abc import Iterable, Sequence
from sqlite3 import Connection
from typing import Any, NamedTuple

from ctx import clock
from ctx.errors import ContentRefused
from ctx.ids import CLI_SESSION, NodeId

QUERY = "query"
"""The event of a requested pack."""

_KEPT_DAYS = 90
_MOST_FORGOTTEN = 100
"""The number of receipts checked at a time."""
_GONE = "(deleted since)"
_KNOWN_BY = 60
"""The number of characters that identify a line of which only the beginning is stored."""


class ReceiptItem(NamedTuple):
    id: NodeId
    """Empty for what is not a node: a passage of a session, a command."""
    label: str
    """The label in the text: `fact:01HQ1A2B3C4D`."""
    updated_at: str
    """The state of the node at that time."""
    tokens: int
    layer: str = "memory"
    """The layer of the context."""
    digest: str = ""
    """The checksum of the text of something that is not a node."""


class Reason(NamedTuple):
    """A ranking signal and what it added to the score."""

    signal: str
    value: float


class PackedChunk(NamedTuple):
    """A chunk of a pack. Its text is not stored: a receipt is not a second copy."""

    title: str
    kind: str
    tokens: int
    score: float
    reasons: tuple[Reason, ...]
    via: tuple[str, ...]
    """The path in the graph; empty if it was found directly."""


class ReceiptOmission(NamedTuple):
    """A chunk that was found but left out."""

    title: str
    tokens: int
    score: float
    reason: str


class PackReceipt(NamedTuple):
    """The pack as a whole."""

    task: str
    budget: int
    reserved: int
    """Tokens reserved for the answer."""
    confidence: float
    code: str
    """The state of the code index: `fresh`, `as it was`, `scanned`, `none`, …"""
    chunks: tuple[PackedChunk, ...]
    left_out: tuple[ReceiptOmission, ...]
    more_left_out: int
    """How many more chunks were left out than are listed."""
    narrative: int = 0
    """Tokens of recent narrative: the log and the current task."""


class Receipt(NamedTuple):
    id: str
    session: str
    event: str
    """The client's name of the event; `query` for a pack."""
    at: str
    project: str | None
    tokens: int
    """Tokens of the whole text, including headings."""
    items: tuple[ReceiptItem, ...]
    packed: PackReceipt | None = None


class HookReceipt(NamedTuple):
    """A receipt as a hook wrote it, with data that is not stored in it."""

    receipt: Receipt
    made: dict[str, Any]
    """How the context was made: its layers and the time it took."""


def read(receipt_id: str, at: str, data: Any) -> HookReceipt:
    """Parse a receipt that a hook wrote. Raises `ContentRefused` if it is invalid."""
    try:
        items = tuple(map(_item_of_hook, data["items"]))
        project = None if data["project"] is None else str(data["project"])
        shape = str(data["session"]), str(data["event"]), at, project, int(data["tokens"])
    except (IndexError, KeyError, TypeError, ValueError):
        raise ContentRefused("This is not a receipt.") from None
    made = data.get("context")
    return HookReceipt(Receipt(receipt_id, *shape, items), made if isinstance(made, dict) else {})


def _item_of_hook(data: Sequence[Any]) -> ReceiptItem:
    """A hook writes the checksum of each text before its layer."""
    item = ReceiptItem(*data[:4], *data[5:6])
    return item if item.id else item._replace(digest=data[4])


def keep(connection: Connection, receipt: Receipt) -> bool:
    """Store a receipt, inside a transaction; whether it is new. Storing it twice is harmless."""
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
    """The receipts with this id prefix, newest first."""
    return _rows(connection, "WHERE substr(id, 1, length(?1)) = ?1", text)


def sessions(connection: Connection) -> set[str]:
    """All sessions that have receipts."""
    return {row[0] for row in connection.execute("SELECT DISTINCT session FROM receipts")}


def of_session(connection: Connection, session: str) -> list[Receipt]:
    """The receipts of a session, newest first."""
    return _rows(connection, "WHERE session = ?1", session)


def heads(connection: Connection, session: str) -> list[tuple[str, str, str, int]]:
    """The receipts of a session in order without their items: id, event, time, tokens."""
    return connection.execute(
        "SELECT id, event, at, tokens FROM receipts WHERE session = ? ORDER BY id", (session,)
    ).fetchall()


def tokens_by_day(
    connection: Connection, since: str, project: str | None
) -> list[tuple[str, str, int]]:
    """What agents were given since a time: day, event, tokens. None: in all projects.

    A command outside of a session was run by a person.
    """
    # Ids begin with the time, so older receipts are not read.
    return connection.execute(
        "SELECT substr(at, 1, 10), event, sum(tokens) FROM receipts WHERE id >= ?1 AND at >= ?2"
        " AND session <> ?4 AND (?3 IS NULL OR project = ?3) GROUP BY 1, 2 ORDER BY 1, 2",
        (str(clock.parse_iso(since)), since, project, CLI_SESSION),
    ).fetchall()


def key_of(node_id: str, label: str, updated_at: str) -> str:
    """What identifies an item of a receipt: its id, or the label and time of an excerpt."""
    return node_id or f"{label} {updated_at}"


def keys_given(connection: Connection, session: str, most: int) -> set[str]:
    """The keys of the items in the last receipts of a session. A prompt waits for this, so nothing
    else of the receipts is read."""
    rows = connection.execute(
        "SELECT items FROM receipts WHERE session = ? ORDER BY id DESC LIMIT ?", (session, most)
    )
    kept = (json.loads(row[0]) for row in rows)
    return {
        key_of(*each[:3])
        for data in kept
        for each in (data["items"] if isinstance(data, dict) else data)
    }


def newest(connection: Connection, project: str | None, limit: int) -> list[Receipt]:
    """The last receipts of a project, newest first; of all projects if it is None."""
    return _rows(connection, _of_project(project), project, limit)


def newest_of_agents(connection: Connection, project: str | None) -> list[Receipt]:
    """The last of them that is not of a person's own command; empty if there is none."""
    where = f"{_of_project(project)} AND session <> '{CLI_SESSION}'"
    return _rows(connection, where, project, 1)


def ids(connection: Connection, project: str | None) -> set[str]:
    """The ids of all receipts of a project; of all projects if it is None."""
    rows = connection.execute(f"SELECT id FROM receipts {_of_project(project)}", (project,))
    return {row[0] for row in rows}


def _of_project(project: str | None) -> str:
    return "WHERE project = ?1" if project else "WHERE ?1 IS NULL"


def forget_session(connection: Connection, session: str) -> None:
    """Inside a transaction."""
    connection.execute("DELETE FROM receipts WHERE session = ?", (session,))


def forget_old(connection: Connection) -> None:
    """Delete expired receipts, inside a transaction: the oldest ones, the rest at the next call."""
    since, before = clock.expired_range(_KEPT_DAYS)
    connection.execute(
        # Ids begin with the time, so only the oldest are read.
        "DELETE FROM receipts WHERE id IN (SELECT id FROM (SELECT id, at FROM receipts"
        " WHERE id >= ? ORDER BY id LIMIT ?) WHERE at >= ? AND at < ?)",
        (str(clock.parse_iso(since)), _MOST_FORGOTTEN, since, before),
    )


def forget(connection: Connection, lines: Iterable[str]) -> None:
    """Remove the first lines of deleted nodes from pack receipts, inside a transaction."""
    for line in lines:
        rows = connection.execute(
            "SELECT id, items FROM receipts WHERE event = ? AND instr(items, ?)",
            (QUERY, json.dumps(line[:_KNOWN_BY])[1:-1]),
        ).fetchall()
        for receipt_id, kept in rows:
            items, packed = _read_items(json.loads(kept))
            if packed is not None:
                without = {"items": items, "packed": _without_line(packed, line)}
                connection.execute(
                    "UPDATE receipts SET items = ? WHERE id = ?", (json.dumps(without), receipt_id)
                )


def _without_line(packed: PackReceipt, line: str) -> PackReceipt:
    def redacted(text: str) -> str:
        kind, separator, title = text.partition(": ")
        if _begins(line, text):
            return _GONE
        return f"{kind}: {_GONE}" if separator and _begins(line, title) else text

    return packed._replace(
        chunks=tuple(
            chunk._replace(title=redacted(chunk.title), via=tuple(map(redacted, chunk.via)))
            for chunk in packed.chunks
        ),
        left_out=tuple(chunk._replace(title=redacted(chunk.title)) for chunk in packed.left_out),
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


def _read_items(data: Any) -> tuple[tuple[ReceiptItem, ...], PackReceipt | None]:
    """Parse the items column: a list of nodes, or for a pack an object with the nodes and more."""
    items, packed = (data["items"], data["packed"]) if isinstance(data, dict) else (data, None)
    return tuple(ReceiptItem(*item[:6]) for item in items), _read_pack(packed) if packed else None


def _read_pack(data: Sequence[Any]) -> PackReceipt:
    task, budget, reserved, confidence, code, chunks, left_out, more = data[:8]
    return PackReceipt(
        task,
        budget,
        reserved,
        confidence,
        code,
        tuple(map(_read_chunk, chunks)),
        tuple(ReceiptOmission(*omission[:4]) for omission in left_out),
        more,
        *data[8:9],
    )


def _read_chunk(data: Sequence[Any]) -> PackedChunk:
    title, kind, tokens, score, reasons, via = data[:6]
    return PackedChunk(
        title, kind, tokens, score, tuple(Reason(*reason[:2]) for reason in reasons), tuple(via)
    )
