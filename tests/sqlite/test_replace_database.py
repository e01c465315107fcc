"""Replacing the content of a database is atomic, also for processes that have it open."""

import os
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from ctx.errors import DatabaseFailure
from ctx.sqlite import replace_database as replacing
from ctx.sqlite import truth
from ctx.sqlite.connection import explain_errors, transaction
from ctx.sqlite.replace_database import can_be_opened, replace
from tests.faults import Disk, Stopped
from tests.sqlite.databases import beside, content, open_truth, rows, write

TEXTS = "SELECT text FROM nodes ORDER BY id"


def make(path: str, *texts: str) -> str:
    with closing(open_truth(path)) as connection, transaction(connection):
        connection.executemany("INSERT INTO nodes (text) VALUES (?)", [(text,) for text in texts])
    return path


def texts(path: str) -> list[object]:
    with closing(open_truth(path)) as connection:
        return [row[0] for row in rows(connection, TEXTS)]


@pytest.fixture
def new(path: str) -> str:
    return make(os.path.join(os.path.dirname(path), "new.db"), "new")


def test_open_connections_continue_with_the_new_content(path: str, new: str) -> None:
    make(path, "old")
    with closing(open_truth(path)) as reader, closing(open_truth(path)) as writer:
        reader.execute("BEGIN")
        assert rows(reader, TEXTS) == [("old",)]
        kept = replace(path, "replaced", lambda _: new)
        # A reader in the middle of something is not disturbed.
        assert rows(reader, TEXTS) == [("old",)]
        reader.execute("COMMIT")
        assert rows(reader, TEXTS) == [("new",)]
        with transaction(writer):
            writer.execute("INSERT INTO nodes (text) VALUES ('later')")
    assert texts(path) == ["new", "later"]
    assert kept is not None
    assert texts(kept) == ["old"]
    assert truth.check_truth(path) == []


def interfering(path: str, times: int) -> Callable[..., None]:
    """Another process writes at the moment in which the lock is passed on."""
    overwrite = replacing._overwrite
    left = [times]

    def written_first(*arguments: Any) -> None:
        if left[0]:
            left[0] -= 1
            make(path, "meanwhile")
        overwrite(*arguments)

    return written_first


def test_concurrent_writes_are_not_lost(
    path: str, new: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(path, "old")
    monkeypatch.setattr(replacing, "_overwrite", interfering(path, 1))
    seen = []

    def look(copy: str) -> str:
        seen.append(texts(copy))
        return new

    kept = replace(path, "replaced", look)
    assert seen == [["old"], ["old", "meanwhile"]]
    assert kept is not None
    assert texts(kept) == ["old", "meanwhile"]
    assert texts(path) == ["new"]


def test_replacing_fails_without_a_change_if_others_keep_writing(
    path: str, new: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(path)
    monkeypatch.setattr(replacing, "_overwrite", interfering(path, 99))
    with pytest.raises(DatabaseFailure, match="Others keep writing"):
        replace(path, "replaced", lambda _: new)
    assert texts(path) == ["meanwhile"] * 20
    assert beside(path) == ["new.db", "store.db"]


def test_writers_wait_while_the_new_content_is_built(path: str, new: str) -> None:
    make(path, "old")

    def attempt(_: str) -> str:
        with (
            closing(open_truth(path, busy_ms=1)) as other,
            pytest.raises(DatabaseFailure, match="Another process is writing"),
            explain_errors(path),
            transaction(other),
        ):
            pytest.fail("two writers at once")
        return new

    replace(path, "replaced", attempt)
    assert texts(path) == ["new"]


def test_an_error_changes_nothing(path: str) -> None:
    make(path, "old")

    def refuse(_: str) -> str:
        raise DatabaseFailure("No.")

    with pytest.raises(DatabaseFailure):
        replace(path, "replaced", refuse)
    assert texts(path) == ["old"]
    assert beside(path) == ["store.db"]


def test_a_log_without_its_database_is_kept(path: str) -> None:
    """SQLite treats an empty file as a new database, and would delete the log beside it."""
    make(path, "old")
    with closing(open_truth(path)) as connection:
        connection.execute("INSERT INTO nodes (text) VALUES ('in the log')")
        log = content(f"{path}-wal")
    assert b"in the log" in log
    write(path, b"")
    write(f"{path}-wal", log)
    with pytest.raises(DatabaseFailure, match="damaged: it is empty, and its log is not"):
        open_truth(path)
    assert not can_be_opened(path)
    assert content(f"{path}-wal") == log


def test_a_database_without_a_log_is_replaced(path: str, new: str) -> None:
    os.makedirs(path + "-shm")
    make(path, "old")
    replace(path, "replaced", lambda _: new)
    assert texts(path) == ["new"]


def test_kept_copies_are_never_overwritten(
    path: str, new: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ctx.clock.now_ms", lambda: 1_794_708_660_000)
    make(path, "one")
    first = replace(path, "replaced", lambda _: new)
    second = replace(path, "replaced", lambda _: new)
    assert (first, second) == (
        f"{path}.replaced-20261115T021100Z",
        f"{path}.replaced-20261115T021101Z",
    )
    assert [texts(str(kept)) for kept in (first, second)] == [["one"], ["new"]]


@pytest.mark.parametrize("power_loss", [False, True], ids=["killed", "power lost"])
def test_an_unreadable_file_is_moved_aside_also_after_a_crash(path: str, power_loss: bool) -> None:
    """The log is moved with the file; the pending copy is put in place when it is opened next."""
    folder = os.path.dirname(path)
    new = os.path.join(folder, "new.db")
    whole = content(make(new, "new"))
    stopped = finished = 0
    while not finished:
        for name in os.listdir(folder):
            os.unlink(os.path.join(folder, name))
        write(path, b"not a database " * 999)
        write(f"{path}-wal", b"a log")
        write(new, whole)
        assert not can_be_opened(path)
        disk = Disk(stopped, power_loss=power_loss)
        try:
            with disk.installed():
                replace(path, "damaged", lambda _: new)
            finished = 1
        except Stopped:
            if power_loss:
                disk.lose_power()
            stopped += 1
        if os.path.exists(path + truth.NEXT) or any("damaged" in name for name in beside(path)):
            assert texts(path) == ["new"]
            (aside,) = [n for n in beside(path) if "damaged" in n and not n.endswith("-wal")]
            assert content(os.path.join(folder, aside)) == b"not a database " * 999
            assert content(os.path.join(folder, f"{aside}-wal")) == b"a log"
            assert not os.path.exists(path + truth.NEXT)
        else:
            assert content(path) == b"not a database " * 999
            assert content(f"{path}-wal") == b"a log"
            with pytest.raises(DatabaseFailure):
                open_truth(path)
    assert stopped > 5
