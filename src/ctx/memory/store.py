"""The database file of the user store: opening it to read or to write."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from sqlite3 import Connection, DatabaseError, IntegrityError

from ctx.errors import DatabaseFailure, DiskFailure
from ctx.memory.migrations import MIGRATIONS
from ctx.sqlite import truth
from ctx.sqlite.connection import closed_on_failure, size_of

APPLICATION_ID = int.from_bytes(b"ctx1", "big")


def open_for_writing(path: str, busy_ms: int = 30_000) -> Connection:
    """Open the store, made or brought up to date as needed.

    A command waits for others that write: half a minute is long enough for sixteen of them, and
    each holds the lock for milliseconds.
    """
    return truth.open_truth(
        path, application_id=APPLICATION_ID, migrations=MIGRATIONS, busy_ms=busy_ms
    )


def open_for_reading(path: str) -> Connection:
    """Open the store without writing to it, unless it must be made or brought up to date.

    Where it is not there and cannot be made, it reads as an empty one.
    """
    if os.path.exists(path) and os.path.getsize(path):
        try:
            return truth.read_truth(path, application_id=APPLICATION_ID, migrations=MIGRATIONS)
        except DatabaseFailure:
            if truth.application_id_of(path) != APPLICATION_ID:
                raise
    try:
        return open_for_writing(path)
    except DiskFailure:
        if os.path.exists(path):
            raise
        return empty()


def is_there(path: str) -> bool:
    """Whether somebody has made a store, also one that waits to take the place of another."""
    return os.path.lexists(path) or os.path.lexists(path + truth.NEXT)


def is_blank(path: str) -> bool:
    """Whether a file holds nothing: it may be somebody else's, such as an `__init__.py`."""
    is_replaced = os.path.lexists(path + truth.NEXT) or size_of(f"{path}-wal")
    return os.path.isfile(path) and not os.path.getsize(path) and not is_replaced


def empty() -> Connection:
    """A store that nobody has made yet, in memory."""
    with closed_on_failure(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        for migrate in MIGRATIONS:
            migrate(connection)
        return connection


@contextmanager
def explain_corruption(path: str) -> Iterator[None]:
    """Where a value makes no sense, ask the file: a damaged one is not a mistake of ours."""
    try:
        yield
    except UnicodeError:
        # Arguments may be any bytes.
        raise
    except (AttributeError, LookupError, TypeError, ValueError, IntegrityError) as error:
        if problems := truth.check_truth(path):
            raise DatabaseError(problems[0].removesuffix(".")) from error
        raise
