"""The tables are those of `schema.sql`, and old stores are migrated without a loss."""

import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from sqlite3 import Connection

import pytest

from ctx import clock
from ctx.exchange import integrity
from ctx.memory import migrations, records, user_store
from ctx.memory.migrations import MIGRATIONS
from ctx.sqlite.connection import execute_script
from tests.conftest import Ctx
from tests.golden.stores import make

SCHEMA = Path(migrations.__file__).with_name("schema.sql")
GOLDEN = Path(make.__file__).parent
STORES = sorted(GOLDEN.glob("v*.db"))


def test_the_migrations_give_the_schema() -> None:
    with (
        closing(sqlite3.connect(":memory:", isolation_level=None)) as shown,
        closing(sqlite3.connect(":memory:", isolation_level=None)) as migrated,
    ):
        execute_script(shown, SCHEMA.read_text())
        for migration in MIGRATIONS:
            migration(migrated)
        assert schema(shown) == schema(migrated)


def schema(connection: Connection) -> dict[str, str]:
    """Every table, index and trigger, without comments and with normalised white space."""
    rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
    return {name: _plain(re.sub(r"--[^\n]*", "", sql)) for name, sql in rows}


def _plain(sql: str) -> str:
    return re.sub(r" ?([(),]) ?", r"\1", " ".join(sql.split()))


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """The store that version 1 wrote."""
    path = tmp_path / "old" / "store.db"
    path.parent.mkdir()
    shutil.copyfile(GOLDEN / "v1.db", path)
    return path


@pytest.mark.parametrize("golden", STORES, ids=lambda path: path.stem)
def test_a_store_of_every_version_is_read_completely(golden: Path, tmp_path: Path) -> None:
    expected = golden.with_suffix(".txt").read_text()
    copied = shutil.copyfile(golden, tmp_path / "store.db")
    with closing(user_store.open_for_reading(str(copied))) as connection:
        assert make.dump(connection) == expected
        with integrity.private_copy(connection) as copy:
            assert integrity.problems(copy) == []
            assert integrity.differences(copy) == []


def test_the_golden_stores_contain_every_kind_of_record() -> None:
    kinds = set()
    for golden in STORES:
        with closing(sqlite3.connect(f"file:{golden}?immutable=1", uri=True)) as connection:
            kinds |= {row[0] for row in connection.execute("SELECT DISTINCT kind FROM records")}
    documented = re.findall(r"^    ([a-z]+\.[a-z]+|undo) ", records.__doc__ or "", re.MULTILINE)
    assert kinds == set(documented)


def m999_colours(connection: Connection) -> None:
    """A migration that exists only in this test."""
    connection.execute("ALTER TABLE nodes ADD COLUMN colour TEXT NOT NULL DEFAULT 'grey'")


@pytest.mark.parametrize("command", [["list"], ["add", "--type=fact", "more"]])
def test_the_next_version_migrates_a_store_after_a_backup(
    old: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.setattr(user_store, "MIGRATIONS", (*MIGRATIONS, m999_colours))
    monkeypatch.setattr(clock, "now_ms", lambda: 1_794_708_660_000)
    with closing(sqlite3.connect(old)) as connection:
        before = list(connection.iterdump())
    ran = ctx(*command, "--db", str(old))
    assert ran.code == 0, ran.err
    with closing(sqlite3.connect(old)) as connection:
        assert connection.execute("SELECT max(version) FROM schema_version").fetchone() == (
            len(MIGRATIONS) + 1,
        )
        assert connection.execute("SELECT DISTINCT colour FROM nodes").fetchall() == [("grey",)]
    backup = old.with_name("store.db.backup-v001-20261115T021100Z")
    with closing(sqlite3.connect(backup)) as connection:
        assert list(connection.iterdump()) == before
        assert connection.execute("SELECT max(version) FROM schema_version").fetchone() == (1,)
    assert ctx("list", "--db", str(old)).code == 0
    assert [path.name for path in old.parent.glob("*.backup*")] == [backup.name]
