"""The current state of a project by its file names, and whether an index matches it.

Hooks load this module, so it reads names and a few small files and does not import the object
store.
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
from ctx.objects import refs, untracked_commits
from ctx.objects.refs import Refs

APPLICATION_ID = int.from_bytes(b"ctxp", "big")
VERSION = 4
FILE = "store.db"


class ProjectState(NamedTuple):
    """The heads and staged chains of a project."""

    heads: tuple[ObjectId, ...]
    chains: tuple[tuple[SessionId, ObjectId], ...]
    """The sessions with staged work and their last steps."""
    replaced: str = ""
    """A digest of the scrubbed objects; empty if there are none."""
    given: str = ""
    """Changes when agents are given more of the same commits and documents."""

    @property
    def as_text(self) -> str:
        """The state as text, for comparison."""
        return json.dumps(self)


class Fingerprint(NamedTuple):
    """File metadata that shows whether a document has changed."""

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
    given = disk.read_or_none(project.given) or b""
    return ProjectState(
        tuple(untracked_commits.current_heads(project)),
        tuple(chains),
        scrubbed_digest(project),
        given.decode("ascii", "replace"),
    )


def scrubbed_digest(project: Project) -> str:
    """A digest of the names of scrubbed objects."""
    names = disk.names(project.replaced)
    if not names:
        return ""
    try:
        # Hooks call this, and importing hashlib costs more than everything else here.
        from _blake2 import blake2b
    except ImportError:
        from hashlib import blake2b

    return blake2b("\n".join(names).encode("utf-8", "replace"), digest_size=16).hexdigest()


def scrubbed_digest_of(connection: Connection) -> str:
    """The digest from the time when the index was made."""
    row = connection.execute("SELECT value FROM present WHERE name = 'replaced'").fetchone()
    return row[0] if row else ""


def _tip(pointers: Refs, name: str) -> ObjectId | None:
    try:
        return pointers.read(name)
    except DeserializationFailed:
        # `ctx stage recover` handles a damaged ref; it must not hide the rest.
        return None


def path_for(project: Project, now: ProjectState) -> str:
    """The path of the index for these heads."""
    return os.path.join(project.index_of(now.heads), FILE)


def is_index(connection: Connection) -> bool:
    """Whether a database is an index of this version."""
    marks = [
        connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("application_id", "user_version")
    ]
    return marks == [APPLICATION_ID, VERSION]


def holds(connection: Connection, project: Project, now: ProjectState) -> bool:
    """Whether an index matches these heads and chains and lacks no object that exists now."""
    known = dict(connection.execute("SELECT name, value FROM present"))
    if known.get("state") != now.as_text:
        return False
    missing = known.get("missing", "").split()
    if any(os.path.exists(_object(project, id)) for id in missing):
        return False
    return all(damage_line(project, line.split()[0]) == line for line in _lines_of_damage(known))


def damage_line(project: Project, damaged: str) -> str:
    """The id, size and time of an unreadable object: shows whether its file has changed."""
    try:
        status = os.stat(_object(project, damaged), follow_symlinks=False)
    except OSError:
        return f"{damaged} 0 0"
    return f"{damaged} {status.st_size} {status.st_mtime_ns}"


def damaged_objects(connection: Connection) -> list[str]:
    """The objects that were unreadable when the index was made."""
    known = dict(connection.execute("SELECT name, value FROM present"))
    return [line.split()[0] for line in _lines_of_damage(known)]


def _lines_of_damage(known: Mapping[str, str]) -> list[str]:
    return known.get("damaged", "").splitlines()


def _object(project: Project, id: str) -> str:
    return f"{project.objects}/{id[:2]}/{id}"


def read_current(
    project: Project, now: ProjectState, documents: Mapping[str, Fingerprint]
) -> Connection | None:
    """The index, if it exists and is up to date."""
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
    """An open index, if it is readable, of this version, and passes `is_fit`."""
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


class Withheld(NamedTuple):
    """What an index leaves out, because agents are not given it."""

    objects: frozenset[str]
    """Commits and batches."""
    documents: frozenset[str]
    branches: str
    """The state of the trusted branches when this was found out."""
    items: int
    """How many nodes and documents this is, without rejected ones."""

    @property
    def is_nothing(self) -> bool:
        return not (self.objects or self.documents)


def withheld_by(connection: Connection) -> Withheld:
    known = dict(connection.execute("SELECT name, value FROM present"))
    return Withheld(
        frozenset(row[0] for row in connection.execute("SELECT id FROM withheld")),
        frozenset(
            row[0] for row in connection.execute("SELECT path FROM documents WHERE withheld")
        ),
        known.get("branches", ""),
        int(known.get("withheld", "0")),
    )


def documents_of(connection: Connection) -> dict[str, Fingerprint]:
    rows = connection.execute("SELECT path, mtime_ns, size, inode FROM documents")
    return {row[0]: Fingerprint(*row[1:]) for row in rows}
