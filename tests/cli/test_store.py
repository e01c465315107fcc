"""`ctx store`: looking after the file."""

import os
import re
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from ctx import clock
from ctx.memory import user_store
from ctx.sqlite.connection import transaction
from tests.cli.conftest import Add
from tests.conftest import Ctx

NOW = 1_794_708_660_000


@pytest.fixture
def path(surroundings: Path, add: Add) -> Path:
    """The file of a store with three nodes, a tag and an edge."""
    one = add("--type=fact", "--tag=a:b", "The API speaks OAuth 2.0.")
    add("--type=decision", "--supersedes", one, "We use SQLite.")
    add("--type=task", "Write the parser.")
    return surroundings / ".ctx" / "store.db"


@pytest.fixture
def still(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "now_ms", lambda: NOW)


def contents(ctx: Ctx, *words: str) -> list[str]:
    ran = ctx("list", "--include-superseded", "--format", "json", *words)
    assert ran.code == 0, ran.err
    return sorted(node["content"] for node in ran.json["nodes"])


ALL = ["The API speaks OAuth 2.0.", "We use SQLite.", "Write the parser."]


def change_behind_our_back(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def names(path: Path) -> list[str]:
    found = (name for name in os.listdir(path.parent) if not name.endswith(("-wal", "-shm")))
    return sorted(found)


def test_tables_that_are_not_what_the_records_say(ctx: Ctx, path: Path) -> None:
    change_behind_our_back(
        path,
        "UPDATE nodes SET content = 'The API speaks Latin.', terms = '' WHERE type = 'fact'",
        "DELETE FROM nodes WHERE type = 'task'",
        "DELETE FROM edges",
    )
    checked = ctx("store", "check", "--format", "json")
    assert checked.code == 1
    told = [(each["table"], each["what"]) for each in checked.json["differences"]]
    assert told == [
        ("nodes", "another content, terms"),
        ("nodes", "missing"),
        ("edges", "missing"),
    ]
    assert not checked.json["sound"]
    shown = ctx("store", "check")
    assert shown.code == 1
    assert shown.out.startswith("3 rows differ from the records:\n")
    assert shown.out.endswith("To rebuild the tables: `ctx store rebuild`\n")
    assert ctx("store", "rebuild").out == "Rebuilt 3 nodes from 6 records.\n"
    assert ctx("store", "check").code == 0
    assert contents(ctx) == ALL
    assert contents(ctx, "--type=fact") == ["The API speaks OAuth 2.0."]
    # The index of words, and what the tables need beside their rows.
    for statements, words in (
        (["INSERT INTO nodes_fts(nodes_fts) VALUES ('delete-all')"], ["does not match the nodes"]),
        (
            ["DROP INDEX idx_tags_tag", "DROP INDEX idx_records_change", "DROP TRIGGER nodes_ai"],
            ["idx_tags_tag", "idx_records_change", "nodes_ai", "`ctx store rebuild`"],
        ),
    ):
        change_behind_our_back(path, *statements)
        checked = ctx("store", "check")
        assert checked.code == 1
        assert [word for word in words if word not in checked.out] == []
        assert ctx("store", "rebuild").code == 0
        assert ctx("store", "check").code == 0
    assert ctx("list", "--tag=a:b", "--include-superseded").out.startswith("  01")


def test_a_rebuild_does_not_drop_what_has_no_record_without_asking(ctx: Ctx, path: Path) -> None:
    change_behind_our_back(
        path,
        "INSERT INTO nodes (id, type, content, token_estimate, created_at, updated_at) VALUES"
        " ('01M7ESYZ1SB40000000000000A', 'fact', 'By hand.', 2, '2026-01-20T10:00:00Z',"
        " '2026-01-20T10:00:00Z')",
    )
    assert "it has no record" in ctx("store", "check").out
    asked = ctx("store", "rebuild")
    assert asked.code == 1
    assert asked.err.startswith("error E017: ")
    assert "1 row without a record would be deleted. Continue?" in asked.err
    recovered = ctx("store", "recover")
    assert "1 record rebuilt from the tables.\nNothing was lost." in recovered.out
    assert contents(ctx) == sorted([*ALL, "By hand."])
    assert ctx("store", "check").code == 0


@pytest.mark.usefixtures("still")
def test_backup_and_restore(ctx: Ctx, path: Path, add: Add) -> None:
    made = ctx("store", "backup", "--format", "json")
    backup = f"{path}.backup-20261115T021100Z"
    assert made.json == {
        "path": str(path),
        "backup": backup,
        "nodes": 3,
        "bytes": os.path.getsize(backup),
    }
    assert stat.S_IMODE(os.stat(backup).st_mode) == 0o600
    add("--type=fact", "One too many.")
    refused = ctx("store", "restore", backup)
    assert refused.code == 1
    assert refused.err.startswith("error E017: ")
    assert f"Replace the store by {backup} (3 nodes)?" in refused.err
    assert len(contents(ctx)) == 4
    kept = f"{path}.replaced-20261115T021100Z"
    assert ctx("store", "restore", backup, "--yes").out == (
        f"Restored 3 nodes from {backup}.\nThe previous store is kept: {kept}\n"
    )
    assert contents(ctx) == ALL
    assert contents(ctx, "--db", kept) == sorted([*ALL, "One too many."])
    assert ctx("store", "check").code == 0
    # Two in one second have two names.
    assert ctx("store", "backup").out.endswith("backup-20261115T021101Z\n")


def test_a_backup_is_never_written_over_anything(ctx: Ctx, path: Path, folder: Path) -> None:
    (folder / "mine").write_text("a letter")
    (folder / "link").symlink_to("nowhere")
    for name in ("mine", "link"):
        ran = ctx("store", "backup", name)
        assert (ran.code, ran.err.splitlines()[0]) == (
            1,
            f"error E015: {folder}/{name} already exists.",
        )
    assert (folder / "mine").read_text() == "a letter"
    assert ctx("store", "backup", "missing/folder/file").err.startswith("error E014: ")
    assert ctx("store", "backup", "new").code == 0
    # A folder is where it goes, under a name with the time.
    assert ctx("store", "backup", ".").code == 0
    kept = [name for name in sorted(os.listdir(folder)) if not name.startswith("store.db.backup-")]
    assert kept == ["link", "mine", "new"]


def test_where_there_is_no_store(ctx: Ctx, surroundings: Path, folder: Path, add: Add) -> None:
    for word in ("backup", "recover"):
        assert ctx("store", word).err.startswith("error E018: There is no store at ")
    assert not (surroundings / ".ctx").exists()
    asked = ctx("store", "path", "--db", "elsewhere.db", "--format", "json")
    assert asked.json == {"path": f"{folder}/elsewhere.db", "exists": False, "bytes": 0}
    assert not (folder / "elsewhere.db").exists()
    add("--type=fact", "One.")
    store = surroundings / ".ctx" / "store.db"
    assert ctx("store", "path").out == f"{store}\n"
    assert ctx("store", "check") == (0, "Checked 2 records and 1 node: no damage found.\n", "")
    assert ctx("store", "recover") == (0, "The store is not damaged.\n", "")
    assert names(store) == ["store.db"]
    # A backup while others write holds one moment, and becomes the store where there is none.
    with closing(user_store.open_for_writing(str(store))) as other, transaction(other):
        other.execute("DELETE FROM nodes")
        assert ctx("store", "backup", "copy").code == 0
    assert contents(ctx, "--db", "copy") == ["One."]
    restored = ctx("store", "restore", "copy", "--db", "far/away/store.db")
    assert restored == (0, f"Restored 1 node from {folder}/copy.\n", "")
    assert contents(ctx, "--db", "far/away/store.db") == ["One."]
    assert os.listdir(folder / "far" / "away") == ["store.db"]


def test_what_is_no_backup_is_refused(ctx: Ctx, path: Path, folder: Path) -> None:
    (folder / "folder").mkdir()
    (folder / "text").write_text("a letter")
    (folder / "empty").touch()
    change_behind_our_back(folder / "foreign", "CREATE TABLE t (a)")
    assert ctx("store", "backup", "damaged").code == 0
    damage(folder / "damaged", 4096 * 4, 4096 * 9)
    for name, code, message in (
        ("missing", "E015", "cannot be read: No such file"),
        ("folder", "E015", "is not a plain file"),
        ("text", "E018", "is not a store of ctx"),
        ("empty", "E018", "is not a store of ctx"),
        ("foreign", "E018", "not a store"),
        ("damaged", "E018", f"{folder}/damaged is damaged: "),
        (str(path), "E011", "That is the"),
    ):
        ran = ctx("store", "restore", name, "--yes")
        assert ran.code in (1, 2)
        assert ran.err.startswith(f"error {code}: ")
        assert message in ran.err
    assert contents(ctx) == ALL
    assert names(path) == ["store.db"]


def damage(path: Path, start: int, end: int) -> None:
    data = bytearray(path.read_bytes())
    data[start:end] = b"\xff" * (end - start)
    path.write_bytes(data)


@pytest.mark.usefixtures("still")
@pytest.mark.parametrize(("start", "end"), [(0, 100), (4096, 4096 * 4)], ids=["header", "middle"])
def test_a_damaged_store_is_recovered(ctx: Ctx, path: Path, start: int, end: int) -> None:
    damage(path, start, end)
    before = path.read_bytes()
    ran = ctx("list")
    assert (ran.code, ran.out) == (1, "")
    first, hint = ran.err.splitlines()
    assert first.startswith(f"error E018: {path} is ")
    assert "`ctx store recover`" in hint
    assert ctx("store", "check").code == 1
    assert ctx("store", "backup").err.startswith("error E018: ")
    tried = ctx("store", "recover", "--dry-run")
    assert tried.out.startswith("Could recover 3 nodes, 1 edge, 1 tag and 1 view: ")
    assert path.read_bytes() == before
    assert names(path) == ["store.db"]
    kept = f"{path}.damaged-20261115T021100Z"
    recovered = ctx("store", "recover")
    lines = recovered.out.splitlines()
    assert lines[0] == "Recovered 3 nodes, 1 edge, 1 tag and 1 view: 6 records."
    assert lines[-2:] == ["Nothing was lost.", f"The damaged file is kept: {kept}"]
    assert recovered.err == ""
    # But for SQLite's own counters in the header.
    assert Path(kept).read_bytes()[100:] == before[100:]
    assert contents(ctx) == ALL
    assert ctx("store", "check").code == 0
    assert names(path) == ["store.db", os.path.basename(kept)]


@pytest.mark.parametrize(("start", "end"), [(0, 100), (4096, 4096 * 4)], ids=["header", "middle"])
def test_a_link_to_the_store_stays_a_link(
    ctx: Ctx, path: Path, folder: Path, tmp_path: Path, start: int, end: int
) -> None:
    """What belongs to the file lies beside the file."""
    far = tmp_path / "far" / "memory.db"
    far.parent.mkdir()
    path.rename(far)
    path.symlink_to(far)
    assert ctx("store", "backup").code == 0
    damage(far, start, end)
    assert ctx("store", "recover").code == 0
    assert contents(ctx) == ALL
    (backup,) = far.parent.glob("memory.db.backup-*")
    assert ctx("store", "restore", str(backup), "--yes").code == 0
    assert contents(ctx) == ALL
    assert path.is_symlink()
    assert names(path) == ["store.db"]
    kept = sorted(name.rpartition("-")[0] for name in names(far) if name != "memory.db")
    assert kept == ["memory.db.backup", "memory.db.damaged", "memory.db.replaced"]


def test_where_nothing_can_be_read_the_newest_backup_takes_its_place(ctx: Ctx, path: Path) -> None:
    path.write_text("a letter in the wrong place\n" * 200)
    ran = ctx("store", "recover")
    assert ran.code == 1
    assert ran.err == (
        f"error E018: Nothing can be read in {path}.\n"
        "  There is no backup beside it either. Move it away to start with an empty"
        " store.\n"
    )
    path.unlink()
    assert ctx("add", "--no-tier", "--type=fact", "One.").code == 0
    assert ctx("store", "backup").code == 0
    (backup,) = path.parent.glob("*.backup-*")
    path.write_text("a letter in the wrong place\n" * 200)
    ran = ctx("store", "recover")
    assert f" newest backup: {backup.name}: 2 records from it.\n" in ran.out
    assert ctx("store", "check").code == 0
    assert contents(ctx) == ["One."]
    (kept,) = path.parent.glob("*.damaged-*")
    assert kept.read_text().startswith("a letter")


def test_another_programs_database_is_not_recovered(ctx: Ctx, path: Path) -> None:
    path.unlink()
    change_behind_our_back(path, "CREATE TABLE nodes (id TEXT)", "INSERT INTO nodes VALUES ('a')")
    before = path.read_bytes()
    for words in (["check"], ["recover"], ["rebuild"], ["backup"]):
        ran = ctx("store", *words)
        assert ran.err.startswith(f"error E018: {path} is a database of another program"), words
    assert path.read_bytes() == before
    assert names(path) == ["store.db"]


def test_a_file_that_was_cut_off_is_not_called_whole(ctx: Ctx, tmp_path: Path) -> None:
    lines = "".join(f'{{"content": "Node {number} has words"}}\n' for number in range(300))
    (tmp_path / "many.jsonl").write_text(lines)
    ctx("import", str(tmp_path / "many.jsonl"))
    ctx("store", "backup", str(tmp_path / "copy.db"))
    whole = (tmp_path / "copy.db").read_bytes()
    store = tmp_path / "cut.db"
    store.write_bytes(whole[: len(whole) // 16384 * 3 * 4096])
    ran = ctx("--db", str(store), "store", "recover")
    assert ran.code == 0
    # What is lost is shown before the store is replaced, and afterwards.
    for told in (ran.err, ran.out):
        assert re.search(r"Lost: .*\d\d records\.|More may be lost", told), told
        assert "`ctx sync` fetches what other machines have" in told
    assert "Nothing was lost" not in ran.out
    assert ran.err.startswith("Could recover")


def test_a_named_store_must_exist_unless_something_is_added(ctx: Ctx, folder: Path) -> None:
    for words in (
        ["list"],
        ["status"],
        ["search", "wal"],
        ["update", "01M7", "--content=x"],
        ["undo"],
    ):
        ran = ctx("--db=typo/store.db", *words)
        assert (words, ran.code, ran.out) == (words, 1, "")
        assert f"There is no store at {folder}/typo/store.db" in ran.err
    assert not (folder / "typo").exists()
    assert "typo/store.db does not exist" in ctx("--db=typo/store.db", "doctor").out
    assert ctx("--db=typo/store.db", "add", "A fact").code == 0
    assert "A fact" in ctx("--db=typo/store.db", "list").out
