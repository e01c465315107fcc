"""A user with short prompts who rents berths in a harbour; in Python."""

from tests.e2e.claude_code.stories.story import (
    ExpectedLine,
    Story,
    Turn,
    bash,
    edit,
    read,
    write,
)

PROJECT = '[project]\nname = "berth"\nversion = "1.0"\n'
STORE = '''"""The file with all bookings."""

import os
import sqlite3

PATH = os.environ["BERTH_DB"]
SCHEMA = "CREATE TABLE IF NOT EXISTS bookings (id INTEGER PRIMARY KEY, berth TEXT, night INTEGER)"


def connect():
    connection = sqlite3.connect(PATH, 1, isolation_level=None)
    connection.execute(SCHEMA)
    return connection
'''
BOOKING = '''"""Bookings of a berth for one night each."""


def is_free(connection, berth, night):
    sql = "SELECT 1 FROM bookings WHERE berth = ? AND night = ?"
    return connection.execute(sql, (berth, night)).fetchone() is None


def book(connection, berth, night):
    if not is_free(connection, berth, night):
        raise ValueError("taken")
    sql = "INSERT INTO bookings (berth, night) VALUES (?, ?)"
    return connection.execute(sql, (berth, night)).lastrowid
'''
BOOKING_TEST = """import pytest

from berth import booking, store


@pytest.fixture
def connection():
    return store.connect()


def test_a_berth_is_taken_once(connection):
    booking.book(connection, "A1", 5)
    with pytest.raises(ValueError):
        booking.book(connection, "A1", 5)
"""
CANCEL = '''

def cancel(connection, booking_id):
    """The row stays: invoices refer to it."""
    connection.execute("UPDATE bookings SET berth = NULL WHERE id = ?", (booking_id,))
'''
TWO_AT_ONCE = """from pathlib import Path


def test_two_at_once_get_one_berth():
    assert "BEGIN IMMEDIATE" in Path("berth/booking.py").read_text(), "A1 was booked twice"
"""
EXCLUSIVE = '    connection.execute("PRAGMA locking_mode = EXCLUSIVE")\n    return connection\n'
BEGIN = """    connection.execute("BEGIN IMMEDIATE")
    try:
        if not is_free(connection, berth, night):
            raise ValueError("taken")
        sql = "INSERT INTO bookings (berth, night) VALUES (?, ?)"
        return connection.execute(sql, (berth, night)).lastrowid
    finally:
        connection.execute("COMMIT")
"""
INSERTED = "    return connection.execute(sql, (berth, night)).lastrowid\n"
UNGUARDED = """    if not is_free(connection, berth, night):
        raise ValueError("taken")
    sql = "INSERT INTO bookings (berth, night) VALUES (?, ?)"
    return connection.execute(sql, (berth, night)).lastrowid
"""
EXPORT = '''"""Bookings as CSV, for the kiosk."""

import csv


def export(connection, file):
    rows = connection.execute("SELECT id, berth, night FROM bookings ORDER BY id")
    writer = csv.writer(file)
    writer.writerow(["id", "berth", "night"])
    writer.writerows(rows)
'''
TEST = "BERTH_DB=:memory: python3 -m pytest -q"

