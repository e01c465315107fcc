"""Databases of truth survive everything; derived files show every changed byte."""

import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from sqlite3 import Connection

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctx import clock, sqlite
from ctx.errors import CtxError, DatabaseFailure, DiskFailure, IndexCorrupt, NewerFormat

ID = 0x43545854

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
_made: dict[str, sqlite.Change] = {}
exec(MIGRATIONS_TEXT, _made)
M1, M2, M3, BUILD = (_made[name] for name in ("m001_nodes", "m002_summary", "m003_runs", "build"))


@pytest.fixture
def path(tmp_path: os.PathLike[str]) -> str:
    return os.path.join(tmp_path, "folder", "store.db")


def open_truth(path: str, *migrations: sqlite.Change, busy_ms: int = 5000) -> Connection:
    return sqlite.open_truth(
        path, application_id=ID, migrations=migrations or (M1, M2, M3), busy_ms=busy_ms
    )


def open_derived(path: str, version: int = 1, build: sqlite.Change = BUILD) -> Connection:
    return sqlite.open_derived(path, application_id=ID, version=version, build=build)


def make_old(path: str, *migrations: sqlite.Change) -> None:
    with closing(open_truth(path, *(migrations or (M1,)))) as connection:
        connection.execute("INSERT INTO nodes (id, text) VALUES (7, 'kept')")


def start(program: str, *arguments: str) -> "subprocess.Popen[str]":
    program = f"import os, sys\nfrom ctx import sqlite\nID = {ID}\n{MIGRATIONS_TEXT}\n{program}"
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def finish(process: "subprocess.Popen[str]") -> str:
    out, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    return out.strip()


OPEN = """
connection = sqlite.open_truth(
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


@pytest.fixture
def no_shared_memory(path: str) -> None:
    """A folder in the place of the -shm file: SQLite answers "wal" and then cannot write."""
    os.makedirs(path + "-shm")


# Truth


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
            with pytest.raises(sqlite3.IntegrityError), sqlite.explained(path):
                connection.execute("INSERT INTO tags VALUES (99)")
    finally:
        os.umask(old)
    assert beside(path) == ["store.db"]
    assert sqlite.check_truth(path) == []


def test_opening_again_runs_nothing_and_keeps_what_was_committed(path: str) -> None:
    make_old(path, M1, M2, M3)
    before = content(path)
    with closing(open_truth(path)) as connection:
        assert rows(connection, "SELECT id, text FROM nodes") == [(7, "kept")]
    assert content(path) == before
    assert sqlite.backups(path) == []


@pytest.mark.usefixtures("no_shared_memory")
def test_without_shared_memory_a_database_uses_a_rollback_journal(path: str) -> None:
    for _ in range(2):
        with closing(open_truth(path)) as connection:
            assert rows(connection, "PRAGMA journal_mode") == [("delete",)]
            with sqlite.transaction(connection):
                connection.execute("INSERT INTO nodes (text) VALUES ('x')")
    assert sqlite.check_truth(path) == []


@pytest.mark.parametrize("old", [(M1,), (M1, M2, M3)], ids=["old", "present"])
def test_a_database_that_moved_to_where_wal_fails_leaves_wal(
    path: str, old: tuple[sqlite.Change, ...]
) -> None:
    make_old(path, *old)
    os.mkdir(path + "-shm")
    with closing(open_truth(path)) as connection:
        assert rows(connection, "PRAGMA journal_mode") == [("delete",)]
        assert rows(connection, "SELECT id, text FROM nodes") == [(7, "kept")]


def test_opening_does_not_wait_for_a_writer(path: str) -> None:
    with closing(open_truth(path)) as writer, sqlite.transaction(writer):
        with closing(open_truth(path, busy_ms=1)) as reader:
            assert rows(reader, "SELECT * FROM nodes") == []


def test_a_file_system_that_says_no_to_wal_is_taken_at_its_word(
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
    (backup,) = sqlite.backups(path)
    assert mode(backup) == 0o600
    with closing(sqlite.read_truth(backup, application_id=ID, migrations=(M1,))) as connection:
        assert versions(connection) == [1]
        assert rows(connection, "SELECT * FROM nodes") == [(7, "kept")]


def test_the_last_five_backups_are_kept(path: str) -> None:
    make_old(path)
    for day in range(1, 8):
        write(f"{path}.backup-v{9 - day:03d}-2020010{day}T000000Z", b"")
    open_truth(path).close()
    kept = [os.path.basename(backup) for backup in sqlite.backups(path)]
    assert len(kept) == 5
    assert kept[0] == "store.db.backup-v005-20200104T000000Z"
    assert kept[-1].startswith("store.db.backup-v001-2")


def test_a_process_killed_inside_a_migration_leaves_the_old_version(path: str) -> None:
    make_old(path)
    process = start(
        """
