"""A store of the Go program at our path is replaced atomically."""

import gc
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from ctx.errors import DatabaseFailure, DiskFailure
from ctx.exchange.foreign import go_ctx
from ctx.memory import user_store
from ctx.memory.graph import Graph
from ctx.operations.convert_go_store import convert_go_store
from tests.conftest import Ctx
from tests.exchange.foreign.databases import DECISION, FACT, OLDER, go_store
from tests.faults import NO_SPACE, Disk, Stopped


def ours(path: Path) -> dict[str, str]:
    with closing(user_store.open_for_reading(str(path))) as connection:
        nodes = Graph(connection).nodes([FACT, DECISION, OLDER])
        return {node.id: node.content for node in nodes}


def theirs(path: Path) -> dict[str, str]:
    with closing(sqlite3.connect(path)) as connection:
        return dict(connection.execute("SELECT id, content FROM nodes"))


CONTENTS = {
    FACT: "Single binaries are preferred",
    DECISION: "We use SQLite",
    OLDER: "We use files",
}


def backups(path: Path) -> list[Path]:
    return sorted(path.parent.glob(f"{path.name}.go-*"))


@pytest.mark.parametrize("is_link", [False, True])
def test_the_store_is_converted_and_the_old_one_is_kept(tmp_path: Path, is_link: bool) -> None:
    real = go_store(tmp_path / "real" / "store.db")
    path = tmp_path / "store.db" if is_link else real
    if is_link:
        assert convert_go_store(str(path)) is None
        path.symlink_to(real)
    adopted = convert_go_store(str(path))
    assert adopted is not None
    assert adopted[1:] == (3, 2, 1, (), ())
    names = sorted(item.name for item in real.parent.iterdir())
    assert names == ["store.db", os.path.basename(adopted.backup)]
    assert ours(path) == CONTENTS
    assert theirs(backups(real)[0]) == CONTENTS
    assert go_ctx.is_go_store(adopted.backup)
    assert real.stat().st_mode & 0o777 == 0o600
    assert path.is_symlink() == is_link
    assert convert_go_store(str(path)) is None
    assert len(backups(real)) == 1


def test_data_in_the_log_is_converted(tmp_path: Path) -> None:
    path = go_store(tmp_path / "store.db")
    killed = (
        "import os, sqlite3, sys\n"
        "c = sqlite3.connect(sys.argv[1])\n"
        "c.execute(\"UPDATE nodes SET content = 'from the log'\")\n"
        "c.commit()\n"
        "os._exit(0)\n"
    )
    subprocess.run([sys.executable, "-c", killed, str(path)], check=True)
    assert (tmp_path / "store.db-wal").stat().st_size
    assert convert_go_store(str(path)) is not None
    assert not (tmp_path / "store.db-wal").exists()
    assert set(ours(path).values()) == {"from the log"}
    assert set(theirs(backups(path)[0]).values()) == {"from the log"}


def test_a_store_that_is_being_written_is_not_converted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ctx.operations.convert_go_store._BUSY_MS", 50)
    path = go_store(tmp_path / "store.db")
    with closing(sqlite3.connect(path)) as busy:
        busy.execute("BEGIN IMMEDIATE")
        with pytest.raises(DatabaseFailure, match="Another process is writing"):
            convert_go_store(str(path))
    assert theirs(path) == CONTENTS
    assert backups(path) == []
    assert convert_go_store(str(path)) is not None


def test_a_damaged_store_is_left_alone(tmp_path: Path) -> None:
    path = go_store(tmp_path / "here" / "store.db")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE nodes SET content = hex(zeroblob(100000))")
    data = bytearray(path.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 8192] = b"\xff" * 8192
    path.write_bytes(data)
    with pytest.raises(DatabaseFailure):
        convert_go_store(str(path))
    # Only the header, which says how it is written to, is another.
    assert path.read_bytes()[100:] == data[100:]
    assert [item.name for item in path.parent.iterdir()] == ["store.db"]


@pytest.mark.parametrize("fault", ["kill", "power", "full"])
def test_a_conversion_can_be_stopped_anywhere(tmp_path: Path, fault: str) -> None:
    made = go_store(tmp_path / "made.db")
    stops, done = 0, False
    while not done:
        path = tmp_path / f"{stops}" / "store.db"
        path.parent.mkdir()
        shutil.copyfile(made, path)
        disk = Disk(
            stops, refuse_with=NO_SPACE if fault == "full" else 0, power_loss=fault == "power"
        )
        try:
            with disk.installed():
                convert_go_store(str(path))
            done = True
        except (Stopped, DiskFailure):
            stops += 1
        # A killed process has no connections left.
        gc.collect()
        if fault == "power":
            disk.lose_power()
        if go_ctx.is_go_store(str(path)):
            assert theirs(path) == CONTENTS
            assert convert_go_store(str(path)) is not None
        assert ours(path) == CONTENTS
        assert backups(path)
        assert all(theirs(backup) == CONTENTS for backup in backups(path))
    assert stops > 8


def test_concurrent_conversions_convert_once(tmp_path: Path) -> None:
    path = go_store(tmp_path / "store.db")
    script = (
        "import sys\n"
        "from ctx.operations.convert_go_store import convert_go_store\n"
        "from ctx.memory import user_store\n"
        "converted = convert_go_store(sys.argv[1])\n"
        "user_store.open_for_writing(sys.argv[1]).execute('SELECT 1 FROM records')\n"
        "print(converted is not None)\n"
    )
    command = [sys.executable, "-c", script, str(path)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    said = [process.communicate(timeout=300)[0].strip() for process in running]
    assert sorted(said) == ["False", "False", "False", "True"]
    assert len(backups(path)) == 1
    assert ours(path) == CONTENTS


def test_store_commands_refuse_a_store_of_the_go_program(surroundings: Path, ctx: Ctx) -> None:
    home = surroundings / ".ctx"
    home.mkdir(exist_ok=True)
    go_store(home / "store.db")
    for word in ("check", "backup", "rebuild"):
        ran = ctx("store", word)
        assert ran.code == 1
        assert "`ctx status` imports it" in ran.err
    assert ctx("status").code == 0
    assert ctx("store", "check").code == 0
