"""Every changed byte of a derived file is detected."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from sqlite3 import Connection

import pytest

from ctx import clock
from ctx.errors import DiskFailure, IndexCorrupt
from ctx.sqlite import derived
from ctx.sqlite.connection import explain_errors
from tests.sqlite.databases import (
    BUILD,
    ID,
    beside,
    content,
    finish,
    mode,
    open_derived,
    rows,
    start,
    write,
)


def test_a_derived_file_is_built_once_and_is_private(path: str) -> None:
    with closing(open_derived(path)) as connection:
        assert rows(connection, "SELECT count(*) FROM words") == [(99,)]
    built = os.stat(path)
    with closing(open_derived(path)) as connection:
        assert rows(connection, "SELECT count(*) FROM words") == [(99,)]
        with pytest.raises(DiskFailure, match="readonly"), explain_errors(path, IndexCorrupt):
            connection.execute("DELETE FROM words")
    assert os.stat(path).st_ino == built.st_ino
    assert mode(path) == 0o600
    assert beside(path) == ["store.db"]
    assert derived.check_derived(path) == []


def test_any_sqlite_program_reads_a_sealed_file(path: str) -> None:
    open_derived(path).close()
    with closing(sqlite3.connect(path)) as connection:
        assert rows(connection, "PRAGMA integrity_check") == [("ok",)]
        assert rows(connection, "SELECT count(*) FROM words") == [(99,)]
        connection.execute("DELETE FROM words")
        connection.commit()
    assert derived.check_derived(path) != []
    with closing(open_derived(path)) as connection:
        assert rows(connection, "SELECT count(*) FROM words") == [(99,)]


def build_nothing(connection: Connection) -> None:
    pass


def other_program(path: str) -> None:
    os.unlink(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE words (word TEXT)")


def sealed_for_another(path: str) -> None:
    derived.build_derived(path, application_id=5, version=1, build=build_nothing).close()


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
        lambda path: write(path, content(path)[: -derived.SEAL_SIZE]),
    ],
    ids=["version", "foreign", "id", "missing", "empty", "garbage", "longer", "twice", "unsealed"],
)
def test_a_file_of_another_version_or_program_is_rebuilt(
    path: str, spoil: Callable[[str], object]
) -> None:
    open_derived(path).close()
    spoil(path)
    with pytest.raises(IndexCorrupt):
        derived.read_derived(path, application_id=ID, version=1)
    with closing(open_derived(path)) as connection:
        assert rows(connection, "SELECT count(*) FROM words") == [(99,)]
    assert derived.check_derived(path) == []
    assert beside(path) == ["store.db"]


@pytest.mark.slow
def test_every_flipped_byte_is_detected(path: str) -> None:
    open_derived(path).close()
    data = content(path)
    with open(path, "r+b", buffering=0) as file:
        for at in range(len(data)):
            os.pwrite(file.fileno(), bytes([data[at] ^ (1 << at % 8)]), at)
            (problem,) = derived.check_derived(path)
            assert "damaged" in problem
            if at % 50 == 0:
                with pytest.raises(IndexCorrupt):
                    derived.read_derived(path, application_id=ID, version=1)
            os.pwrite(file.fileno(), data[at : at + 1], at)
    assert derived.check_derived(path) == []


def test_every_truncation_is_detected(path: str) -> None:
    open_derived(path).close()
    data = content(path)
    for length in [*range(0, len(data), 61), *range(len(data) - 60, len(data))]:
        write(path, data[:length])
        assert len(derived.check_derived(path)) == 1
        with pytest.raises(IndexCorrupt):
            derived.read_derived(path, application_id=ID, version=1)
    open_derived(path).close()
    assert derived.check_derived(path) == []


def build_large(connection: Connection) -> None:
    BUILD(connection)
    connection.execute("CREATE TABLE large AS SELECT randomblob(2000000) AS bytes")


def test_a_large_file_is_hashed_only_if_its_time_differs_from_the_seal(path: str) -> None:
    open_derived(path, build=build_large).close()
    sealed = os.stat(path)
    with open(path, "r+b") as file:
        file.seek(1_000_000)
        byte = file.read(1)[0]
        file.seek(1_000_000)
        file.write(bytes([byte ^ 1]))
    with pytest.raises(IndexCorrupt, match="checksum"):
        derived.read_derived(path, application_id=ID, version=1)
    # Only a failing disk changes bytes and not the time. That takes a full check to find.
    os.utime(path, ns=(sealed.st_atime_ns, sealed.st_mtime_ns))
    derived.read_derived(path, application_id=ID, version=1).close()
    (problem,) = derived.check_derived(path)
    assert "checksum" in problem


def test_damage_found_while_reading_is_index_corrupt(path: str) -> None:
    open_derived(path, build=build_large).close()
    with closing(open_derived(path)) as connection:
        with open(path, "r+b") as file:
            file.seek(4096)
            file.write(b"\xff" * 50_000)
        with pytest.raises(IndexCorrupt), explain_errors(path, IndexCorrupt):
            rows(connection, "SELECT * FROM words, large")


def test_a_derived_file_is_extended_by_replacing_it_with_a_copy(path: str) -> None:
    reader = open_derived(path)
    extended = derived.build_derived(
        path,
        application_id=ID,
        version=1,
        build=lambda connection: connection.execute("INSERT INTO words VALUES ('new')"),
        source=path,
    )
    with closing(reader), closing(extended):
        assert rows(reader, "SELECT count(*) FROM words") == [(99,)]
        assert rows(extended, "SELECT count(*) FROM words") == [(100,)]
    assert derived.check_derived(path) == []
    with closing(open_derived(path)) as connection:
        assert rows(connection, "SELECT count(*) FROM words") == [(100,)]


def test_damage_is_not_sealed_into_a_copy(path: str) -> None:
    open_derived(path).close()
    data = bytearray(content(path))
    data[5000] ^= 1
    write(path, bytes(data))
    with pytest.raises(IndexCorrupt, match="checksum"):
        derived.build_derived(
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
    assert derived.check_derived(path) == []


@pytest.mark.slow
def test_concurrent_builds_all_give_a_complete_file(path: str) -> None:
    program = """
for version in (1, 2, 1, 2, 1):
    connection = derived.open_derived(
        sys.argv[1], application_id=ID, version=version, build=build)
    assert connection.execute("PRAGMA user_version").fetchone()[0] == version
    assert connection.execute("SELECT count(*) FROM words").fetchone()[0] == 99
    connection.close()
"""
    for process in [start(program, path) for _ in range(6)]:
        finish(process)
    assert derived.check_derived(path) == []
    assert beside(path) == ["store.db"]


def test_temporary_files_of_killed_builds_are_removed_after_a_day(path: str) -> None:
    open_derived(path).close()
    for name, age in (("aa.tmp", 90_000), ("bb.tmp-journal", 90_000), ("cc.tmp", 60)):
        write(f"{path}.{name}", b"")
        os.utime(f"{path}.{name}", (clock.now_s() - age, clock.now_s() - age))
    open_derived(path, version=2).close()
    assert beside(path) == ["store.db", "store.db.cc.tmp"]
