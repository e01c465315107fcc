"""Opens the database file of the user store for reading or writing."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from sqlite3 import Connection, DatabaseError, IntegrityError

from ctx.errors import DatabaseFailure, DiskFailure
from ctx.memory.migrations import MIGRATIONS
from ctx.sqlite import truth
from ctx.sqlite.connection import closed_on_failure, explain_errors, size_of

APPLICATION_ID = int.from_bytes(b"ctx1", "big")


def open_for_writing(path: str, busy_ms: int = 30_000) -> Connection:
    """Open the store; create or migrate it if needed.

    A command waits for other writers. Half a minute is enough for sixteen of them, because each
    holds the lock for milliseconds.
    """
    return truth.open_truth(
        path, application_id=APPLICATION_ID, migrations=MIGRATIONS, busy_ms=busy_ms
    )


@contextmanager
def writing(path: str, busy_ms: int = 30_000) -> Iterator[Connection]:
    """The store, opened for writing and closed again, with errors that name it."""
    with explain_errors(path), closing(open_for_writing(path, busy_ms)) as connection:
        yield connection


@contextmanager
def reading(path: str) -> Iterator[Connection]:
    with explain_errors(path), closing(open_for_reading(path)) as connection:
        yield connection


def open_for_reading(path: str) -> Connection:
    """Open the store without writing to it, unless it must be created or migrated.

    If it does not exist and cannot be created, an empty one in memory is returned.
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
        return empty_store()


def store_exists(path: str) -> bool:
    """Whether a store exists, or a replacement that waits to take its place."""
    return os.path.lexists(path) or os.path.lexists(path + truth.NEXT)


def is_blank(path: str) -> bool:
    """Whether a file is empty: it may belong to another program, such as an `__init__.py`."""
    is_replaced = os.path.lexists(path + truth.NEXT) or size_of(f"{path}-wal")
    return os.path.isfile(path) and not os.path.getsize(path) and not is_replaced


def empty_store() -> Connection:
    """An empty store in memory."""
    with closed_on_failure(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        for migrate in MIGRATIONS:
            migrate(connection)
        return connection


@contextmanager
def explain_corruption(path: str) -> Iterator[None]:
    """On an unexpected value, check the file: if it is damaged, report that instead of a bug."""
    try:
        yield
    except UnicodeError:
        # It comes from the arguments, which may be any bytes.
        raise
    except (AttributeError, LookupError, TypeError, ValueError, IntegrityError) as error:
        if problems := truth.check_truth(path):
            raise DatabaseError(problems[0].removesuffix(".")) from error
        raise
