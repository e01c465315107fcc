"""Databases of truth survive crashes, damage and failed migrations."""

import os
import shutil
import signal
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from sqlite3 import Connection

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctx import clock
from ctx.errors import CtxError, DatabaseFailure, DiskFailure, NewerFormat
from ctx.sqlite import truth
from ctx.sqlite.connection import Change, execute_script, explain_errors, transaction
from tests import effort
from tests.sqlite.databases import (
    ID,
    M1,
    M2,
    M3,
    OPEN,
    beside,
    content,
    finish,
    make_old,
    mode,
    open_truth,
    rows,
    start,
    versions,
    write,
)


@pytest.fixture
def no_shared_memory(path: str) -> None:
    """A folder in place of the -shm file: SQLite answers "wal" and then cannot write."""
    os.makedirs(path + "-shm")


def test_a_new_database_is_private_durable_and_keeps_its_foreign_keys(path: str) -> None:
    old = os.umask(0)
    try:
        with closing(open_truth(path)) as connection:
            connection.execute("INSERT INTO nodes (text) VALUES ('x')")
            assert [mode(path + suffix) for suffix in ("", "-wal", "-shm")] == [0o600] * 3
            assert mode(os.path.dirname(path)) == 0o700
            pragmas = ("journal_mode", "synchronous", "foreign_keys", "application_id")
            values = [rows(connection, f"PRAGMA {name}")[0][0] for name in pragmas]
            assert values == ["wal", 2, 1, ID]
            assert versions(connection) == [1, 2, 3]
            with pytest.raises(sqlite3.IntegrityError), explain_errors(path):
                connection.execute("INSERT INTO tags VALUES (99)")
    finally:
        os.umask(old)
    assert beside(path) == ["store.db"]
    assert truth.check_truth(path) == []


def test_opening_again_runs_no_migration_and_keeps_all_rows(path: str) -> None:
    make_old(path, M1, M2, M3)
    before = content(path)
    with closing(open_truth(path)) as connection:
        assert rows(connection, "SELECT id, text FROM nodes") == [(7, "kept")]
    assert content(path) == before
    assert truth.backups(path) == []


def test_the_log_stays_short_if_a_reader_always_closes_last(path: str) -> None:
    open_truth(path).close()
    longest = 0
    for number in range(40):
        with closing(truth.connect_for_reading(path)) as reader:
            with closing(open_truth(path)) as connection:
                truth.commit_without_sync(connection)
                with transaction(connection):
                    connection.execute("INSERT INTO nodes (text) VALUES (?)", ("x" * 100_000,))
                truth.shorten_log(connection, path)
            assert rows(reader, "SELECT count(*) FROM nodes") == [(number + 1,)]
        longest = max(longest, os.path.getsize(path + "-wal"))
    assert longest < 1_500_000
    assert truth.check_truth(path) == []


@pytest.mark.usefixtures("no_shared_memory")
def test_without_shared_memory_a_database_uses_a_rollback_journal(path: str) -> None:
    for _ in range(2):
        with closing(open_truth(path)) as connection:
            assert rows(connection, "PRAGMA journal_mode") == [("delete",)]
            with transaction(connection):
                connection.execute("INSERT INTO nodes (text) VALUES ('x')")
    assert truth.check_truth(path) == []


@pytest.mark.parametrize("old", [(M1,), (M1, M2, M3)], ids=["old", "present"])
def test_a_database_moved_to_a_file_system_without_wal_leaves_wal(
    path: str, old: tuple[Change, ...]
) -> None:
    make_old(path, *old)
    os.mkdir(path + "-shm")
    with closing(open_truth(path)) as connection:
        assert rows(connection, "PRAGMA journal_mode") == [("delete",)]
        assert rows(connection, "SELECT id, text FROM nodes") == [(7, "kept")]


def test_opening_does_not_wait_for_a_writer(path: str) -> None:
    with (
        closing(open_truth(path)) as writer,
        transaction(writer),
        closing(open_truth(path, busy_ms=1)) as reader,
    ):
        assert rows(reader, "SELECT * FROM nodes") == []