def m003_dies(connection):
    connection.execute("DELETE FROM nodes")
    connection.execute("PRAGMA cache_spill = ON")
    connection.execute("CREATE TABLE much AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL"
        " SELECT i + 1 FROM n WHERE i < 9999) SELECT randomblob(900) FROM n")
    os.kill(os.getpid(), 9)
sqlite.open_truth(sys.argv[1], application_id=ID, migrations=(m001_nodes, m002_summary, m003_dies))
""",
        path,
    )
    process.communicate(timeout=30)
    assert process.returncode == -signal.SIGKILL
    with closing(open_truth(path, M1)) as connection:
        assert versions(connection) == [1]
    with closing(open_truth(path)) as connection:
        assert versions(connection) == [1, 2, 3]
        assert rows(connection, "SELECT id, text FROM nodes") == [(7, "kept")]
    assert sqlite.check_truth(path) == []


@pytest.mark.parametrize("old", [True, False], ids=["old database", "no database"])
def test_of_eight_processes_exactly_one_migrates(path: str, old: bool) -> None:
    if old:
        make_old(path)
    processes = [start(OPEN, path) for _ in range(8)]
    assert [finish(process) for process in processes] == ["1"] * 8
    with closing(open_truth(path)) as connection:
        assert versions(connection) == [1, 2, 3]
        assert rows(connection, "PRAGMA journal_mode") == [("wal",)]
    assert len(sqlite.backups(path)) == old


def test_a_failing_migration_is_named_and_undone(path: str) -> None:
    make_old(path)

    def m003_wrong(connection: Connection) -> None:
        connection.execute("DELETE FROM nodes")
        connection.execute("INSERT INTO nowhere VALUES (1)")

    with pytest.raises(DatabaseFailure, match=r"m003_wrong .* no such table: nowhere"):
        open_truth(path, M1, M2, m003_wrong)
    with closing(open_truth(path, M1)) as connection:
        assert rows(connection, "SELECT * FROM nodes") == [(7, "kept")]


def test_a_migration_may_replace_a_table_that_others_refer_to(path: str) -> None:
    make_old(path)
    with closing(open_truth(path, M1)) as connection:
        connection.execute("INSERT INTO tags VALUES (7)")

    def m002_replace(connection: Connection) -> None:
        sqlite.execute_script(
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

    with pytest.raises(DatabaseFailure, match="row 1 of tags without its row in nodes"):
        open_truth(path, M1, m002_replace, m003_orphans)
    with closing(open_truth(path, M1, m002_replace)) as connection:
        assert rows(connection, "SELECT * FROM tags") == [(7,)]


def test_a_migration_that_ends_its_transaction_is_a_mistake_of_ours(path: str) -> None:
    with pytest.raises(RuntimeError, match="executescript"):
        open_truth(path, lambda connection: connection.executescript("CREATE TABLE t (a);"))


def test_a_newer_database_is_refused_and_not_touched(path: str) -> None:
    make_old(path, M1, M2, M3)
    before = content(path)
    with pytest.raises(NewerFormat, match="has version 3, and this ctx knows only 2"):
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
    assert sqlite.application_id_of(path) == 0
    with pytest.raises(DatabaseFailure, match="another program"):
        open_truth(path)
    after = {name: content(os.path.join(os.path.dirname(path), name)) for name in beside(path)}
    assert after == before


def test_the_application_id_is_in_the_file_while_the_log_is_not_yet(path: str) -> None:
    assert sqlite.application_id_of(path) is None
    with closing(open_truth(path)):
        assert sqlite.application_id_of(path) == ID
    write(path, b"")
    assert sqlite.application_id_of(path) is None
    write(path, b"not a database" * 99)
    assert sqlite.application_id_of(path) is None
    with pytest.raises(DatabaseFailure, match="not a database"):
        open_truth(path)


@pytest.mark.usefixtures("no_shared_memory")
def test_looking_at_a_database_does_not_drop_this_process_locks(path: str) -> None:
    attempt = (
        OPEN.replace("m003_runs)", "m003_runs), busy_ms=20")
        + """
