"""A context, and the table of prepared contexts.

A prepared context is valid until memory changes (the last stamp of `records`), a session does
something that the context shows, or the settings or the day change. So writers need not invalidate
it.

Hooks load this module before anything heavier.
"""

import json
import os
from collections.abc import Mapping
from sqlite3 import Connection, DatabaseError
from typing import NamedTuple
from zlib import crc32

from ctx import clock
from ctx.context import hook_queries
from ctx.ids import NodeId
from ctx.layout import Place

MEMORY, SESSIONS, COMMANDS = "memory", "sessions", "commands"
STANDING, RULES, WORDS = "standing", "rules", "words"
LAYERS = (MEMORY, STANDING, RULES, WORDS, COMMANDS, SESSIONS)
"""The layers of a context, in their order."""
SAID = "said"
"""The layer of excerpts, which come with a prompt and have no ids."""
BEFORE_EDIT = "before_edit"
"""The layer of what memory knows about a file that is about to be edited."""
HINT, RECALLED = "hint", "recalled"
"""The layers of nodes that come with a prompt: they match it, or the agent asked for them."""


class ContextItem(NamedTuple):
    """A node in a context, as receipts name it; a command or a passage has no id."""

    id: NodeId
    label: str
    updated_at: str
    tokens: int
    digest: str
    """Changes when the text that the agent reads changes."""
    layer: str = MEMORY

    @property
    def key(self) -> str:
        """Identifies it in a later context. Only nodes of memory are identified by id alone."""
        return self.id if self.layer == MEMORY else f"{self.layer}:{self.id or self.label}"


class Context(NamedTuple):
    text: str
    tokens: int
    items: tuple[ContextItem, ...]
    skipped: tuple[str, ...] = ()
    """Layers that had lines but no room for them, or could not be read."""


NOTHING = Context("", 0, ())
EMPTY_MEMORY = "Memory (ctx) is empty here."
"""The text of a context when there are no nodes to show."""
MOST_PARTS = 8
"""A large budget is split into at most this many answers."""
FORMAT = 4
"""Increased whenever the same nodes are rendered differently."""
HEALTH = "health"
"""A file in `CTX_HOME`; its first line describes a current problem of ctx itself."""

_KEPT_S = 30 * 86_400
_HEALTH_MS = 86_400_000
_LONGEST_HEALTH = 300
_ENVIRONMENT = "CTX_CONTEXT_"


class ProjectStoreState(NamedTuple):
    """The project's own store as a source of a context."""

    connection: Connection | None = None
    version: str = ""
    """A value that changes whenever the context would."""
    notice: str = ""
    """A note about it for the agent."""
    is_current: bool = True
    """Whether the index is up to date."""


NO_STORE = ProjectStoreState()


class ContextKey(NamedTuple):
    """Identifies a context."""

    place: Place
    settings: str
    """A value that changes with the settings."""
    part: int = 1
    project_version: str = ""
    """The `version` of the project's own store."""
    day: str = ""
    """Today, because the age of sessions is shown in days."""
    health: str = ""
    """The current problem of ctx itself, if any."""


def key_of(
    place: Place,
    home: str,
    environment: Mapping[str, str],
    part: int = 1,
    own: ProjectStoreState = NO_STORE,
) -> ContextKey:
    """The key of the context for a session that starts now."""
    now_ms = clock.now_ms()
    told = settings(home, environment)
    return ContextKey(place, told, part, own.version, clock.day(now_ms), health(home))


def notice(key: ContextKey, own: ProjectStoreState) -> str:
    """The notices that come before everything else."""
    wrong = key.health.replace("<!--", "<\\!--")
    return f"{own.notice} Something is wrong with ctx: {wrong}" if wrong else own.notice


def settings(home: str, environment: Mapping[str, str]) -> str:
    """A value that changes with the settings and with `FORMAT`."""
    named = sorted(name for name in environment if name.startswith(_ENVIRONMENT))
    told = f"{FORMAT} {' '.join(f'{name}={environment[name]}' for name in named)}"
    try:
        status = os.stat(f"{home}/config.toml")
    except OSError:
        return told
    return f"{told} {status.st_mtime_ns}-{status.st_size}"


def is_default(told: str) -> bool:
    """Whether all settings have their defaults."""
    return told == f"{FORMAT} "


def health(home: str) -> str:
    """The current problem of ctx in one line; empty if none was reported for a day."""
    try:
        with open(f"{home}/{HEALTH}", "rb") as file:
            age_ms = clock.wall_ms() - os.fstat(file.fileno()).st_mtime_ns // 1_000_000
            if abs(age_ms) > _HEALTH_MS:
                return ""
            told = file.read(_LONGEST_HEALTH).partition(b"\n")[0]
    except OSError:
        return ""
    return " ".join(told.decode("utf-8", "replace").split())


def sessions_digest(connection: Connection, project: str | None) -> str:
    """A checksum of what a context shows about sessions.

    It can change without a new record. It covers only what is shown, so that the many events of a
    running session do not invalidate a context.
    """
    try:
        listed = [
            (row[0], clock.day((row[1] or 0) * 1000), row[2])
            for row in hook_queries.sessions(connection, project)
        ]
        said = hook_queries.last_excerpt(connection)
        ran = hook_queries.session_commands(connection, project)
    except DatabaseError:
        return "unreadable"
    told = (listed, said, ran)
    return f"{crc32(repr(told).encode()):08x}" if any(told) else ""


def current_state(connection: Connection, key: ContextKey) -> tuple[int, str]:
    """The stamp of memory, and everything else that a context depends on."""
    told = [
        key.settings,
        key.project_version,
        key.day,
        key.health,
        sessions_digest(connection, key.place.project),
    ]
    return hook_queries.last_stamp(connection), "\t".join(told)


def valid_context(connection: Connection, key: ContextKey) -> Context | None:
    """The prepared context, if it is still valid."""
    now, depends_on = current_state(connection, key)
    row = connection.execute(
        "SELECT text, tokens, items FROM contexts"
        " WHERE place = ? AND project IS ? AND settings = ? AND stamp = ?",
        (_name(key), key.place.project, depends_on, now),
    ).fetchone()
    if row is None:
        return None
    items, skipped = json.loads(row[2])
    return Context(row[0], row[1], tuple(ContextItem(*each) for each in items), tuple(skipped))


def keep(connection: Connection, key: ContextKey, context: Context, made_at: str) -> None:
    """Inside a transaction in which `current_state` has not changed since the context was made."""
    now, depends_on = current_state(connection, key)
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
    """Inside a transaction: delete all of them. They are made again when needed."""
    connection.execute("DELETE FROM contexts")


def forget_old(connection: Connection) -> None:
    """Inside a transaction."""
    before = clock.iso(clock.now_ms() - _KEPT_S * 1000)
    connection.execute("DELETE FROM contexts WHERE made_at < ?", (before,))


def _name(key: ContextKey) -> str:
    return f"{key.place.folder}#{key.part}"
