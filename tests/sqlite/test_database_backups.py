"""Daily backups: complete, named by their time, few, and never of a damaged database."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ctx import clock
from ctx.errors import DatabaseFailure, DiskFailure
from ctx.sqlite import database_backups

MOMENT = 1_768_903_200_000
DAY = 86_400_000


@pytest.fixture
def path(tmp_path: Path) -> str:
    file = tmp_path / "store.db"
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE t (x)")
        connection.executemany("INSERT INTO t VALUES (?)", [("word " * 200,)] * 100)
    return str(file)


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    moment = [MOMENT]
    monkeypatch.setattr(clock, "now_ms", lambda: moment[0])
    return moment


def count(path: str) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("SELECT count(*) FROM t").fetchone()[0])


def test_a_backup_is_a_complete_private_file(path: str, now: list[int]) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as writing:
        # What is in the log only is in the backup too; what is not committed is not.
        writing.execute("INSERT INTO t VALUES (1)")
        writing.execute("BEGIN IMMEDIATE")
        writing.execute("INSERT INTO t VALUES (2)")
        made = database_backups.make(path)
    assert made.name == "store-20260120T100000Z.db"
    assert made.at == "2026-01-20T10:00:00Z"
    assert count(made.path) == 101
    assert os.stat(made.path).st_mode & 0o777 == 0o600
    assert os.stat(os.path.dirname(made.path)).st_mode & 0o777 == 0o700
    assert os.listdir(os.path.dirname(made.path)) == [made.name]


def test_the_newest_backup_is_first_and_the_oldest_are_removed(path: str, now: list[int]) -> None:
    made = []
    for day in range(5):
        now[0] = MOMENT + day * DAY
        made.append(database_backups.make(path))
    assert database_backups.daily_backups(path) == made[::-1]
    database_backups.rotate(path, 2)
    assert database_backups.daily_backups(path) == [made[4], made[3]]
    database_backups.rotate(path, 0)
    assert database_backups.daily_backups(path) == [made[4]]


def test_all_kinds_of_backups_are_listed(path: str, now: list[int]) -> None:
    database_backups.make(path)
    for name in ("backup-20260121T100000Z", "backup-v003-20260119T100000Z", "backup-odd", "other"):
        Path(f"{path}.{name}").write_bytes(b"x")
    Path(database_backups.folder_for(path), "settings.json.20260120T100000Z").touch()
    assert [(each.name, each.why) for each in database_backups.all_backups(path)] == [
        ("store.db.backup-20260121T100000Z", "by hand"),
        ("store-20260120T100000Z.db", "daily"),
        ("store.db.backup-v003-20260119T100000Z", "before migration"),
    ]


def test_a_damaged_database_is_not_backed_up(path: str) -> None:
    data = bytearray(Path(path).read_bytes())
    data[4096 * 3 : 4096 * 8] = b"\xff" * (4096 * 5)
    Path(path).write_bytes(data)
    with pytest.raises(DatabaseFailure, match="damaged"):
        database_backups.make(path)
    assert database_backups.daily_backups(path) == []
    assert os.listdir(database_backups.folder_for(path)) == []


def test_no_backup_is_made_on_a_nearly_full_disk(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.statvfs

    class Full:
        f_frsize = 1
        f_bavail = os.path.getsize(path) * 2 - 1

    monkeypatch.setattr(os, "statvfs", lambda _: Full)
    with pytest.raises(DiskFailure, match="too little room"):
        database_backups.make(path)
    monkeypatch.setattr(os, "statvfs", real)
    assert database_backups.daily_backups(path) == []
