"""The memory of the project where an agent works, as far as the agent is given it.

A project that is not trusted gives nothing but the word that it is there. One that is trusted gives
its index, if that is what the project is at.

Hooks load this module.
"""

import os
import sqlite3
from collections.abc import Sequence
from sqlite3 import Connection
from zlib import crc32

from ctx import disk, layout
from ctx.context.contexts import Beside
from ctx.errors import CtxError
from ctx.layout import Project
from ctx.narrative import narrative_scan
from ctx.narrative.narrative_scan import ScannedFile
from ctx.project import project_index_state, trust_list
from ctx.project.project_index_state import FILE, ProjectState

NOT_TRUSTED = (
    " This project has a memory of its own in `.ctx/`, which is not trusted: nothing of it is"
    " here. The user can look at it and allow it with `ctx trust`."
)
BEHIND = " The project's own memory was not up to date when this was made; `ctx compose` shows it."
MISSING = " The project's own memory is not ready yet; `ctx compose` shows it."

_BUSY_S = 0.1


def read(home: str, project: Project) -> Beside:
    """What there is now, without making anything."""
    if not trust_list.is_trusted(home, project):
        return Beside(told="not trusted", notice=NOT_TRUSTED)
    try:
        layout.refuse_links(project)
        now = project_index_state.state(project)
        documents = list(narrative_scan.documents(project.narrative))
    except (CtxError, OSError):
        return Beside(told="unreadable", notice=MISSING, is_current=False)
    if connection := _opened(project_index_state.path_for(project, now), now):
        if project_index_state.holds(connection, project, now) and _has_read(connection, documents):
            return Beside(connection, _told(now, documents))
    else:
        connection = _newest(project, now)
    if connection is None:
        return Beside(told="missing", notice=MISSING, is_current=False)
    return Beside(connection, "behind", BEHIND, is_current=False)


def current(project: Project) -> Beside:
    """What a context depends on that is made of an index which is up to date.

    Whoever makes one asks before they look at the index: what changes in between is newer than
    this says, and nobody takes the context for the one that they want.
    """
    documents = list(narrative_scan.documents(project.narrative))
    return Beside(told=_told(project_index_state.state(project), documents))


def _told(now: ProjectState, documents: Sequence[ScannedFile]) -> str:
    """All of it in a few characters."""
    return f"{crc32(repr((now.as_text, documents)).encode()):08x}"


def _has_read(connection: Connection, documents: Sequence[ScannedFile]) -> bool:
    """Whether an index has every document as it is, as far as a glance tells."""
    rows = connection.execute("SELECT path, mtime_ns, size, inode FROM documents")
    known = {row[0]: row[1:] for row in rows}
    return known.keys() == {each.path for each in documents} and all(
        (each.size, each.inode) == (size, inode) and mtime_ns in (0, each.mtime_ns)
        for each in documents
        for mtime_ns, size, inode in (known[each.path],)
    )


def _newest(project: Project, now: ProjectState) -> Connection | None:
    """The index that was used last, whatever heads it is of."""
    paths = [os.path.join(project.indexes, name, FILE) for name in disk.names(project.indexes)]
    known = [path for path in paths if os.path.exists(path)]
    for path in sorted(known, key=os.path.getmtime, reverse=True):
        if connection := _opened(path, now):
            return connection
    return None


def _opened(path: str, now: ProjectState) -> Connection | None:
    """An index, if nothing was scrubbed since it was made."""
    if not os.path.exists(path):
        return None
    name = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    return project_index_state.if_fit(
        lambda: sqlite3.connect(
            f"file:{name}?mode=ro", uri=True, isolation_level=None, timeout=_BUSY_S
        ),
        lambda index: project_index_state.replaced_in(index) == now.replaced,
    )
