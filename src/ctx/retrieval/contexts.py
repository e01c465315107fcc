"""A context, and the table of those that are ready: made once, given as long as they hold.

A context holds as long as nobody has changed memory since (the last stamp of `records`) and as the
settings that it depends on are the same. So nobody who writes has to think of it.

Hooks load this module before anything heavier.
"""

import json
import os
from collections.abc import Mapping
from sqlite3 import Connection
from typing import NamedTuple

from ctx import clock
from ctx.ids import NodeId
from ctx.layout import Place


class Item(NamedTuple):
    """A node in a context, as a receipt names it."""

    id: NodeId
    label: str
    updated_at: str
    tokens: int
    digest: str
    """Tells whether what an agent would read of it has changed."""


class Context(NamedTuple):
    text: str
    tokens: int
    items: tuple[Item, ...]


NOTHING = Context("", 0, ())
NOTHING_YET = "Memory (ctx) holds nothing for this work yet."
"""What a context says that has no nodes in it, and could not have any."""
MOST_PARTS = 8
"""Over so many answers a large budget is spread, at most."""
FORMAT = 1
"""Goes up with every change to how the same nodes are told."""

_KEPT_S = 30 * 86_400


class Beside(NamedTuple):
    """What a context takes from the project's own store."""

    connection: Connection | None = None
    told: str = ""
    """What the context depends on, so that it can be compared."""
    notice: str = ""
    """What the agent is told about it."""
    is_current: bool = True
    """Whether the index is what the project is at."""


NO_STORE = Beside()


class Key(NamedTuple):
    """Which context it is."""

    place: Place
    settings: str
    """What it depends on beside memory, in a form that can be compared."""
    part: int = 1
    beside: str = ""
    """What the project's own memory is at, in such a form."""


def settings(home: str, environment: Mapping[str, str]) -> str:
    """What is set; a context is another one also where another ctx would make it."""
    told = f"{FORMAT} {environment.get('CTX_CONTEXT_BUDGET', '')}"
    try:
        status = os.stat(f"{home}/config.toml")
    except OSError:
        return told
    return f"{told} {status.st_mtime_ns}-{status.st_size}"


def is_default(told: str) -> bool:
    """Whether nothing is set."""
    return told == f"{FORMAT} "


def stamp(connection: Connection) -> int:
    """The last change of memory."""
    last: int | None = connection.execute("SELECT max(stamp) FROM records").fetchone()[0]
    return last or 0


def ready(connection: Connection, key: Key) -> Context | None:
    """The context that was made before, if it still holds."""
    row = connection.execute(
        "SELECT text, tokens, items FROM contexts"
        " WHERE place = ? AND project IS ? AND settings = ? AND stamp = ?",
        (_name(key), key.place.project, _depends_on(key), stamp(connection)),
    ).fetchone()
    if row is None:
        return None
    return Context(row[0], row[1], tuple(Item(*each) for each in json.loads(row[2])))


def keep(connection: Connection, key: Key, context: Context, made_at: str) -> None:
    """Inside a transaction, in which memory is still what the context was made of."""
    connection.execute(
        "INSERT OR REPLACE INTO contexts VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            _name(key),
            stamp(connection),
            _depends_on(key),
            key.place.project,
            made_at,
            context.text,
            context.tokens,
            json.dumps(context.items),
        ),
    )


def forget_old(connection: Connection) -> None:
    """Inside a transaction."""
    before = clock.iso(clock.now_ms() - _KEPT_S * 1000)
    connection.execute("DELETE FROM contexts WHERE made_at < ?", (before,))


def _depends_on(key: Key) -> str:
    return f"{key.settings} {key.beside}" if key.beside else key.settings


def _name(key: Key) -> str:
    return f"{key.place.folder}#{key.part}"
