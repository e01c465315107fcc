"""What agents were given: which nodes, in which state, at what cost."""

import json
from sqlite3 import Connection
from typing import Any, NamedTuple

from ctx import clock
from ctx.errors import ContentRefused
from ctx.ids import NodeId

_KEPT_DAYS = 90
_DAY_MS = 86_400_000


class Item(NamedTuple):
    id: NodeId
    label: str
    """As it stood in the text: `fact:01HQ1A2B3C4D`."""
    updated_at: str
    """The state of the node that was given."""
    tokens: int


class Receipt(NamedTuple):
    id: str
    session: str
    event: str
    """What it was given at, as the client calls it."""
    at: str
    project: str | None
    tokens: int
    """Of the whole text, with what stands around the nodes."""
    items: tuple[Item, ...]


def read(receipt_id: str, at: str, told: Any) -> Receipt:
    """What a hook wrote down when it gave something. `ContentRefused` where it is no receipt."""
    try:
        items = tuple(Item(*each[:4]) for each in told["items"])
        project = None if told["project"] is None else str(told["project"])
        shape = str(told["session"]), str(told["event"]), at, project, int(told["tokens"])
    except (KeyError, TypeError, ValueError):
        raise ContentRefused("It is no receipt.") from None
    return Receipt(receipt_id, *shape, items)


def keep(connection: Connection, receipt: Receipt) -> None:
    """Inside a transaction. To keep it twice is harmless."""
    connection.execute(
        "INSERT OR IGNORE INTO receipts (id, session, event, at, project, tokens, items)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        (*receipt[:6], json.dumps(receipt.items)),
    )


def beginning(connection: Connection, text: str) -> list[Receipt]:
    """Those whose id begins so, or those of a session that is called so; the newest first."""
    found = _rows(connection, "WHERE substr(id, 1, length(?1)) = ?1", text)
    return found or _rows(connection, "WHERE session = ?1", text)


def newest(connection: Connection, project: str | None, limit: int) -> list[Receipt]:
    """The last ones that were given in a project, the newest first; in any where it is None."""
    where = "WHERE project = ?1" if project else "WHERE ?1 IS NULL"
    return _rows(connection, where, project, limit)


def forget_old(connection: Connection) -> None:
    """Inside a transaction."""
    before = clock.iso(clock.now_ms() - _KEPT_DAYS * _DAY_MS)
    connection.execute("DELETE FROM receipts WHERE at < ?", (before,))


def _rows(connection: Connection, where: str, value: str | None, limit: int = 20) -> list[Receipt]:
    rows = connection.execute(
        "SELECT id, session, event, at, project, tokens, items FROM receipts"
        f" {where} ORDER BY id DESC LIMIT ?2",
        (value, limit),
    )
    return [
        Receipt._make((*row[:6], tuple(Item(*each) for each in json.loads(row[6])))) for row in rows
    ]
