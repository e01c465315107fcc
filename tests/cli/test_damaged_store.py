"""Which errors of a command are about a damaged store."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ctx.cli import damaged_store
from ctx.errors import CtxError
from ctx.sqlite.connection import explain_errors


def test_a_busy_or_full_store_is_not_damaged(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with (
        closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as one,
        closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as other,
    ):
        one.execute("CREATE TABLE t (x)")
        one.execute("BEGIN EXCLUSIVE")
        with pytest.raises(CtxError) as busy, explain_errors(str(path)):
            other.execute("INSERT INTO t VALUES (1)")
        one.execute("ROLLBACK")
        one.execute("PRAGMA max_page_count = 2")
        with pytest.raises(CtxError) as full, explain_errors(str(path)):
            one.execute("INSERT INTO t VALUES (zeroblob(100000))")
    for raised in (busy, full):
        assert not damaged_store._reports_damage(raised.value)
    assert not damaged_store._is_damaged(str(path))
    path.write_bytes(b"\x99" * 8192)
    with (
        closing(sqlite3.connect(path)) as damaged,
        pytest.raises(CtxError) as raised,
        explain_errors(str(path)),
    ):
        damaged.execute("SELECT * FROM t")
    assert damaged_store._reports_damage(raised.value)
    assert damaged_store._is_damaged(str(path))
