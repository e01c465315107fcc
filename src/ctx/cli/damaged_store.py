"""Offers to recover the user store when a command finds it damaged.

SQLite reports the damage, and its integrity check has to confirm it. A full disk or a busy file is
no damage. The question is asked only where a person can answer it.
"""

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from ctx import layout
from ctx.errors import CtxError, DatabaseFailure
from ctx.sqlite import truth
from ctx.sqlite.connection import DAMAGE, error_code, integrity_problems

if TYPE_CHECKING:
    from ctx.cli.output import Output
    from ctx.cli.settings import Settings

# These commands examine or replace the store themselves, or run without a person.
_WITHOUT = frozenset({"store", "restore", "doctor", "hook", "worker"})


def offer(error: CtxError, command: str, settings: "Settings", output: "Output") -> int | None:
    """Report the damage and recover the store if the user agrees: the exit code.

    None if this is not about a damaged store, or if nobody can be asked.
    """
    path = settings.graph_database or settings.user_store.database
    if layout.is_server(path):
        return None
    if command in _WITHOUT or not (output.is_interactive and output.has_reader):
        return None
    if not _reports_damage(error) or not _is_damaged(path):
        return None
    from ctx.cli.store import recover

    output.error(error)
    recover(path, output, asks=True)
    output.note("Run the command again.")
    return error.exit_code


def _reports_damage(error: CtxError) -> bool:
    cause = error.__cause__
    return (
        isinstance(error, DatabaseFailure)
        and isinstance(cause, sqlite3.DatabaseError)
        and error_code(cause) in DAMAGE
    )


def _is_damaged(path: str) -> bool:
    """Whether the integrity check confirms the damage."""
    try:
        with closing(truth.connect_for_reading(path)) as connection:
            return bool(integrity_problems(connection))
    except sqlite3.DatabaseError as error:
        return error_code(error) in DAMAGE
    except (CtxError, OSError, UnicodeDecodeError):
        return False
