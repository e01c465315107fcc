"""A context, and the table of those that are ready: made once, given as long as they hold.

A context holds as long as nobody has changed memory since (the last stamp of `records`), as no
session has done anything that it tells of, and as the settings and the day are the same. So nobody
who writes has to think of it.

Hooks load this module before anything heavier.
"""

import json
import os
from collections.abc import Mapping
from sqlite3 import Connection, DatabaseError
from typing import Any, NamedTuple
from zlib import crc32

from ctx import clock
from ctx.ids import NodeId
from ctx.layout import Place

MEMORY, SESSIONS, CODE = "memory", "sessions", "code"
LEARNINGS, PAST_WORK = "learnings", "past_work"
LAYERS = (MEMORY, SESSIONS, CODE, LEARNINGS, PAST_WORK)
"""The layers of a context, in their order."""


class Item(NamedTuple):
    """A node in a context, as a receipt names it; of changed code a file, which has no id."""

    id: NodeId
    label: str
    updated_at: str
    tokens: int
    digest: str
    """Tells whether what an agent would read of it has changed."""
    layer: str = MEMORY

    @property
    def key(self) -> str:
        """By which a later context knows it again. Only nodes of memory are known by their ids."""
        return self.id if self.layer == MEMORY else f"{self.layer}:{self.id or self.label}"


class Context(NamedTuple):
    text: str
    tokens: int
    items: tuple[Item, ...]
    skipped: tuple[str, ...] = ()
    """Layers that had something to say, and neither the room nor the health to say it."""


NOTHING = Context("", 0, ())
NOTHING_YET = "Memory (ctx) holds nothing for this work yet."
"""What a context says that has no nodes in it, and could not have any."""
MOST_PARTS = 8
"""Over so many answers a large budget is spread, at most."""
FORMAT = 2
"""Goes up with every change to how the same nodes are told."""
MOST_SESSIONS = 40
"""So many of the last sessions of a project are looked at."""
MOST_CHANGES = 100
"""So many of the last changes to items of code."""
HEALTH = "health"
"""The file in `CTX_HOME` whose first line says what is wrong with ctx itself, while it is."""

_KEPT_S = 30 * 86_400
_HEALTH_MS = 86_400_000
_LONGEST_HEALTH = 300
_ENVIRONMENT = "CTX_CONTEXT_"


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
    day: str = ""
    """The day on which it is given, because sessions have an age in days."""
    health: str = ""
    """What it says about ctx itself, if something is wrong."""


def key_of(
    place: Place, home: str, environment: Mapping[str, str], part: int = 1, own: Beside = NO_STORE
) -> Key:
    """The context that a session gets which starts at this moment."""
    now_ms = clock.now_ms()
    told = settings(home, environment)
    return Key(place, told, part, own.told, clock.day(now_ms), health(home))


def notice(key: Key, own: Beside) -> str:
    """What there is to say before everything else."""
    wrong = key.health.replace("<!--", "<\\!--")
    return f"{own.notice} Something is wrong with ctx: {wrong}" if wrong else own.notice


def settings(home: str, environment: Mapping[str, str]) -> str:
    """What is set; a context is another one also where another ctx would make it."""
    named = sorted(name for name in environment if name.startswith(_ENVIRONMENT))
    told = f"{FORMAT} {' '.join(f'{name}={environment[name]}' for name in named)}"
    try:
        status = os.stat(f"{home}/config.toml")
    except OSError:
        return told
    return f"{told} {status.st_mtime_ns}-{status.st_size}"


def is_default(told: str) -> bool:
    """Whether nothing is set."""
    return told == f"{FORMAT} "


def health(home: str) -> str:
    """What is wrong with ctx, in one line; nothing where nobody has said so for a day."""
    try:
        with open(f"{home}/{HEALTH}", "rb") as file:
            age_ms = clock.wall_ms() - os.fstat(file.fileno()).st_mtime_ns // 1_000_000
            if abs(age_ms) > _HEALTH_MS:
                return ""
            told = file.read(_LONGEST_HEALTH).partition(b"\n")[0]
    except OSError:
        return ""
    return " ".join(told.decode("utf-8", "replace").split())