with sqlite.explained(sys.argv[1]), sqlite.transaction(connection):
    pass
"""
    )
    with closing(open_truth(path)) as connection, sqlite.transaction(connection):
        connection.execute("INSERT INTO nodes (text) VALUES ('x')")
        assert sqlite.application_id_of(path) == ID
        assert sqlite.check_truth(path) == []
        _, err = start(attempt, path).communicate(timeout=30)
        assert "E018: Another process is writing" in err


def test_many_writers_wait_for_each_other(path: str) -> None:
    program = (
        OPEN
        + """
for _ in range(25):
    with sqlite.transaction(connection):
        connection.execute("INSERT INTO nodes (text) VALUES (?)", (os.getpid(),))
"""
    )
    for process in [start(program, path) for _ in range(6)]:
        finish(process)
    with closing(open_truth(path)) as connection:
        assert rows(connection, "SELECT count(*) FROM nodes") == [(150,)]


def test_a_writer_that_waits_too_long_says_for_whom(path: str) -> None:
    with closing(open_truth(path)) as first, closing(open_truth(path, busy_ms=20)) as second:
        with (
            sqlite.transaction(first),
            pytest.raises(DatabaseFailure, match="Another process is writing"),
            sqlite.explained(path),
            sqlite.transaction(second),
        ):
            pytest.fail("two writers at once")
        assert rows(second, "SELECT count(*) FROM nodes") == [(0,)]


def test_a_full_disk_is_a_disk_failure_and_changes_nothing(path: str) -> None:
    with closing(open_truth(path)) as connection:
        connection.execute("PRAGMA max_page_count = 20")
        with (
            pytest.raises(DiskFailure, match="disk is full"),
            sqlite.explained(path),
            sqlite.transaction(connection),
        ):
            connection.executemany(
                "INSERT INTO nodes (text) VALUES (?)", [("x",), ("x" * 200_000,)]
            )
        assert not connection.in_transaction
        assert rows(connection, "SELECT count(*) FROM nodes") == [(0,)]

    def m004_much(connection: Connection) -> None:
        connection.execute("PRAGMA max_page_count = 20")
        connection.execute("INSERT INTO nodes (text) VALUES (?)", ("x" * 200_000,))

    with pytest.raises(DiskFailure, match="m004_much"):
        open_truth(path, M1, M2, M3, m004_much)


def write_and_raise(connection: Connection, reason: type[BaseException]) -> None:
    connection.execute("INSERT INTO nodes (text) VALUES ('x')")
    raise reason


@pytest.mark.parametrize("reason", [KeyboardInterrupt, GeneratorExit, ValueError])
def test_an_interrupted_transaction_leaves_nothing(path: str, reason: type[BaseException]) -> None:
    with closing(open_truth(path)) as connection:
        with pytest.raises(reason), sqlite.transaction(connection):
            write_and_raise(connection, reason)
        assert not connection.in_transaction
        assert rows(connection, "SELECT count(*) FROM nodes") == [(0,)]


def test_transactions_do_not_nest(path: str) -> None:
    with closing(open_truth(path)) as connection:
        with sqlite.transaction(connection):
            connection.execute("INSERT INTO nodes (text) VALUES ('x')")
            with pytest.raises(RuntimeError), sqlite.transaction(connection):
                pytest.fail("nested")
        assert rows(connection, "SELECT text FROM nodes") == [("x",)]


def test_a_script_keeps_triggers_strings_and_the_transaction_whole(path: str) -> None:
    with closing(open_truth(path)) as connection:
        with sqlite.transaction(connection):
            sqlite.execute_script(
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
            sqlite.execute_script(connection, "SELECT 'never ends;")


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
print(sqlite.check_truth(path))
try:
    sqlite.open_truth(path, application_id=ID, migrations=(*migrations, print))
except sqlite.CtxError as error:
    print(error.code)
try:
    connection = sqlite.read_truth(path, application_id=ID, migrations=migrations)
    print(connection.execute("SELECT id, text FROM nodes").fetchall())
except sqlite.CtxError as error:
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
def test_where_nothing_can_be_written_truth_can_be_read(
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
        sqlite.read_truth(path, application_id=ID, migrations=(M1,))
    make_old(path)
    with pytest.raises(DatabaseFailure, match="older ctx"):
        sqlite.read_truth(path, application_id=ID, migrations=(M1, M2))
    with (
        closing(sqlite.read_truth(path, application_id=ID, migrations=(M1,))) as connection,
        pytest.raises(DiskFailure, match="readonly"),
        sqlite.explained(path),
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


def test_damage_that_python_cannot_even_quote_is_explained(path: str, whole: bytes) -> None:
    os.makedirs(os.path.dirname(path))
    write(path, whole.replace(b"CREATE TABLE nodes", b"CREATE TABL\xff nodes"))
    assert "damaged" in sqlite.check_truth(path)[0]
    with pytest.raises(DatabaseFailure, match="damaged"):
        open_truth(path)


@settings(max_examples=120, deadline=None, derandomize=True)
@given(
    damage=st.lists(st.tuples(st.integers(0, 40_000), st.integers(1, 255)), max_size=20),
    header=st.lists(st.tuples(st.integers(0, 99), st.integers(1, 255)), max_size=3),
    length=st.none() | st.integers(0, 40_000),
)
def test_damage_to_truth_is_always_explained(
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
        sqlite.application_id_of(path)
        sqlite.check_truth(path)
        for opener in (sqlite.read_truth, sqlite.open_truth):
            try:
                with (
                    closing(opener(path, application_id=ID, migrations=(M1, M2, M3))) as connection,
                    sqlite.explained(path),
                ):
                    rows(connection, "SELECT * FROM nodes JOIN runs ORDER BY text")
                    if opener is sqlite.open_truth:
                        with sqlite.transaction(connection):
                            connection.execute("INSERT INTO runs VALUES (1)")
            except CtxError as error:
                assert error.code in ("E014", "E018", "E019")


# Derived


def test_a_derived_file_is_built_once_and_is_private(path: str) -> None:
    with closing(open_derived(path)) as connection:
        assert rows(connection, "SELECT count(*) FROM words") == [(99,)]
    built = os.stat(path)
    with closing(open_derived(path)) as connection:
        assert rows(connection, "SELECT count(*) FROM words") == [(99,)]
        with pytest.raises(DiskFailure, match="readonly"), sqlite.explained(path, IndexCorrupt):
            connection.execute("DELETE FROM words")
    assert os.stat(path).st_ino == built.st_ino
    assert mode(path) == 0o600
    assert beside(path) == ["store.db"]
    assert sqlite.check_derived(path) == []


def test_any_sqlite_program_reads_a_sealed_file(path: str) -> None:
    open_derived(path).close()
    with closing(sqlite3.connect(path)) as connection:
        assert rows(connection, "PRAGMA integrity_check") == [("ok",)]
        assert rows(connection, "SELECT count(*) FROM words") == [(99,)]
        connection.execute("DELETE FROM words")
        connection.commit()
    assert sqlite.check_derived(path) != []
    with closing(open_derived(path)) as connection:
        assert rows(connection, "SELECT count(*) FROM words") == [(99,)]


def build_nothing(connection: Connection) -> None:
    pass


def other_program(path: str) -> None:
    os.unlink(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE words (word TEXT)")


def sealed_for_another(path: str) -> None:
    sqlite.build_derived(path, application_id=5, version=1, build=build_nothing).close()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: open_derived(path, version=2, build=build_nothing).close(),
        other_program,
        sealed_for_another,
        os.unlink,
        lambda path: write(path, b""),
        lambda path: write(path, b"garbage" * 1000),
        lambda path: write(path, content(path) + b"x"),
        lambda path: write(path, content(path) * 2),
        lambda path: write(path, content(path)[: -sqlite._SEAL_SIZE]),
    ],
    ids=["version", "foreign", "id", "missing", "empty", "garbage", "longer", "twice", "unsealed"],
)
def test_what_is_not_our_derived_file_is_built_anew(
    path: str, spoil: Callable[[str], object]
) -> None:
    open_derived(path).close()
    spoil(path)
    with pytest.raises(IndexCorrupt):
        sqlite.read_derived(path, application_id=ID, version=1)
    with closing(open_derived(path)) as connection:
        assert rows(connection, "SELECT count(*) FROM words") == [(99,)]
    assert sqlite.check_derived(path) == []
    assert beside(path) == ["store.db"]


def test_every_flipped_byte_is_found(path: str) -> None:
    open_derived(path).close()
    data = content(path)
    with open(path, "r+b", buffering=0) as file:
        for at in range(len(data)):
            os.pwrite(file.fileno(), bytes([data[at] ^ (1 << at % 8)]), at)
            (problem,) = sqlite.check_derived(path)
            assert "damaged" in problem
            if at % 50 == 0:
                with pytest.raises(IndexCorrupt):
                    sqlite.read_derived(path, application_id=ID, version=1)
            os.pwrite(file.fileno(), data[at : at + 1], at)
    assert sqlite.check_derived(path) == []


def test_every_truncation_is_found(path: str) -> None:
    open_derived(path).close()
    data = content(path)
    for length in [*range(0, len(data), 61), *range(len(data) - 60, len(data))]:
        write(path, data[:length])
        assert len(sqlite.check_derived(path)) == 1
        with pytest.raises(IndexCorrupt):
            sqlite.read_derived(path, application_id=ID, version=1)
    open_derived(path).close()
    assert sqlite.check_derived(path) == []


def build_large(connection: Connection) -> None:
    BUILD(connection)
    connection.execute("CREATE TABLE large AS SELECT randomblob(2000000) AS bytes")


def test_a_large_file_is_hashed_when_its_time_is_not_the_seals(path: str) -> None:
    open_derived(path, build=build_large).close()
    sealed = os.stat(path)
    with open(path, "r+b") as file:
        file.seek(1_000_000)
        byte = file.read(1)[0]
        file.seek(1_000_000)
        file.write(bytes([byte ^ 1]))
    with pytest.raises(IndexCorrupt, match="checksum"):
        sqlite.read_derived(path, application_id=ID, version=1)
    # Only a failing disk changes bytes and not the time. That takes a full check to find.
    os.utime(path, ns=(sealed.st_atime_ns, sealed.st_mtime_ns))
    sqlite.read_derived(path, application_id=ID, version=1).close()
    (problem,) = sqlite.check_derived(path)
    assert "checksum" in problem


def test_damage_met_while_reading_is_index_corrupt(path: str) -> None:
    open_derived(path, build=build_large).close()
    with closing(open_derived(path)) as connection:
        with open(path, "r+b") as file:
            file.seek(4096)
            file.write(b"\xff" * 50_000)
        with pytest.raises(IndexCorrupt), sqlite.explained(path, IndexCorrupt):
            rows(connection, "SELECT * FROM words, large")


def test_a_derived_file_is_extended_by_a_changed_copy(path: str) -> None:
    reader = open_derived(path)
    extended = sqlite.build_derived(
        path,
        application_id=ID,
        version=1,
        build=lambda connection: connection.execute("INSERT INTO words VALUES ('new')"),
        source=path,
    )
    with closing(reader), closing(extended):
        assert rows(reader, "SELECT count(*) FROM words") == [(99,)]
        assert rows(extended, "SELECT count(*) FROM words") == [(100,)]
    assert sqlite.check_derived(path) == []
    with closing(open_derived(path)) as connection:
        assert rows(connection, "SELECT count(*) FROM words") == [(100,)]


def test_damage_is_not_sealed_into_a_copy(path: str) -> None:
    open_derived(path).close()
    data = bytearray(content(path))
    data[5000] ^= 1
    write(path, bytes(data))
    with pytest.raises(IndexCorrupt, match="checksum"):
        sqlite.build_derived(
            path + "2", application_id=ID, version=1, build=build_nothing, source=path
        )
    assert beside(path) == ["store.db"]


def test_a_failing_build_leaves_the_old_file_and_nothing_else(path: str) -> None:
    open_derived(path).close()
    before = content(path)

    def fail(connection: Connection) -> None:
        BUILD(connection)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        open_derived(path, version=2, build=fail)
    with pytest.raises(DiskFailure, match="disk is full"):
        open_derived(path, version=2, build=build_too_much)
    assert content(path) == before
    assert beside(path) == ["store.db"]


def build_too_much(connection: Connection) -> None:
    connection.execute("PRAGMA max_page_count = 9")
    build_large(connection)


def test_journals_of_a_former_file_are_not_applied_to_the_new_one(path: str) -> None:
    os.makedirs(os.path.dirname(path))
    with closing(sqlite3.connect(path, isolation_level=None)) as former:
        former.execute("PRAGMA journal_mode = WAL")
        former.execute("CREATE TABLE words (word TEXT)")
        former.execute("INSERT INTO words VALUES ('former')")
        write(path + "-journal", content(path + "-wal"))
        with closing(open_derived(path)) as connection:
            assert rows(former, "SELECT * FROM words") == [("former",)]
            assert rows(connection, "SELECT count(*) FROM words") == [(99,)]
        assert beside(path) == ["store.db"]
        with closing(sqlite3.connect(path)) as plain:
            assert rows(plain, "SELECT count(*) FROM words") == [(99,)]
        former.execute("INSERT INTO words VALUES ('former')")
    assert sqlite.check_derived(path) == []


def test_processes_that_build_at_once_all_get_a_whole_file(path: str) -> None:
    program = """
