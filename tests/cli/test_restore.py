"""`ctx restore --backup`: going back to a backup, and what becomes of what came since."""

from contextlib import closing
from pathlib import Path

import pytest

from ctx import clock
from ctx.memory import user_store
from ctx.operations import store_backups
from tests.cli.conftest import Add
from tests.conftest import Ctx

DAY = 86_400_000


@pytest.fixture
def file(surroundings: Path, folder: Path) -> Path:
    return surroundings / ".ctx" / "store.db"


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A day that a test can let pass."""
    moment = [clock.now_ms()]
    real = clock.now_ms
    begun = real()
    monkeypatch.setattr(clock, "now_ms", lambda: moment[0] + real() - begun)
    return moment


def contents(ctx: Ctx) -> list[str]:
    listed = ctx("list", "--limit=0", "--format=json").json["nodes"]
    return sorted(node["content"] for node in listed)


def test_one_a_day_and_only_so_many(ctx: Ctx, add: Add, file: Path, now: list[int]) -> None:
    told = "No backups yet. To make one: `ctx store backup`\n"
    assert ctx("restore", "--backup").out == told
    for words, error in (
        (["--backup", "nothing-like-it"], "E015: There is no backup 'nothing-like-it'."),
        (["--backup", "latest"], "E015: There is no backup 'latest'."),
        ([], "E011: No id given."),
        (["01M7", "--dry-run"], "E011: --dry-run and --keep-newer need --backup."),
        (["01M7", "--backup", "latest"], "E011: Give node ids or --backup"),
    ):
        assert ctx("restore", *words).err.startswith(f"error {error}")
    assert store_backups.make_daily_backup(str(file), 2) is None
    add("--type=fact", "One.")
    assert store_backups.make_daily_backup(str(file), 0) is None
    names = []
    for _ in range(3):
        made = store_backups.make_daily_backup(str(file), 2)
        assert made is not None
        names.append(made.name)
        assert store_backups.make_daily_backup(str(file), 2) is None
        now[0] += DAY
    assert [each.name for each in store_backups.list_backups(str(file)).backups] == names[:0:-1]
    assert ctx("store", "backup").code == 0
    file.with_name("store.db.backup-20200120T100000Z").write_text("nothing")
    answer = ctx("restore", "--backup", "--format=json").json
    assert answer["folder"] == str(file.parent / "backups")
    assert [(each["why"], each["nodes"]) for each in answer["backups"]] == [
        ("by hand", 1),
        ("daily", 1),
        ("daily", 1),
        ("by hand", None),
    ]
    assert f"  {names[-1]}  " in ctx("restore", "--backup").out


def test_going_back(ctx: Ctx, add: Add, file: Path) -> None:
    one = add("--type=fact", "One.")
    made = store_backups.make_daily_backup(str(file), 7)
    assert made is not None
    add("--type=fact", "Two.", "--tag=a:b", "--supersedes", one)
    with closing(user_store.open_for_writing(str(file))) as connection:
        connection.execute(
            "INSERT INTO event_log (at, type) VALUES ('2026-01-20T10:00:00Z', 'worker.start')"
        )
    tried = ctx("restore", "--backup", "latest", "--dry-run")
    assert tried.out == (
        f"Would restore {made.path}: 1 node.\n"
        "3 records newer than the backup: dropped (see --keep-newer).\n"
    )
    before = ctx("export", "--format=json").out
    assert ctx("restore", "--backup", "latest").code == 1
    ran = ctx("restore", "--backup", "latest", "--keep-newer", "--yes")
    assert "3 records newer than the backup: kept.\n" in ran.out
    assert ctx("export", "--format=json").out == before
    with closing(user_store.open_for_reading(str(file))) as connection:
        assert connection.execute("SELECT type FROM event_log").fetchall() == [("worker.start",)]
    answer = ctx("restore", "--backup", made.name, "--yes", "--format=json").json
    assert (answer["nodes"], answer["newer"], answer["taken"]) == (1, 3, 0)
    assert contents(ctx) == ["One."]
    assert ctx("store", "check").code == 0
    # What was there is whole, and can be gone back to as well.
    assert ctx("restore", "--backup", answer["kept"], "--yes").code == 0
    assert ctx("export", "--format=json").out == before


@pytest.mark.parametrize("damage", ["header", "middle", "nothing readable", "gone"])
def test_from_a_store_that_is_damaged_or_gone(ctx: Ctx, add: Add, file: Path, damage: str) -> None:
    add("--type=fact", "One.")
    assert store_backups.make_daily_backup(str(file), 7) is not None
    add("--type=fact", "Two.")
    data = bytearray(file.read_bytes())
    match damage:
        case "header":
            data[:100] = b"\xff" * 100
        case "middle":
            data[4096 * 20 : 4096 * 23] = b"\xff" * 4096 * 3
        case "nothing readable":
            data[:] = b"\xff" * len(data)
    file.unlink() if damage == "gone" else file.write_bytes(data)
    for suffix in ("-wal", "-shm"):
        Path(f"{file}{suffix}").unlink(missing_ok=True)
    ran = ctx("restore", "--backup", "latest", "--yes")
    assert ran.code == 0, ran.err
    assert ctx("store", "check").code == 0
    is_lost = damage in ("nothing readable", "gone")
    assert contents(ctx) == (["One."] if is_lost else ["One.", "Two."])