def stamp(connection: Connection) -> int:
    """The last change of memory."""
    last: int | None = connection.execute("SELECT max(stamp) FROM records").fetchone()[0]
    return last or 0


def sessions(connection: Connection, project: str | None, without: str = "") -> "list[Any]":
    """The last sessions that have a summary, the newest first: id, the second, the summary."""
    sql = (
        "SELECT id, CAST(strftime('%s', last_at) AS INTEGER), summary FROM (SELECT * FROM sessions"
        " WHERE project IS ?1 AND id <> ?2 ORDER BY last_at DESC, id LIMIT ?3)"
        " WHERE summary IS NOT NULL"
    )
    return connection.execute(sql, (project, without, MOST_SESSIONS)).fetchall()


def last_heard(connection: Connection, project: str | None, without: str = "") -> list[str]:
    """The last sessions, also those of which there is nothing to sum up, the newest first."""
    sql = "SELECT id FROM sessions WHERE project IS ?1 AND id <> ?2 ORDER BY last_at DESC LIMIT ?3"
    return [row[0] for row in connection.execute(sql, (project, without, MOST_SESSIONS))]


def changes(connection: Connection, project: str | None, without: str = "") -> "list[Any]":
    """What was changed last in the code of a project, the newest first."""
    sql = (
        "SELECT session, path, name, kind, change, signature, line, at FROM symbol_changes"
        " WHERE project IS ?1 AND session <> ?2 ORDER BY at DESC, session, path, name LIMIT ?3"
    )
    return connection.execute(sql, (project, without, MOST_CHANGES)).fetchall()


def heard(connection: Connection, project: str | None) -> str:
    """What sessions have done, as far as a context tells of it, in a few characters.

    It changes without a record. What is compared is what would be told, so that nothing else makes
    a context old: a session that goes on says something all the time.
    """
    try:
        listed = [
            (row[0], clock.day((row[1] or 0) * 1000), row[2])
            for row in sessions(connection, project)
        ]
        changed = [row[:7] for row in changes(connection, project)]
    except DatabaseError:
        return "unreadable"
    return f"{crc32(repr((listed, changed)).encode()):08x}" if listed or changed else ""


def at(connection: Connection, key: Key) -> tuple[int, str]:
    """What memory is at, and everything else that a context depends on."""
    told = [key.settings, key.beside, key.day, key.health, heard(connection, key.place.project)]
    return stamp(connection), "\t".join(told)


def ready(connection: Connection, key: Key) -> Context | None:
    """The context that was made before, if it still holds."""
    now, depends_on = at(connection, key)
    row = connection.execute(
        "SELECT text, tokens, items FROM contexts"
        " WHERE place = ? AND project IS ? AND settings = ? AND stamp = ?",
        (_name(key), key.place.project, depends_on, now),
    ).fetchone()
    if row is None:
        return None
    items, skipped = json.loads(row[2])
    return Context(row[0], row[1], tuple(Item(*each) for each in items), tuple(skipped))


def keep(connection: Connection, key: Key, context: Context, made_at: str) -> None:
    """Inside a transaction, in which everything is still `at` what the context was made of."""
    now, depends_on = at(connection, key)
    connection.execute(
        "INSERT OR REPLACE INTO contexts VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            _name(key),
            now,
            depends_on,
            key.place.project,
            made_at,
            context.text,
            context.tokens,
            json.dumps([context.items, context.skipped]),
        ),
    )


def forget(connection: Connection) -> None:
    """Inside a transaction: all of them. Whoever needs one makes it anew."""
    connection.execute("DELETE FROM contexts")


def forget_old(connection: Connection) -> None:
    """Inside a transaction."""
    before = clock.iso(clock.now_ms() - _KEPT_S * 1000)
    connection.execute("DELETE FROM contexts WHERE made_at < ?", (before,))


def _name(key: Key) -> str:
    return f"{key.place.folder}#{key.part}"
