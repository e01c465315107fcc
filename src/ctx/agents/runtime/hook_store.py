"""The store as a hook opens it: with the standard library, and without waiting for locks.

`context.hook_queries` has the statements. `ctx hook apply` creates, repairs and migrates stores.
"""

import os
import sqlite3
from contextlib import closing
from sqlite3 import Connection

from ctx.context import hook_queries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctx.agents.runtime.hook import Hook


_BUSY_S = 0.1


def for_reading(hook: "Hook") -> Connection:
    connection = _connect(hook, "ro")
    try:
        connection.execute("SELECT 1 FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as error:
        connection.close()
        if not _lacks_shared_memory(error) or _size(f"{hook.database}-wal"):
            raise
        # The folder is read-only. Without a write-ahead log, the file is complete.
        return _connect(hook, "ro&immutable=1")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def for_writing(hook: "Hook") -> Connection:
    return _connect(hook, "rw")


def take_pending(
    hook: "Hook", connection: Connection, keys: "list[str]", oldest: str, newest: str
) -> "list[tuple[str, str]]":
    """Take the pending results under these keys from this period. No other process gets them."""
    # Reading needs no lock, but taking does.
    if not hook_queries.is_pending(connection, keys, oldest, newest):
        return []
    with closing(for_writing(hook)) as writing:
        return hook_queries.take_pending(writing, keys, oldest, newest)


def _lacks_shared_memory(error: sqlite3.OperationalError) -> bool:
    error_name = error.sqlite_errorname
    return error_name.startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_IOERR_SHM"))


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _connect(hook: "Hook", mode: str) -> Connection:
    name = hook.database.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    return sqlite3.connect(
        f"file:{name}?mode={mode}", uri=True, isolation_level=None, timeout=_BUSY_S
    )
