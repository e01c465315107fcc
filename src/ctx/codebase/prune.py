"""Remove orphaned code indexes from the user store.

A folder without a project store has its index there. The folder may have been deleted since, or may
have its own store now. Orphans are looked for once a day, during a refresh.
"""

import os
from contextlib import closing, suppress

from ctx import clock, disk, layout, locks
from ctx.code import index_file
from ctx.errors import CtxError, PathRefused
from ctx.layout import CODE_INDEX, INDEX_KEY, UserStore

_LAST_CHECKED = "looked"
_SECONDS = 24 * 60 * 60


def prune_indexes(user_store: UserStore) -> None:
    """Remove orphaned indexes, at most once a day."""
    looked = os.path.join(user_store.code, _LAST_CHECKED)
    # Nobody asked for this, so a failure is not reported.
    with suppress(OSError, CtxError):
        if not os.path.isdir(user_store.code) or _is_young(looked):
            return
        disk.replace(looked, b"")
        for name in disk.names(user_store.code):
            if len(name) == INDEX_KEY:
                _clear(user_store, os.path.join(user_store.code, name))


def _is_young(path: str) -> bool:
    try:
        return abs(clock.wall_s() - os.stat(path).st_mtime) < _SECONDS
    except FileNotFoundError:
        return False


def _clear(user_store: UserStore, folder: str) -> None:
    database = os.path.join(folder, CODE_INDEX)
    root = _root_of(database)
    if root is None or not _is_left_behind(user_store, root, database):
        return
    # Needed at most once a day: other commands do not pay for the import.
    import shutil

    with suppress(OSError, CtxError), locks.hold(f"{database}.lock", "ctx code index", 0):
        shutil.rmtree(folder)


def _is_left_behind(user_store: UserStore, root: str, database: str) -> bool:
    if not os.path.isdir(root):
        return True
    try:
        now = layout.code_at(root, user_store).database
    except PathRefused:
        return False
    # If the other index does not exist, this one may be the only possible one: the checkout may be
    # read-only.
    return now != database and os.path.isfile(now)


def _root_of(database: str) -> str | None:
    """The folder that an index covers; None if it is not recorded."""
    connection = index_file.open_for_reading(database)
    if connection is None:
        return None
    with closing(connection):
        root = index_file.read_note(connection, index_file.ROOT)
    return os.fsdecode(root) if isinstance(root, bytes) else None
