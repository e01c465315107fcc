"""What a project is at, as the names of files say it, and whether an index is at the same.

Hooks load this module: it reads names and a few small files, and loads nothing of the object store.
"""

import json
import os
import sqlite3
from collections.abc import Callable, Mapping
from sqlite3 import Connection
from typing import NamedTuple

from ctx import disk
from ctx.errors import DeserializationFailed
from ctx.ids import ObjectId, SessionId
from ctx.layout import Project
from ctx.objects import refs, untracked
from ctx.objects.refs import Refs

APPLICATION_ID = int.from_bytes(b"ctxp", "big")
VERSION = 2
FILE = "store.db"


class ProjectState(NamedTuple):
    """What a project is at."""

    heads: tuple[ObjectId, ...]
    chains: tuple[tuple[SessionId, ObjectId], ...]
    """The sessions with staged work, and their last steps."""
    replaced: str = ""
    """What tells which objects were scrubbed; empty where none was."""

    @property
    def as_text(self) -> str:
        """The same as text that can be compared."""
        return json.dumps(self)


class Fingerprint(NamedTuple):
    """What tells that a document is what it was, without reading it."""

    mtime_ns: int
    size: int
    inode: int


def state(project: Project) -> ProjectState:
    pointers = Refs(project.refs)
    chains = [
        (session, tip)
        for name in pointers.names()
        if (session := refs.session_of(name)) and (tip := _tip(pointers, name))
    ]
    return ProjectState(tuple(untracked.current_heads(project)), tuple(chains), replaced(project))


def replaced(project: Project) -> str:
    """One word for the names of what was scrubbed: another word where there are others."""
    names = disk.names(project.replaced)
    if not names:
        return ""
    try:
        # A hook asks too, and hashlib with all its hashes costs more than the rest of it.
        from _blake2 import blake2b
    except ImportError:
        from hashlib import blake2b

    return blake2b("\n".join(names).encode("utf-8", "replace"), digest_size=16).hexdigest()


def replaced_in(connection: Connection) -> str:
    """The same as it was when an index was made."""
    row = connection.execute("SELECT value FROM present WHERE name = 'replaced'").fetchone()
    return row[0] if row else ""


def _tip(pointers: Refs, name: str) -> ObjectId | None:
    try:
        return pointers.read(name)
    except DeserializationFailed:
        # A ref that is damaged is for `ctx stage recover`; it must not hide the rest.
        return None


def path_for(project: Project, now: ProjectState) -> str:
    """Where the index of a set of heads lies."""
    return os.path.join(project.index_of(now.heads), FILE)


def is_index(connection: Connection) -> bool:
    """Whether a database is an index that this version made."""
    found = [
        connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("application_id", "user_version")
    ]
    return found == [APPLICATION_ID, VERSION]


def holds(connection: Connection, project: Project, now: ProjectState) -> bool:
    """Whether an index was made of these heads and chains, and lacks nothing that is there now."""
    known = dict(connection.execute("SELECT name, value FROM present"))
    if known.get("state") != now.as_text:
        return False
    missing = known.get("missing", "").split()
    if any(os.path.exists(_object(project, each)) for each in missing):
        return False
    return all(damage_line(project, line.split()[0]) == line for line in _lines_of_damage(known))


def damage_line(project: Project, damaged: str) -> str:
    """An object that cannot be read, and what tells whether its file is still the same."""
    try:
        found = os.stat(_object(project, damaged), follow_symlinks=False)
    except OSError:
        return f"{damaged} 0 0"
    return f"{damaged} {found.st_size} {found.st_mtime_ns}"


def count_damaged(connection: Connection) -> int:
    """How many objects could not be read when an index was made."""
    return len(_lines_of_damage(dict(connection.execute("SELECT name, value FROM present"))))


def _lines_of_damage(known: Mapping[str, str]) -> list[str]:
    return known.get("damaged", "").splitlines()


def _object(project: Project, id: str) -> str:
    return f"{project.objects}/{id[:2]}/{id}"


def read_current(
    project: Project, now: ProjectState, documents: Mapping[str, Fingerprint]
) -> Connection | None:
    """The index, if there is one and it is what the project is at."""
    path = path_for(project, now)
    if not os.path.exists(path):
        return None
    from ctx.sqlite.truth import connect_for_reading

    return if_fit(
        lambda: connect_for_reading(path),
        lambda index: holds(index, project, now) and documents_of(index) == documents,
    )


def if_fit(
    connect: Callable[[], Connection], is_fit: Callable[[Connection], bool]
) -> Connection | None:
    """An index, if it is one that this version made, sound, and fit for a purpose."""
    connection = None
    try:
        connection = connect()
        if is_index(connection) and is_fit(connection):
            return connection
    except sqlite3.DatabaseError:
        pass
    if connection is not None:
        connection.close()
    return None


def documents_of(connection: Connection) -> dict[str, Fingerprint]:
    rows = connection.execute("SELECT path, mtime_ns, size, inode FROM documents")
    return {row[0]: Fingerprint(*row[1:]) for row in rows}
