"""Indexes of code under the user store that nobody is led to any more.

A folder without a store has its index there. The folder may be gone since, or have got a store of
its own. What is left is looked for in passing, once a day, and costs a moment.
"""

import os
from contextlib import closing, suppress

from ctx import clock, disk, layout, locks
from ctx.code import index_file
from ctx.errors import CtxError, PathRefused
from ctx.layout import CODE_INDEX, INDEX_KEY, UserStore

_LOOKED = "looked"
_SECONDS = 24 * 60 * 60


def clear(user_store: UserStore) -> None:
    """Remove them, unless somebody has looked today."""
    looked = os.path.join(user_store.code, _LOOKED)
    # It is nobody's wish, and nobody has to hear of it where it cannot be done.
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
    # Once a day at most: nobody else has to pay for loading it.
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
    # While the other one is not there, this may be all that can be made: a checkout may be one
    # in which nothing can be written.
    return now != database and os.path.isfile(now)


def _root_of(database: str) -> str | None:
    """The folder that an index is about; None where it does not say so."""
    connection = index_file.open_for_reading(database)
    if connection is None:
        return None
    with closing(connection):
        root = index_file.noted(connection, index_file.ROOT)
    return os.fsdecode(root) if isinstance(root, bytes) else None