SESSIONS = (
    (
        Turn(
            "Add cancel(booking_id). Rules: never edit anything in migrations/, money is integer"
            " cents, no new dependencies. I commit, you don't.",
            (
                bash("python3 -m pytest -q"),
                bash(TEST, "The store reads BERTH_DB when it is imported."),
                read("berth/booking.py"),
                edit("berth/booking.py", INSERTED, INSERTED + CANCEL),
                bash(TEST),
                (
                    "`cancel` is in berth/booking.py. It keeps the row and only clears the berth,"
                    " because invoices refer to bookings by id. Nothing is committed."
                ),
            ),
        ),
    ),
    (
        Turn(
            "The free-berths page is slow with three seasons of data.",
            (
                read("berth/booking.py", "berth/store.py"),
                (
                    "Plan:\n1. Cache free berths per night in Redis.\n2. Clear the key in `book`"
                    " and `cancel`.\n3. Warm the cache at night.\nShall I start?"
                ),
            ),
        ),
        Turn(
            "No Redis, the harbour has one box and one SQLite file. Index it.",
            (
                edit(
                    "berth/store.py",
                    "    connection.execute(SCHEMA)\n",
                    "    connection.execute(SCHEMA)\n"
                    '    connection.execute("CREATE INDEX IF NOT EXISTS nights ON bookings (berth,'
                    ' night)")\n',
                ),
                bash(TEST),
                (
                    "berth/store.py creates the index `nights` on (berth, night), and `is_free`"
                    " uses it. The tests pass."
                ),
            ),
        ),
    ),
    (
        Turn(
            "Last Saturday A1 was booked twice in the same second. Find out why.",
            (
                bash(f"{TEST} tests/test_at_once.py"),
                edit(
                    "berth/store.py",
                    "    return connection\n",
                    EXCLUSIVE,
                    "I try exclusive locking first.",
                ),
                bash(f"{TEST} tests/test_at_once.py"),
                edit("berth/store.py", EXCLUSIVE, "    return connection\n"),
                edit("berth/booking.py", UNGUARDED, BEGIN),
                bash(f"{TEST} tests/test_at_once.py"),
                bash(TEST),
                (
                    "A1 was booked twice because `book` checked whether the berth is free outside"
                    " of a transaction. It now takes the write lock with BEGIN IMMEDIATE before the"
                    " check.\n\nPRAGMA locking_mode = EXCLUSIVE was a dead end: the second process"
                    " only gets `database is locked`, and the kiosk and the web page share the"
                    " file."
                ),
            ),
        ),
    ),
    (
        Turn(
            "How would refunds work?",
            (
                read("berth/booking.py"),
                (
                    "Two ways: money back to the card, or a credit for the next stay. Which one do"
                    " you want?"
                ),
            ),
        ),
        Turn(
            "Don't know yet. The harbour master decides that on Thursday, leave it open.",
            (
                (
                    "I changed nothing. Open: whether a refund goes back to the card or becomes a"
                    " credit; the harbour master decides on Thursday."
                ),
            ),
        ),
    ),
    (
        Turn(
            "CSV export for the kiosk, header line first.",
            (
                write("berth/export.py", EXPORT),
                bash(TEST),
                (
                    "The export begins with the header `id,berth,night`. The tests pass.\n\n"
                    "Next: the kiosk has to skip that line when it imports the file."
                ),
            ),
        ),
    ),
)

HARBOUR = Story(
    {
        "pyproject.toml": PROJECT,
        "berth/__init__.py": "",
        "berth/store.py": STORE,
        "berth/booking.py": BOOKING,
        "tests/test_booking.py": BOOKING_TEST,
        "migrations/0001.sql": "CREATE TABLE bookings (id, berth, night);\n",
    },
    SESSIONS,
    "Write refund(booking_id) for cancelled stays.",
    (
        ExpectedLine("The user commits, the agent does not.", ("I commit, you don",)),
        ExpectedLine("Nothing in migrations/ is edited.", ("never", "migrations/")),
        ExpectedLine("Money is integer cents.", ("integer cents",)),
        ExpectedLine("No new dependencies.", ("no new dependencies",)),
        ExpectedLine(
            "No Redis: there is one machine with one SQLite file.", ("no redis", "sqlite")
        ),
        ExpectedLine("`book` takes the write lock before it checks.", ("BEGIN IMMEDIATE",)),
        ExpectedLine("Exclusive locking was a dead end.", ("exclusive", "dead end|locked")),
        ExpectedLine("The tests need BERTH_DB.", ("BERTH_DB=:memory: python3 -m pytest",)),
        ExpectedLine(
            "Refund to the card or as a credit? The harbour master decides.",
            ("card", "credit", "decide"),
        ),
        ExpectedLine(
            "A cancelled booking keeps its row, for invoices.", ("keeps the row", "invoices")
        ),
        ExpectedLine("The export has a header.", ("export", "header")),
        ExpectedLine("Next: the kiosk skips the header.", ("kiosk", "skip")),
    ),
    {
        "Free berths are cached in Redis.": r"cache .*redis|redis.*(?:key|cache is)|warm the cache",
        "Exclusive locking solves it.": r"\A(?!.*(?:dead end|locked)).*exclusive",
        "The tests are flaky.": r"flaky",
        "Tests still fail.": r"still fail|test_two_at_once.*(?:fails|failing)",
        "It is decided how refunds work.": r"refunds? (?:goes|go) (?:back )?to the card[.;]",
    },
)
