"""A damaged store is reported by every command, and readable rows are recovered."""

import os
import random
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from ctx.memory import user_store
from ctx.operations import store_backups
from tests.conftest import Ctx, use_home
from tests.e2e import trial_commands
from tests.e2e.terminals import on_a_terminal

PAGE = 4096


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("base")
    with pytest.MonkeyPatch.context() as patch:
        use_home(home, patch)
        before: list[str] = []
        for number in range(30):
            text = f"Node {number}. " + "And more. " * number
            added = trial_commands.ctx(home, "add", "--tag=a:b", "--type=fact", *before, text)
            before = ["--supersedes", added["node"]["id"]]
    return home / ".ctx" / "store.db"


@pytest.fixture
def path(base: Path, surroundings: Path, folder: Path) -> Path:
    """A store with thirty nodes, each superseding the one before, that nobody has open."""
    file = surroundings / ".ctx" / "store.db"
    file.parent.mkdir(mode=0o700)
    return Path(shutil.copy(base, file))


COMMANDS = [
    ["list"],
    ["list", "--tag=a:b", "--include-superseded"],
    ["search", "node"],
    ["query", "type:fact AND tag:a:b"],
    ["tags"],
    ["status"],
    ["export"],
    ["undo", "--list"],
    ["undo"],
    ["view", "render", "default"],
    ["add", "--type=fact", "--tag=a:b", "One more."],
    ["store", "backup"],
]


def overwritten(start: int, end: int | None = None) -> Callable[[Path], object]:
    def damage(path: Path) -> None:
        data = bytearray(path.read_bytes())
        data[start:end] = b"\x99" * len(data[start:end])
        path.write_bytes(data)

    return damage


