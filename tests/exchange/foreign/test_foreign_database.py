"""The database of another program is never changed, in whatever state it is."""

import os
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from ctx.errors import CtxError, DatabaseFailure, PathRefused
from ctx.exchange.foreign import foreign_database, go_ctx
from ctx.exchange.foreign.foreign_items import Item
from ctx.memory.model import Draft
from tests.exchange.foreign.databases import FACT, go_store

KILLED = """
import os, sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.execute("PRAGMA journal_mode = " + sys.argv[2])
connection.execute("PRAGMA cache_size = 1")
connection.execute("BEGIN")
connection.execute("UPDATE nodes SET content = 'changed'")
connection.execute("INSERT INTO pending VALUES ('k', hex(zeroblob(200000)), '')")
if sys.argv[2] == "WAL":
    connection.execute("COMMIT")
os._exit(0)
"""


def contents(path: Path) -> set[str]:
    with go_ctx.reading(str(path)) as reading:
        return {item.content for item in reading.items if isinstance(item, Draft)}


def files(folder: Path) -> dict[str, bytes]:
    """Every file of the database except the index of the log, which is not data."""
    return {
        path.name: path.read_bytes() for path in folder.iterdir() if not path.name.endswith("-shm")
    }


def test_a_closed_database_is_not_touched(tmp_path: Path) -> None:
    path = go_store(tmp_path / "db" / "store.db")
    before = {name.name for name in path.parent.iterdir()}, files(path.parent)
    assert len(contents(path)) == 3
    assert ({name.name for name in path.parent.iterdir()}, files(path.parent)) == before


def test_a_database_that_is_in_use_can_be_read(tmp_path: Path) -> None:
    path = go_store(tmp_path / "db" / "store.db")
    with closing(sqlite3.connect(path)) as theirs:
        theirs.execute("UPDATE nodes SET content = 'in the log' WHERE id = ?", (FACT,))
        theirs.commit()
        before = files(path.parent)
        assert "store.db-wal" in before
        with go_ctx.reading(str(path)) as reading:
            items: list[Item] = [next(reading.items)]
            # What is written while it is read does not show, and is not held up.
            theirs.execute("DELETE FROM nodes")
            theirs.commit()
            items += reading.items
        assert {item.content for item in items if isinstance(item, Draft)} == {
            "in the log",
            "We use SQLite",
            "We use files",
        }
        assert files(path.parent)["store.db"] == before["store.db"]


@pytest.mark.parametrize(("journal", "seen"), [("WAL", 1), ("DELETE", 3)])
def test_the_log_of_a_killed_program_is_read(tmp_path: Path, journal: str, seen: int) -> None:
    path = go_store(tmp_path / "db" / "store.db")
    subprocess.run([sys.executable, "-c", KILLED, str(path), journal], check=True)
    left = files(path.parent)
    assert len(left) == 2
    # What was committed to the log counts, and what was not finished does not.
    assert len(contents(path)) == seen
    assert files(path.parent) == left
    if journal == "WAL":
        (path.parent / "store.db-shm").unlink(missing_ok=True)
        assert contents(path) == {"changed"}


def test_a_read_only_folder_can_be_read() -> None:
    # Others may not enter pytest's own folders.
    with tempfile.TemporaryDirectory() as space:
        os.chmod(space, 0o755)
        path = go_store(Path(space) / "db" / "store.db")
        subprocess.run([sys.executable, "-c", KILLED, str(path), "WAL"], check=True)
        (path.parent / "store.db-shm").unlink()
        for file in path.parent.iterdir():
            file.chmod(0o644)
        path.parent.chmod(0o555)
        child = os.fork()
        if not child:
            code = 1
            try:
                if os.getuid() == 0:  # To whom nothing is read-only.
                    os.setgid(65534)
                    os.setuid(65534)
                code = 0 if contents(path) == {"changed"} else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        path.parent.chmod(0o755)


def test_damage_is_reported(tmp_path: Path) -> None:
    path = go_store(tmp_path / "store.db")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE nodes SET content = hex(zeroblob(100000))")
    data = bytearray(path.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 8192] = b"\xff" * 8192
    path.write_bytes(data)
    with pytest.raises(DatabaseFailure, match="cannot be read to its end"):
        contents(path)


@pytest.mark.parametrize("size", [0, 10, 100, 4096])
def test_a_truncated_database_is_refused(tmp_path: Path, size: int) -> None:
    path = go_store(tmp_path / "store.db")
    os.truncate(path, size)
    with pytest.raises(CtxError):
        contents(path)


def test_only_plain_files_are_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name, message in (("pipe", "not a plain file"), ("nothing", "does not exist")):
        with (
            pytest.raises(PathRefused, match=message),
            foreign_database.open_snapshot(str(tmp_path / name)),
        ):
            pass
    (tmp_path / "link.db").symlink_to(go_store(tmp_path / "store.db"))
    assert len(contents(tmp_path / "link.db")) == 3


def test_text_that_is_not_utf_8_is_read(tmp_path: Path) -> None:
    path = go_store(tmp_path / "store.db")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE nodes SET content = CAST(x'61ff62' AS TEXT)")
        connection.commit()
    assert contents(path) == {"a\udcffb"}


def test_a_view_in_place_of_a_table_is_refused(tmp_path: Path) -> None:
    """A view could be a query that never ends."""
    path = go_store(tmp_path / "store.db")
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "DROP TABLE nodes; CREATE VIEW nodes AS WITH RECURSIVE n(id) AS"
            " (SELECT 1 UNION ALL SELECT id FROM n)"
            " SELECT id, 'fact' AS type, 'x' AS content, '' AS created_at FROM n"
        )
    with pytest.raises(DatabaseFailure, match="not a store of the Go program"):
        contents(path)
