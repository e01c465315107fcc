"""Runs `sqlite3 FILE .recover`, which finds rows that SQL cannot reach any more.

The program prints SQL, made from bytes that anybody may have written. A statement is executed only
if it inserts plain values into a known table, and only in a scratch database.

Some builds have no working `.recover`, for example that of Debian 12.
"""

import os
import re
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from sqlite3 import Connection

from ctx import clock
from ctx.sqlite.connection import size_of

LOST = "lost_and_found"
"""The table of rows whose own table is unknown: four columns about the row, then `c0`, `c1`, …"""

TIME_LIMIT_S = 120.0
SIZE_LIMIT = 64 << 20
"""How much output is read, beside ten bytes for each byte of the file."""

# Each row is one line: line breaks are written as `replace('a\012b', '\012', char(10))`.
_INSERT = re.compile(rb"INSERT (OR IGNORE )?INTO ")
_FUNCTIONS = ("replace", "char", "unistr")
_LOST_TABLE = re.compile(
    rb"CREATE TABLE lost_and_found\(rootpgno INTEGER, pgno INTEGER, nfield INTEGER, id INTEGER"
    rb"((?:, c\d+)*)\);\s*"
)


def insert_recovered(copy: str, target: Connection, tables: Collection[str]) -> str:
    """Insert the rows that the program finds in a copy of a database; returns its problem.

    The program may change the copy. The rows have to be validated.
    """
    program = shutil.which("sqlite3")
    # A program in a relative folder of the PATH is untrusted.
    if program is None or not os.path.isabs(program):
        return "sqlite3 is not installed"
    deadline = clock.monotonic() + TIME_LIMIT_S
    left = SIZE_LIMIT + 10 * size_of(copy)
    target.set_progress_handler(lambda: clock.monotonic() > deadline, 100_000)
    target.set_authorizer(_allow_inserts({*tables, LOST}))
    try:
        with _running(program, copy) as process:
            assert process.stdout is not None
            while line := process.stdout.readline(left):
                left -= len(line)
                if left <= 0:
                    return "sqlite3 printed too much"
                if match := _LOST_TABLE.fullmatch(line):
                    target.set_authorizer(None)
                    columns = f"rootpgno, pgno, nfield, id{match[1].decode()}"
                    target.execute(f"CREATE TABLE IF NOT EXISTS {LOST} ({columns})")
                    target.set_authorizer(_allow_inserts({*tables, LOST}))
                elif _INSERT.match(line):
                    # Not every line is a valid row.
                    with suppress(sqlite3.Error, sqlite3.Warning, ValueError):
                        target.execute(line.decode())
            if clock.monotonic() >= deadline:
                return f"sqlite3 was stopped after {TIME_LIMIT_S:.0f} s"
            return "this sqlite3 has no working .recover" if process.wait() else ""
    finally:
        target.set_authorizer(None)
        target.set_progress_handler(None, 0)


def _allow_inserts(tables: Collection[str]) -> Callable[..., int]:
    """Allows statements that insert values into these tables, and do nothing else."""

    def allow(action: int, name: str | None, function: str | None, *_: str | None) -> int:
        allowed = (action == sqlite3.SQLITE_INSERT and name in tables) or (
            action == sqlite3.SQLITE_FUNCTION and function in _FUNCTIONS
        )
        return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY

    return allow


@contextmanager
def _running(program: str, copy: str) -> Iterator["subprocess.Popen[bytes]"]:
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            # Free pages contain rows that were deleted.
            [program, "-init", os.devnull, "-safe", copy, ".recover --ignore-freelist"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env={"PATH": os.defpath, "HOME": folder, "LC_ALL": "C"},
            start_new_session=True,
        )

        def end() -> None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

        alarm = threading.Timer(TIME_LIMIT_S, end)
        alarm.start()
        try:
            with process:
                try:
                    yield process
                finally:
                    # Until the process is waited for, its id cannot be reused.
                    if process.returncode is None:
                        end()
        finally:
            alarm.cancel()