for version in (1, 2, 1, 2, 1):
    connection = sqlite.open_derived(
        sys.argv[1], application_id=ID, version=version, build=build)
    assert connection.execute("PRAGMA user_version").fetchone()[0] == version
    assert connection.execute("SELECT count(*) FROM words").fetchone()[0] == 99
    connection.close()
"""
    for process in [start(program, path) for _ in range(6)]:
        finish(process)
    assert sqlite.check_derived(path) == []
    assert beside(path) == ["store.db"]


def test_what_killed_builders_left_is_swept_after_a_day(path: str) -> None:
    open_derived(path).close()
    for name, age in (("aa.tmp", 90_000), ("bb.tmp-journal", 90_000), ("cc.tmp", 60)):
        write(f"{path}.{name}", b"")
        os.utime(f"{path}.{name}", (clock.now_s() - age, clock.now_s() - age))
    open_derived(path, version=2).close()
    assert beside(path) == ["store.db", "store.db.cc.tmp"]


def test_names_may_hold_anything(tmp_path: os.PathLike[str]) -> None:
    for name in ("a b?mode=ro#x%41", "ключ", os.fsdecode(b"\xff\xfe")):
        folder = os.path.join(tmp_path, name)
        open_truth(os.path.join(folder, "store.db")).close()
        open_derived(os.path.join(folder, "index.db")).close()
        assert sorted(os.listdir(folder)) == ["index.db", "store.db"]
        sqlite.check_derived(os.path.join(folder, "none.db"))[0].encode()
