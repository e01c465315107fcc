"""The store as a hook opens it: by the standard library alone, and without waiting for anybody.

A store that must be made, mended or brought up to date is left to `ctx hook apply`.
"""

import os
import sqlite3
from sqlite3 import Connection

from ctx.agents.claude_code.hook import Hook

_BUSY_S = 0.1


def for_reading(hook: Hook) -> Connection:
    return _connect(hook, "ro")


def for_writing(hook: Hook) -> Connection:
    return _connect(hook, "rw")


def path_of(environment: "dict[str, str]", home: str) -> str:
    """Where the store is: what `CTX_DB` says, else in its home."""
    chosen = environment.get("CTX_DB", "")
    if not chosen or "://" in chosen:
        return f"{home}/store.db"
    return os.path.abspath(os.path.expanduser(chosen))


def _connect(hook: Hook, mode: str) -> Connection:
    path = path_of(hook.environment, hook.home)
    name = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    return sqlite3.connect(
        f"file:{name}?mode={mode}", uri=True, isolation_level=None, timeout=_BUSY_S
    )