DAMAGES: dict[str, Callable[[Path], object]] = {
    "header": overwritten(0, 100),
    "first page": overwritten(0, PAGE),
    "all but the header": overwritten(100),
    "all but the first page": overwritten(PAGE),
    "cut in half": lambda path: os.truncate(path, path.stat().st_size // 2),
    "cut within a page": lambda path: os.truncate(path, PAGE * 3 + 100),
    "hardly anything": lambda path: os.truncate(path, 10),
    "a text": lambda path: path.write_text("Dear diary,\n" * 1000),
    "noise": lambda path: path.write_bytes(random.Random(1).randbytes(20_000)),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_every_command_names_the_recovery_command(
    ctx: Ctx, path: Path, damage: Callable[[Path], object]
) -> None:
    damage(path)
    before = path.read_bytes()
    for words in COMMANDS:
        ran = ctx(*words)
        assert (ran.code, ran.out) == (1, ""), words
        told, hint = ran.err.splitlines()
        assert told.startswith(f"error E018: {path} is "), words
        assert "damaged" in told
        assert "`ctx store recover`" in hint
    assert path.read_bytes() == before
    assert ctx("store", "check").code == 1
    recovered = ctx("store", "recover")
    if recovered.code:
        assert recovered.err.startswith(f"error E018: Nothing can be read in {path}.")
        assert path.read_bytes() == before
    else:
        assert ctx("store", "check").code == 0
        kept = next(found for found in path.parent.iterdir() if ".damaged-" in found.name)
        assert kept.read_bytes()[100:] == before[100:]
        for words in COMMANDS:
            assert ctx(*words).code == 0, words


@pytest.mark.parametrize("suffix", ["-wal", "-shm", "-journal"])
@pytest.mark.parametrize("rubbish", [b"", b"rubbish " * 9000])
def test_invalid_files_beside_the_store_are_ignored(
    ctx: Ctx, path: Path, suffix: str, rubbish: bytes
) -> None:
    Path(f"{path}{suffix}").write_bytes(rubbish)
    for words in COMMANDS:
        ran = ctx(*words)
        assert ran.code == 0, (words, ran.err)
    assert ctx("store", "check").code == 0


def test_an_empty_file_is_a_new_store(ctx: Ctx, path: Path) -> None:
    path.write_bytes(b"")
    assert ctx("list") == (0, "No nodes.\n", "")
    assert ctx("add", "--type=fact", "One.").code == 0


def test_an_empty_file_with_a_log_is_a_damaged_store(ctx: Ctx, path: Path) -> None:
    """SQLite would treat it as new, and delete the log."""
    path.unlink()
    with closing(user_store.open_for_writing(str(path))):
        assert ctx("add", "--type=fact", "In the log.").code == 0
        log = Path(f"{path}-wal").read_bytes()
    path.write_bytes(b"")
    Path(f"{path}-wal").write_bytes(log)
    assert ctx("list").err.splitlines()[0] == (
        f"error E018: {path} is damaged: it is empty, and its log is not."
    )
    assert ctx("store", "recover").out.startswith("Recovered ")
    assert ctx("store", "check").code == 0
    assert "In the log." in ctx("list").out


def test_a_folder_in_place_of_the_store_is_an_error(ctx: Ctx, path: Path) -> None:
    path.unlink()
    path.mkdir()
    for words in [*COMMANDS, ["store", "check"], ["store", "recover"]]:
        ran = ctx(*words)
        assert (ran.code, ran.out) == (1, ""), words
        assert ran.err.startswith("error E014: "), (words, ran.err)


def test_random_damage_never_gives_an_internal_error(ctx: Ctx, path: Path) -> None:
    chance = random.Random(17)
    whole = path.read_bytes()
    used = [place for place, byte in enumerate(whole) if byte and place >= 100]
    seen = set()
    for _ in range(30):
        data = bytearray(whole)
        for _ in range(chance.choice([1, 4, 30])):
            place = chance.choice(used)
            length = chance.choice([1, 1, 50, PAGE])
            data[place : place + length] = chance.randbytes(len(data[place : place + length]))
        for words in (*chance.sample(COMMANDS, 2), ["store", "recover"]):
            for found in path.parent.iterdir():
                found.unlink()
            path.write_bytes(data)
            ran = ctx(*words)
            assert ran.code in (0, 1, 2), words
            assert "Unexpected" not in ran.err, (words, ran.err)
            seen.add(ran.err[:10])
        # The last of them was the recovery.
        if ran.code:
            assert "Nothing can be read" in ran.err
        else:
            checked = ctx("store", "check")
            assert checked.code == 0, checked.out
    assert {"", "error E018"} <= seen


def test_recovery_uses_the_newest_backup(ctx: Ctx, path: Path) -> None:
    """Readable rows, the newest backup, later changes: in these steps, and reported as such."""
    query = ("list", "--limit=0", "--include-superseded", "--format", "json")
    before = {node["id"]: node["content"] for node in ctx(*query).json["nodes"]}
    made = store_backups.make_daily_backup(str(path), 7)
    assert made is not None
    later = ctx("add", "--type=fact", "Said after the backup.")
    assert later.code == 0
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    whole = path.read_bytes()
    chance = random.Random(5)
    pages = len(whole) // PAGE
    seen = set()
    for number in (1, 3, pages // 3, pages // 2, pages - 1, pages):
        data = bytearray(whole)
        for page in chance.sample(range(pages), number):
            data[page * PAGE : (page + 1) * PAGE] = chance.randbytes(PAGE)
        for found in path.parent.glob("store.db*"):
            found.unlink()
        path.write_bytes(data)
        ran = ctx("store", "recover", "--format", "json")
        assert ran.code == 0, ran.err
        if not ran.json["damaged"]:
            # Only pages that nobody uses were hit.
            continue
        told = {step["name"]: step["told"] for step in ran.json["steps"]}
        assert told["newest backup"].startswith(f"{made.name}: ")
        assert ctx("store", "check").code == 0
        after = {node["id"]: node["content"] for node in ctx(*query).json["nodes"]}
        assert before.items() <= after.items()
        seen.add("Said after the backup." in after.values())
    # Where all of the file is gone, so is what only it had.
    assert seen == {True, False}


def test_a_damaged_backup_is_skipped(ctx: Ctx, path: Path) -> None:
    older = store_backups.make_daily_backup(str(path), 7)
    assert older is not None
    newer = Path(older.path).with_name("store-20991231T000000Z.db")
    newer.write_bytes(b"SQLite format 3\0" + b"\x99" * PAGE * 4)
    path.write_bytes(b"\x99" * path.stat().st_size)
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    ran = ctx("store", "recover")
    assert ran.code == 0, ran.err
    assert f"  3. newest backup: {newer.name} cannot be read either.\n" in ran.out
    assert f"  4. newest backup: {older.name}: " in ran.out
    assert ctx("list", "--limit=0", "--include-superseded", "--format", "json").json["total"] == 30


# On a terminal


def on_screen(words: list[str], folder: Path, answer: str = "") -> str:
    return on_a_terminal(words, folder, answer=answer).replace("\r\n", "\n")


@pytest.mark.parametrize("name", ["the table of nodes", "the beginning"])
def test_a_person_is_asked_whether_to_recover(
    ctx: Ctx, path: Path, folder: Path, name: str
) -> None:
    known = sorted(node["content"] for node in ctx("export").json["nodes"])
    assert store_backups.make_daily_backup(str(path), 3)
    assert ctx("add", "--type=fact", "After the backup").code == 0
    with closing(user_store.open_for_reading(str(path))) as connection:
        root = "SELECT rootpage FROM sqlite_master WHERE name = 'nodes'"
        page = connection.execute(root).fetchone()[0] - 1
    overwritten(*((0, 64) if name == "the beginning" else (page * PAGE, (page + 1) * PAGE)))(path)
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    damaged = path.read_bytes()
    words = ["list", "--include-superseded", "--limit=0"]
    declined = on_screen(words, folder, "n\n")
    assert "error E018" in declined
    assert "Recover the store now" in declined
    assert path.read_bytes() == damaged
    # Nobody can answer in a pipe.
    piped = ctx(*words)
    assert (piped.code, "Recover the store now" in piped.err) == (1, False)
    agreed = on_screen(words, folder, "y\n")
    assert "Recovered " in agreed
    assert "newest backup: " in agreed
    assert "Run the command again." in agreed
    [kept] = path.parent.glob("store.db.damaged-*")
    assert b"\x99" * 64 in kept.read_bytes()
    assert set(known) <= {node["content"] for node in ctx("export").json["nodes"]}
    assert "Recover the store now" not in on_screen(words, folder)


def test_only_a_damaged_store_is_recovered(path: Path, folder: Path) -> None:
    (path.parent / "ledger.db").write_bytes(b"not a database" * 500)
    shown = on_screen(["cost"], folder, "y\n")
    assert "error E" in shown
    assert "Recover the store now" not in shown
