"""Reading pages without SQLite finds the rows that SQLite wrote."""

import os
import random
import shutil
import sqlite3
import tempfile
from collections import Counter
from contextlib import closing
from sqlite3 import Connection

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctx.sqlite.pages import pages_of
from tests import effort
from tests.sqlite.databases import content, write

VALUE = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from([0, 1, -1, 127, 128, 2**15, 2**23, 2**31, 2**47]),
    st.floats(allow_nan=False),
    st.text(st.characters(blacklist_categories=["Cs"]), max_size=40),
    st.binary(max_size=40),
    # These do not fit on a page, and some do just not or just so.
    st.integers(440, 4200).map(lambda size: "x" * size),
    st.sampled_from([9_000, 70_000]).map(lambda size: b"\xff" * size),
)


def read(path: str) -> tuple[Counter[object], Counter[object]]:
    """The rows of three columns in the table, and those of two in the one without row numbers."""
    with pages_of(path) as pages:
        rows = list(pages.rows())
        assert pages.unreadable == 0
    return (
        Counter(repr(row.values) for row in rows if not row.keyed and len(row.values) == 3),
        Counter(repr(row.values) for row in rows if row.keyed and len(row.values) == 2),
    )


def rows_from_sqlite(connection: Connection) -> tuple[Counter[object], Counter[object]]:
    """The same rows, read by SQLite."""
    return (
        Counter(repr(row) for row in connection.execute("SELECT a, b, c FROM t")),
        Counter(repr(row) for row in connection.execute("SELECT a, b FROM k")),
    )


@settings(max_examples=effort.times(40), deadline=None, derandomize=True)
@given(
    st.lists(st.tuples(VALUE, VALUE, VALUE), max_size=30),
    st.dictionaries(VALUE.filter(lambda value: value is not None), VALUE, max_size=30),
    st.sampled_from([512, 1024, 4096, 65536]),
    st.booleans(),
)
def test_every_row_is_found(
    rows: list[tuple[object, ...]], keyed: dict[object, object], page_size: int, logged: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path, copy = os.path.join(folder, "a.db"), os.path.join(folder, "b.db")
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute(f"PRAGMA page_size = {page_size}")
            connection.execute(f"PRAGMA journal_mode = {'WAL' if logged else 'DELETE'}")
            connection.execute("CREATE TABLE t (a, b, c)")
            connection.execute("CREATE TABLE k (a PRIMARY KEY, b) WITHOUT ROWID")
            connection.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
            connection.executemany("INSERT OR IGNORE INTO k VALUES (?, ?)", keyed.items())
            # Whole pages become free, and what stands on them must not come back.
            connection.execute("DELETE FROM t WHERE rowid % 3 = 0 OR length(b) > 400")
            for suffix in ("", "-wal"):
                if os.path.exists(path + suffix):
                    shutil.copyfile(path + suffix, copy + suffix)
            assert read(copy) == rows_from_sqlite(connection)


@pytest.fixture(scope="module")
def logged() -> tuple[bytes, bytes]:
    """A database with a log of many commits."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a.db")
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("CREATE TABLE t (a, b, c)")
            connection.execute("CREATE TABLE k (a PRIMARY KEY, b) WITHOUT ROWID")
            for number in range(40):
                row = (number, "x" * 500 * (number % 3), None)
                connection.execute("INSERT INTO t VALUES (?, ?, ?)", row)
                connection.execute("INSERT INTO k VALUES (?, ?)", row[:2])
                connection.execute("DELETE FROM t WHERE a = ?", (number - 10,))
            return content(path), content(path + "-wal")


@pytest.fixture(scope="module")
def plain(logged: tuple[bytes, bytes]) -> bytes:
    """The same database without the log."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a.db")
        write(path, logged[0])
        write(f"{path}-wal", logged[1])
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return content(path)


@pytest.mark.slow
def test_a_log_is_read_as_far_as_sqlite_reads_it(
    logged: tuple[bytes, bytes], tmp_path: str
) -> None:
    """A log that is cut off or damaged anywhere gives the same rows as in SQLite."""
    chance = random.Random(5)
    for number in range(30):
        log = bytearray(logged[1])
        place = chance.randrange(len(log))
        if number % 2:
            log[place] ^= 0x5A
        else:
            del log[place:]
        path = os.path.join(tmp_path, f"{number}.db")
        write(path, logged[0])
        write(f"{path}-wal", bytes(log))
        try:
            found = read(path)
        except AssertionError:
            found = (Counter(), Counter())
        with closing(sqlite3.connect(path)) as connection:
            try:
                expected = rows_from_sqlite(connection)
            except sqlite3.OperationalError:
                # The tables themselves are in what was cut off.
                expected = (Counter(), Counter())
        assert found == expected, number


@settings(max_examples=effort.times(60), deadline=None, derandomize=True)
@given(st.randoms(use_true_random=False))
def test_any_damage_only_removes_rows(plain: bytes, chance: random.Random) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a.db")
        data = bytearray(plain)
        for _ in range(chance.randint(1, 8)):
            start = chance.randrange(len(data))
            end = min(len(data), start + chance.choice([1, 2, 100, 4096]))
            data[start:end] = chance.randbytes(end - start)
        write(path, bytes(data[: chance.choice([None, chance.randrange(len(data))])]))
        with pages_of(path) as pages:
            for row in pages.rows():
                assert isinstance(row.values, tuple)
