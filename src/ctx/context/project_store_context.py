"""What an agent gets from the store of the project it works in.

A project that is not trusted contributes only a notice that it exists. A trusted one contributes
its index, if that is up to date.

Hooks load this module.
"""

import os
import sqlite3
from collections.abc import Sequence
from sqlite3 import Connection
from zlib import crc32

from ctx import disk, layout
from ctx.context.contexts import ProjectStoreState
from ctx.errors import CtxError
from ctx.layout import Project
from ctx.narrative import narrative_scan
from ctx.narrative.narrative_scan import ScannedFile
from ctx.project import project_index_state, trust_list
from ctx.project.project_index_state import FILE, ProjectState

NOT_TRUSTED = (
    " This project has its own memory in `.ctx/`, which is not trusted and not included. The"
    " user can review and trust it with `ctx trust`."
)
BEHIND = " The project's own memory was not up to date when this was made; `ctx compose` shows it."
MISSING = " The project's own memory is not ready yet; `ctx compose` shows it."

_BUSY_S = 0.1


def read(home: str, project: Project) -> ProjectStoreState:
    """The current state of the project's store. Nothing is built."""
    if not trust_list.is_trusted(home, project):
        return ProjectStoreState(version="not trusted", notice=NOT_TRUSTED)
    try:
        layout.refuse_links(project)
        now = project_index_state.state(project)
        documents = list(narrative_scan.documents(project.narrative))
    except (CtxError, OSError):
        return ProjectStoreState(version="unreadable", notice=MISSING, is_current=False)
    if connection := _open_index(project_index_state.path_for(project, now), now):
        if project_index_state.holds(connection, project, now) and _has_read(connection, documents):
            withheld = _withheld_notice(project_index_state.withheld_by(connection).items)
            return ProjectStoreState(connection, _version(now, documents), withheld)
    else:
        connection = _newest(project, now)
    if connection is None:
        return ProjectStoreState(version="missing", notice=MISSING, is_current=False)
    return ProjectStoreState(connection, "behind", BEHIND, is_current=False)


def _withheld_notice(count: int) -> str:
    if not count:
        return ""
    items = "1 item from this branch is" if count == 1 else f"{count:,} items from this branch are"
    return f" {items} not given to agents: `ctx review`."


def current(project: Project) -> ProjectStoreState:
    """The version that a context of an up-to-date index depends on.

    Read it before the index: if something changes in between, the context has an older version
    than the store, and is not used.
    """
    documents = list(narrative_scan.documents(project.narrative))
    return ProjectStoreState(version=_version(project_index_state.state(project), documents))


def _version(now: ProjectState, documents: Sequence[ScannedFile]) -> str:
    """A short checksum of the state and the documents."""
    return f"{crc32(repr((now.as_text, documents)).encode()):08x}"


def _has_read(connection: Connection, documents: Sequence[ScannedFile]) -> bool:
    """Whether an index has every document in its current state, by size, inode and time."""
    known = project_index_state.documents_of(connection)
    return known.keys() == {each.path for each in documents} and all(
        (each.size, each.inode) == (size, inode) and mtime_ns in (0, each.mtime_ns)
        for each in documents
        for mtime_ns, size, inode in (known[each.path],)
    )


def _newest(project: Project, now: ProjectState) -> Connection | None:
    """The most recently used index, of any heads."""
    paths = [os.path.join(project.indexes, name, FILE) for name in disk.names(project.indexes)]
    known = [path for path in paths if os.path.exists(path)]
    for path in sorted(known, key=os.path.getmtime, reverse=True):
        if connection := _open_index(path, now):
            return connection
    return None


def _open_index(path: str, now: ProjectState) -> Connection | None:
    """An index, unless something was scrubbed since it was built."""
    if not os.path.exists(path):
        return None
    name = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    return project_index_state.if_fit(
        lambda: sqlite3.connect(
            f"file:{name}?mode=ro", uri=True, isolation_level=None, timeout=_BUSY_S
        ),
        lambda index: project_index_state.scrubbed_digest_of(index) == now.replaced,
    )
