"""Transactions are atomic, and errors of SQLite are explained."""

import os
import sqlite3
import tempfile
from contextlib import closing
from sqlite3 import Connection

import pytest

from ctx.errors import DatabaseFailure, DiskFailure, IndexCorrupt
from ctx.sqlite import derived
from ctx.sqlite.connection import execute_script, explain_errors, transaction
from tests.sqlite.databases import OPEN, finish, open_derived, open_truth, rows, start, write


def test_many_writers_wait_for_each_other(path: str) -> None:
    program = (
        OPEN
        + """
for _ in range(25):
    with transaction(connection):
        connection.execute("INSERT INTO nodes (text) VALUES (?)", (os.getpid(),))
"""
    )
    for process in [start(program, path) for _ in range(6)]:
        finish(process)
    with closing(open_truth(path)) as connection:
        assert rows(connection, "SELECT count(*) FROM nodes") == [(150,)]


def test_a_writer_that_waits_too_long_names_the_reason(path: str) -> None:
    with closing(open_truth(path)) as first, closing(open_truth(path, busy_ms=20)) as second:
        with (
            transaction(first),
            pytest.raises(DatabaseFailure, match="Another process is writing"),
            explain_errors(path),
            transaction(second),
        ):
            pytest.fail("two writers at once")
        assert rows(second, "SELECT count(*) FROM nodes") == [(0,)]


def test_a_full_disk_is_a_disk_failure_and_changes_nothing(path: str) -> None:
    with closing(open_truth(path)) as connection:
        connection.execute("PRAGMA max_page_count = 20")
        with (
            pytest.raises(DiskFailure, match="disk is full"),
            explain_errors(path),
            transaction(connection),
        ):
            connection.executemany(
                "INSERT INTO nodes (text) VALUES (?)", [("x",), ("x" * 200_000,)]
            )
        assert not connection.in_transaction
        assert rows(connection, "SELECT count(*) FROM nodes") == [(0,)]


@pytest.mark.parametrize(
    ("file_mode", "folder_mode", "reason"),
    [
        (0o000, 0o755, "this user may not read it"),
        (0o444, 0o755, "it is read-only for this user"),
        (0o666, 0o555, "its folder is read-only for this user"),
    ],
)
def test_an_error_names_the_missing_permission(
    file_mode: int, folder_mode: int, reason: str
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "store.db")
        open_truth(path).close()
        os.chmod(path, file_mode)
        os.chmod(folder, folder_mode)
        program = """
if os.geteuid() == 0:
    os.setuid(65534)
try:
    migrations = (m001_nodes, m002_summary, m003_runs)
    truth.open_truth(sys.argv[1], application_id=ID, migrations=migrations)
    connection = sqlite3.connect(sys.argv[1])
    with explain_errors(sys.argv[1]), transaction(connection):
        connection.execute("DELETE FROM nodes")
except CtxError as error:
    print(error, error.hint, sep="\\n")
"""
        told = finish(start("import sqlite3\n" + program, path))
        assert told == (
            f"E014: {path} cannot be used: {reason}.\n"
            f"`ls -ld {folder} {path}` shows who may write there."
        )
        os.chmod(folder, 0o700)


def test_a_file_that_is_not_a_database_gets_a_hint_about_recovery(path: str) -> None:
    os.makedirs(os.path.dirname(path))
    write(path, b"not a database" * 99)
    with pytest.raises(DatabaseFailure) as raised:
        open_truth(path)
    assert raised.value.message == f"{path} is not a database, or its beginning is damaged."
    assert raised.value.hint == (
        "If it was a store, `ctx store recover` may help; if not, check the path."
    )
    with (
        closing(sqlite3.connect(path)) as connection,
        pytest.raises(IndexCorrupt) as corrupt,
        explain_errors(path, IndexCorrupt),
    ):
        connection.execute("SELECT 1 FROM sqlite_master")
    assert corrupt.value.hint == IndexCorrupt.default_hint


def write_and_raise(connection: Connection, reason: type[BaseException]) -> None:
    connection.execute("INSERT INTO nodes (text) VALUES ('x')")
    raise reason


@pytest.mark.parametrize("reason", [KeyboardInterrupt, GeneratorExit, ValueError])
def test_an_interrupted_transaction_leaves_nothing(path: str, reason: type[BaseException]) -> None:
    with closing(open_truth(path)) as connection:
        with pytest.raises(reason), transaction(connection):
            write_and_raise(connection, reason)
        assert not connection.in_transaction
        assert rows(connection, "SELECT count(*) FROM nodes") == [(0,)]


def test_transactions_do_not_nest(path: str) -> None:
    with closing(open_truth(path)) as connection:
        with transaction(connection):
            connection.execute("INSERT INTO nodes (text) VALUES ('x')")
            with pytest.raises(RuntimeError), transaction(connection):
                pytest.fail("nested")
        assert rows(connection, "SELECT text FROM nodes") == [("x",)]


def test_a_script_keeps_triggers_strings_and_the_transaction_whole(path: str) -> None:
    with closing(open_truth(path)) as connection:
        with transaction(connection):
            execute_script(
                connection,
                """
                CREATE TRIGGER t AFTER INSERT ON nodes BEGIN
                    INSERT INTO runs VALUES (1); INSERT INTO runs VALUES (2);
                END;
                INSERT INTO nodes (text) VALUES ('a;b'); -- done;
                """,
            )
            assert connection.in_transaction
        assert rows(connection, "SELECT text FROM nodes") == [("a;b",)]
        assert rows(connection, "SELECT count(*) FROM runs") == [(3,)]
        with pytest.raises(sqlite3.OperationalError, match="unrecognized token"):
            execute_script(connection, "SELECT 'never ends;")


def test_file_names_can_contain_any_character(tmp_path: os.PathLike[str]) -> None:
    for name in ("a b?mode=ro#x%41", "ключ", os.fsdecode(b"\xff\xfe")):
        folder = os.path.join(tmp_path, name)
        open_truth(os.path.join(folder, "store.db")).close()
        open_derived(os.path.join(folder, "index.db")).close()
        assert sorted(os.listdir(folder)) == ["index.db", "store.db"]
        derived.check_derived(os.path.join(folder, "none.db"))[0].encode()
