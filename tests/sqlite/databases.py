"""Helpers that open databases, old and new, in this and in other processes."""

import os
import stat
import subprocess
import sys
from contextlib import closing
from sqlite3 import Connection

from ctx.sqlite import derived, truth
from ctx.sqlite.connection import Change

ID = 0x43545854

IMPORTS = """
import os, sys
from ctx.errors import CtxError
from ctx.sqlite import derived, truth
from ctx.sqlite.connection import explain_errors, transaction
"""
# Processes that a test starts get the same migrations, without importing this module.
MIGRATIONS_TEXT = """
def m001_nodes(connection):
    connection.execute("CREATE TABLE nodes (id INTEGER PRIMARY KEY, text TEXT)")
    connection.execute("CREATE TABLE tags (node INTEGER REFERENCES nodes ON DELETE CASCADE)")

def m002_summary(connection):
    connection.execute("ALTER TABLE nodes ADD COLUMN summary TEXT")

def m003_runs(connection):
    connection.execute("CREATE TABLE runs (pid INTEGER)")
    connection.execute("INSERT INTO runs SELECT max(id) FROM nodes")

def build(connection):
    connection.execute("CREATE TABLE words (word TEXT)")
    connection.executemany("INSERT INTO words VALUES (?)", [(f"word {i}",) for i in range(99)])
"""
_made: dict[str, Change] = {}
exec(MIGRATIONS_TEXT, _made)
M1, M2, M3, BUILD = (_made[name] for name in ("m001_nodes", "m002_summary", "m003_runs", "build"))


def open_truth(path: str, *migrations: Change, busy_ms: int = 5000) -> Connection:
    return truth.open_truth(
        path, application_id=ID, migrations=migrations or (M1, M2, M3), busy_ms=busy_ms
    )


def open_derived(path: str, version: int = 1, build: Change = BUILD) -> Connection:
    return derived.open_derived(path, application_id=ID, version=version, build=build)


def make_old(path: str, *migrations: Change) -> None:
    with closing(open_truth(path, *(migrations or (M1,)))) as connection:
        connection.execute("INSERT INTO nodes (id, text) VALUES (7, 'kept')")


def start(program: str, *arguments: str) -> "subprocess.Popen[str]":
    program = f"{IMPORTS}\nID = {ID}\n{MIGRATIONS_TEXT}\n{program}"
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def finish(process: "subprocess.Popen[str]") -> str:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out.strip()


OPEN = """
connection = truth.open_truth(
    sys.argv[1], application_id=ID, migrations=(m001_nodes, m002_summary, m003_runs))
print(connection.execute("SELECT count(*) FROM runs").fetchone()[0])
"""


def rows(connection: Connection, query: str) -> list[tuple[object, ...]]:
    return connection.execute(query).fetchall()


def versions(connection: Connection) -> list[object]:
    return [row[0] for row in rows(connection, "SELECT version FROM schema_version")]


def mode(path: str) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


def content(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def write(path: str, data: bytes) -> None:
    with open(path, "wb") as file:
        file.write(data)


def beside(path: str) -> list[str]:
    return sorted(os.listdir(os.path.dirname(path)))