def test_a_file_system_that_refuses_wal_gets_a_rollback_journal(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = sqlite3.connect
    monkeypatch.setattr(
        sqlite3,
        "connect",
        lambda name, **options: connect(name + "&vfs=unix-dotfile", **{**options, "timeout": 0.05}),
    )
    make_old(path)
    with closing(open_truth(path, M1)) as connection:
        assert rows(connection, "PRAGMA journal_mode") == [("delete",)]
        assert rows(connection, "SELECT * FROM nodes") == [(7, "kept")]
    # These locks exclude readers too, so that no backup can be made: no migration without one.
    with pytest.raises(DatabaseFailure, match="Another process"):
        open_truth(path)


def test_a_migration_is_preceded_by_a_backup_of_the_old_version(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_old(path)
    monkeypatch.setattr(clock, "now_ms", lambda: 1_794_708_660_000)
    with closing(open_truth(path)) as connection:
        assert versions(connection) == [1, 2, 3]
        assert rows(connection, "SELECT id, text, summary FROM nodes") == [(7, "kept", None)]
        assert rows(connection, "PRAGMA foreign_keys") == [(1,)]
    assert beside(path) == ["store.db", "store.db.backup-v001-20261115T021100Z"]
    (backup,) = truth.backups(path)
    assert mode(backup) == 0o600
    with closing(truth.read_truth(backup, application_id=ID, migrations=(M1,))) as connection:
        assert versions(connection) == [1]
        assert rows(connection, "SELECT * FROM nodes") == [(7, "kept")]


def test_the_last_five_backups_are_kept(path: str) -> None:
    make_old(path)
    for day in range(1, 8):
        write(f"{path}.backup-v{9 - day:03d}-2020010{day}T000000Z", b"")
    open_truth(path).close()
    kept = [os.path.basename(backup) for backup in truth.backups(path)]
    assert len(kept) == 5
    assert kept[0] == "store.db.backup-v005-20200104T000000Z"
    assert kept[-1].startswith("store.db.backup-v001-2")


def test_a_process_killed_inside_a_migration_leaves_the_version_before_it(path: str) -> None:
    make_old(path)
    process = start(
        """
def m003_dies(connection):
    connection.execute("DELETE FROM nodes")
    connection.execute("PRAGMA cache_spill = ON")
    connection.execute("CREATE TABLE much AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL"
        " SELECT i + 1 FROM n WHERE i < 9999) SELECT randomblob(900) FROM n")
    os.kill(os.getpid(), 9)
truth.open_truth(
    sys.argv[1], application_id=ID, migrations=(m001_nodes, m002_summary, m003_dies, print))
""",
        path,
    )
    process.communicate(timeout=300)
    assert process.returncode == -signal.SIGKILL
    assert truth.check_truth(path) == []
    with closing(truth.read_truth(path, application_id=ID, migrations=(M1, M2))) as connection:
        assert versions(connection) == [1, 2]
        assert rows(connection, "SELECT id, text, summary FROM nodes") == [(7, "kept", None)]

    def m004_titles(connection: Connection) -> None:
        connection.execute("ALTER TABLE nodes ADD COLUMN title TEXT")

    with closing(open_truth(path, M1, M2, M3, m004_titles)) as connection:
        assert versions(connection) == [1, 2, 3, 4]
        assert rows(connection, "SELECT * FROM nodes") == [(7, "kept", None, None)]
        assert rows(connection, "SELECT pid FROM runs") == [(7,)]
    assert truth.check_truth(path) == []
    (backup,) = truth.backups(path)
    assert "backup-v001" in backup


def test_a_process_killed_while_creating_a_database_leaves_one_with_wal(path: str) -> None:
    program = """
def m002_dies(connection):
    os.kill(os.getpid(), 9)
truth.open_truth(sys.argv[1], application_id=ID, migrations=(m001_nodes, m002_dies))
"""
    process = start(program, path)
    process.communicate(timeout=300)
    assert process.returncode == -signal.SIGKILL
    with closing(open_truth(path)) as connection:
        assert versions(connection) == [1, 2, 3]
        assert rows(connection, "PRAGMA journal_mode") == [("wal",)]
    assert truth.backups(path) == []


def test_data_written_at_an_intermediate_version_is_backed_up(path: str) -> None:
    make_old(path)
    with pytest.raises(ZeroDivisionError):
        open_truth(path, M1, M2, lambda _: 1 // 0)
    with closing(open_truth(path, M1, M2)) as connection:
        connection.execute("UPDATE nodes SET summary = 'written meanwhile'")
    open_truth(path).close()
    backup = truth.backups(path)[-1]
    assert "-v002-" in backup
    with closing(truth.read_truth(backup, application_id=ID, migrations=(M1, M2))) as connection:
        assert rows(connection, "SELECT summary FROM nodes") == [("written meanwhile",)]


@pytest.mark.slow
@pytest.mark.parametrize("old", [True, False], ids=["old database", "no database"])
def test_of_eight_processes_exactly_one_applies_each_migration(path: str, old: bool) -> None:
    if old:
        make_old(path)
    program = """
import time
def slow(number):
    def migration(connection):
        connection.execute("CREATE TABLE IF NOT EXISTS ran (number INTEGER, pid INTEGER)")
        connection.execute("INSERT INTO ran VALUES (?, ?)", (number, os.getpid()))
        time.sleep(0.02)
    return migration
migrations = (m001_nodes, *(slow(number) for number in range(2, 9)))
connection = truth.open_truth(sys.argv[1], application_id=ID, migrations=migrations)
print(connection.execute("SELECT count(*) FROM ran").fetchone()[0])
"""
    processes = [start(program, path) for _ in range(8)]
    assert [finish(process) for process in processes] == ["7"] * 8
    with closing(sqlite3.connect(path)) as connection:
        assert versions(connection) == [*range(1, 9)]
        assert rows(connection, "SELECT number FROM ran") == [(number,) for number in range(2, 9)]
        assert rows(connection, "PRAGMA journal_mode") == [("wal",)]
    assert ["-v001-" in backup for backup in truth.backups(path)] == [True] * old


def test_a_failing_migration_is_named_and_undone_alone(path: str) -> None:
    make_old(path)

    def m003_wrong(connection: Connection) -> None:
        connection.execute("DELETE FROM nodes")
        connection.execute("INSERT INTO nowhere VALUES (1)")

    def m003_much(connection: Connection) -> None:
        connection.execute("PRAGMA max_page_count = 20")
        connection.execute("INSERT INTO nodes (text) VALUES (?)", ("x" * 200_000,))

    for _ in range(2):
        with pytest.raises(DatabaseFailure, match=r"m003_wrong .* no such table: nowhere"):
            open_truth(path, M1, M2, m003_wrong)
    with pytest.raises(DiskFailure, match="m003_much"):
        open_truth(path, M1, M2, m003_much)
    with closing(open_truth(path, M1, M2)) as connection:
        assert versions(connection) == [1, 2]
        assert rows(connection, "SELECT * FROM nodes") == [(7, "kept", None)]


def test_a_migration_can_replace_a_referenced_table(path: str) -> None:
    make_old(path)
    with closing(open_truth(path, M1)) as connection:
        connection.execute("INSERT INTO tags VALUES (7)")

    def m002_replace(connection: Connection) -> None:
        execute_script(
            connection,
            """
            CREATE TABLE new (id INTEGER PRIMARY KEY, text TEXT NOT NULL);
            INSERT INTO new SELECT * FROM nodes; -- Not the tags; those stay.
            DROP TABLE nodes;
            ALTER TABLE new RENAME TO nodes
            """,
        )

    def m003_orphans(connection: Connection) -> None:
        connection.execute("DELETE FROM nodes")

    with pytest.raises(DatabaseFailure, match=r"m003_orphans .* row 1 of tags without its row"):
        open_truth(path, M1, m002_replace, m003_orphans)
    with closing(open_truth(path, M1, m002_replace)) as connection:
        assert rows(connection, "SELECT * FROM tags") == [(7,)]


def test_a_migration_that_ends_its_transaction_is_an_internal_error(path: str) -> None:
    with pytest.raises(RuntimeError, match="executescript"):
        open_truth(path, lambda connection: connection.executescript("CREATE TABLE t (a);"))


def test_a_newer_database_is_refused_and_not_touched(path: str) -> None:
    make_old(path, M1, M2, M3)
    before = content(path)
    with pytest.raises(NewerFormat, match="has version 3; this ctx reads up to version 2"):
        open_truth(path, M1, M2)
    assert content(path) == before
    assert beside(path) == ["store.db"]


@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_another_programs_database_is_refused_and_not_touched(path: str, journal: str) -> None:
    os.makedirs(os.path.dirname(path))
    program = """
import sqlite3
connection = sqlite3.connect(sys.argv[1])
connection.execute(f"PRAGMA journal_mode = {sys.argv[2]}")
connection.execute("CREATE TABLE nodes (id TEXT)")
connection.execute("INSERT INTO nodes VALUES ('theirs')")
connection.commit()
os._exit(0)
"""
    finish(start(program, path, journal))
    before = {name: content(os.path.join(os.path.dirname(path), name)) for name in beside(path)}
    assert truth.application_id_of(path) == 0
    with pytest.raises(DatabaseFailure, match="another program"):
        open_truth(path)
    after = {name: content(os.path.join(os.path.dirname(path), name)) for name in beside(path)}
    assert after == before


def test_the_application_id_is_written_before_the_log(path: str) -> None:
    assert truth.application_id_of(path) is None
    with closing(open_truth(path)):
        assert truth.application_id_of(path) == ID
    write(path, b"")
    assert truth.application_id_of(path) is None
    write(path, b"not a database" * 99)
    assert truth.application_id_of(path) is None
    with pytest.raises(DatabaseFailure, match="not a database"):
        open_truth(path)


@pytest.mark.usefixtures("no_shared_memory")
def test_inspecting_a_database_keeps_the_locks_of_this_process(path: str) -> None:
    attempt = (
        OPEN.replace("m003_runs)", "m003_runs), busy_ms=20")
        + """
with explain_errors(sys.argv[1]), transaction(connection):
    pass
"""
    )
    with closing(open_truth(path)) as connection, transaction(connection):
        connection.execute("INSERT INTO nodes (text) VALUES ('x')")
        assert truth.application_id_of(path) == ID
        assert truth.check_truth(path) == []
        _, err = start(attempt, path).communicate(timeout=300)
        assert "E018: Another process is writing" in err


@pytest.fixture
def read_only() -> Iterator[str]:
    """A folder where an ordinary user can read everything and write nothing."""
    folder = tempfile.mkdtemp()
    yield folder
    os.chmod(folder, 0o700)
    shutil.rmtree(folder)


READ = """
if os.geteuid() == 0:
    os.seteuid(65534)
path = sys.argv[1]
migrations = (m001_nodes, m002_summary, m003_runs)
print(truth.check_truth(path))
try:
    truth.open_truth(path, application_id=ID, migrations=(*migrations, print))
except CtxError as error:
    print(error.code)
try:
    connection = truth.read_truth(path, application_id=ID, migrations=migrations)
    print(connection.execute("SELECT id, text FROM nodes").fetchall())
except CtxError as error:
    print(error.code)
"""


@pytest.mark.parametrize(
    ("left", "answers"),
    [
        ((), ["[]", "E014", "[(7, 'kept')]"]),
        (("-wal", "-shm"), ["[]", "E014", "[(7, 'kept')]"]),
        (("-wal",), ["E014", "E014"]),
    ],
    ids=["closed", "log", "log without shared memory"],
)
def test_a_database_in_a_read_only_folder_can_be_read(
    path: str, read_only: str, left: tuple[str, ...], answers: list[str]
) -> None:
    make_old(path, M1, M2)
    there = os.path.join(read_only, "store.db")
    with closing(open_truth(path)):
        if not left:
            with closing(sqlite3.connect(path)) as other:
                other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        for suffix in ("", *left):
            shutil.copyfile(path + suffix, there + suffix)
            os.chmod(there + suffix, 0o444)
    os.chmod(read_only, 0o555)
    lines = finish(start(READ, there)).splitlines()
    assert lines[-len(answers) :] == answers


def test_reading_an_older_or_missing_database_is_refused(path: str) -> None:
    with pytest.raises(DiskFailure, match="cannot be used"):
        truth.read_truth(path, application_id=ID, migrations=(M1,))
    make_old(path)
    with pytest.raises(DatabaseFailure, match="older ctx"):
        truth.read_truth(path, application_id=ID, migrations=(M1, M2))
    with (
        closing(truth.read_truth(path, application_id=ID, migrations=(M1,))) as connection,
        pytest.raises(DiskFailure, match="readonly"),
        explain_errors(path),
    ):
        connection.execute("DELETE FROM nodes")


@pytest.fixture(scope="module")
def whole() -> bytes:
    """A healthy database of truth."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "store.db")
        with closing(open_truth(path)) as connection:
            connection.execute("CREATE INDEX by_text ON nodes (text)")
            texts = [(f"text {i} " * (i % 7),) for i in range(60)]
            connection.executemany("INSERT INTO nodes (text) VALUES (?)", texts)
        return content(path)


def test_damage_with_undecodable_messages_is_explained(path: str, whole: bytes) -> None:
    os.makedirs(os.path.dirname(path))
    write(path, whole.replace(b"CREATE TABLE nodes", b"CREATE TABL\xff nodes"))
    assert "damaged" in truth.check_truth(path)[0]
    with pytest.raises(DatabaseFailure, match="damaged"):
        open_truth(path)


@settings(max_examples=effort.times(120), deadline=None, derandomize=True)
@given(
    damage=st.lists(st.tuples(st.integers(0, 40_000), st.integers(1, 255)), max_size=20),
    header=st.lists(st.tuples(st.integers(0, 99), st.integers(1, 255)), max_size=3),
    length=st.none() | st.integers(0, 40_000),
)
def test_any_damage_is_explained(
    whole: bytes,
    damage: list[tuple[int, int]],
    header: list[tuple[int, int]],
    length: int | None,
) -> None:
    data = bytearray(whole)
    for at, change in damage + header:
        data[at % len(data)] ^= change
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "store.db")
        write(path, bytes(data[:length]))
        truth.application_id_of(path)
        truth.check_truth(path)
        for opener in (truth.read_truth, truth.open_truth):
            try:
                with (
                    closing(opener(path, application_id=ID, migrations=(M1, M2, M3))) as connection,
                    explain_errors(path),
                ):
                    rows(connection, "SELECT * FROM nodes JOIN runs ORDER BY text")
                    if opener is truth.open_truth:
                        with transaction(connection):
                            connection.execute("INSERT INTO runs VALUES (1)")
            except CtxError as error:
                assert error.code in ("E014", "E018", "E019")
