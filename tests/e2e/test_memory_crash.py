"""A command that is stopped anywhere is done or not done; reported changes are kept."""

import json
import os
import random
import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ctx.cli.main import main
from ctx.memory import user_store
from ctx.sqlite import truth
from tests import effort
from tests.conftest import Ctx
from tests.e2e.command_examples import STORE_WRITES, filled, leaf, lines
from tests.e2e.forked_commands import Forker

TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:]+Z")
FILES = ("main.py", "export.json", "other.db")
KILLS = effort.times(2)
"""For each command; `bench/memory_crash.py` does more."""


class UsedStore:
    """A store with some history, and the commands that can follow."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "base" / "store.db"
        self._folder = folder
        self.file.parent.mkdir()
        self._ids: dict[str, str] = {}
        for number in range(6):
            self._add(f"Node {number}.", "--tag=a:b", f"--tag=number:{number}")
        for number in range(3):
            self._ctx(
                "link", self._ids[f"Node {number + 1}."], self._ids[f"Node {number}."],
                "--type=DERIVED_FROM",
            )  # fmt: skip
        self._ctx("task", "start", "the parser")
        self._add("A working note.", "--tag=tier:working")
        self._add("Another one.", "--tag=tier:working", "--type=decision")
        # Its receipt has items to be marked.
        self._ctx("query", "Node")
        self._add("Deleted.")
        self._ctx("delete", self._ids["Deleted."], "--yes")
        self._ctx("view", "create", "mine", "--query", "tag:a:b")
        self._prepare_files()
        self._ctx("tag", self._ids["Node 5."], "last:change")

    def _prepare_files(self) -> None:
        """Create another store to import and to restore, and a text file."""
        other = self._folder / "other.db"
        for number in range(40):
            words = ["add", "--type=fact", f"--tag=number:{number}", f"From far {number}."]
            assert main(["-q", *words, "--db", str(other)]) == 0
        exported = self._folder / "export.json"
        assert main(["-q", "export", "--db", str(other), "--output", str(exported)]) == 0
        (self._folder / "main.py").write_text("# A text\n\nOf some length.\n" * 50)

    def _ctx(self, *words: str) -> None:
        assert main(["-q", *words, "--db", str(self.file)]) == 0, words

    def _add(self, content: str, *words: str) -> None:
        self._ctx("add", "--type=fact", *words, content)
        with closing(sqlite3.connect(self.file)) as connection:
            query = "SELECT id FROM nodes WHERE content = ?"
            self._ids[content] = connection.execute(query, (content,)).fetchone()[0]

    def commands(self) -> dict[str, list[str]]:
        """The commands that write to the store, which run in the folder of the files."""
        nodes = [self._ids[name] for name in ("Node 1.", "Node 0.", "Deleted.")]
        found = {leaf(line): filled(line, *nodes) for line in lines(STORE_WRITES)}
        return {
            name: [f"{self._folder}/{word}" if word in FILES else word for word in words]
            for name, words in found.items()
        }


def state(path: Path) -> dict[str, Any]:
    """The content of a store, without ids and times that differ in every run."""
    with closing(user_store.open_for_reading(str(path))) as connection:
        content = dict(connection.execute("SELECT id, content FROM nodes").fetchall())
        tags: dict[str, list[str]] = {}
        for node_id, tag in connection.execute("SELECT node_id, tag FROM tags ORDER BY tag"):
            tags.setdefault(node_id, []).append(tag)
        nodes = connection.execute("SELECT id, superseded_by, type, summary, metadata FROM nodes")
        return {
            "nodes": sorted(
                [content[id_], content.get(later, ""), tags.get(id_, []), *rest, TIME.sub("", made)]
                for id_, later, *rest, made in nodes
            ),
            "edges": sorted(
                [content[row[0]], content[row[1]], row[2]]
                for row in connection.execute("SELECT from_id, to_id, type FROM edges")
            ),
            "views": connection.execute("SELECT name, query FROM views ORDER BY 1").fetchall(),
            "pending": connection.execute("SELECT key, value FROM pending ORDER BY 1").fetchall(),
        }  # fmt: skip


@pytest.fixture(scope="module")
def used_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UsedStore]:
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("lived")
        patch.setenv("CTX_HOME", str(folder))
        patch.chdir(folder)
        yield UsedStore(folder)


def copy_of(used_store: UsedStore, folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return Path(shutil.copyfile(used_store.file, folder / "store.db"))


def kill_all_commands(
    used_store: UsedStore, forked: Forker, folder: Path, kills: int, chance: random.Random
) -> tuple[int, int]:
    """Kill each command a few times; return how often nothing and everything was done."""
    undone = done = 0
    for name, command in used_store.commands().items():
        path = copy_of(used_store, folder)
        before = state(path)
        words = ["-q", *command, "--db", str(path)]
        ran = forked.run(words)
        assert ran.code == 0, f"{name}: {ran.err}"
        after = state(path)
        for _ in range(kills):
            path = copy_of(used_store, folder)
            moment = chance.uniform(0, ran.seconds * 1.1)
            killed = forked.run(words, kill_after=moment)
            where = f"{name}, killed after {moment * 1000:.1f} of {ran.seconds * 1000:.1f} ms"
            assert killed.code in (-9, 0), f"{where}: {killed.err}"
            found = state(path)
            assert found in (before, after), where
            assert killed.code or found == after, f"{where}: reported and lost"
            assert main(["-q", "store", "check", "--db", str(path)]) == 0, where
            undone += found == before
            done += found != before
            # And whatever was left behind, the store can be written to at once.
            words_after = ["-q", "add", "--type=fact", "After the crash.", "--db", str(path)]
            assert main(words_after) == 0, where
    return undone, done


def test_a_killed_command_is_done_or_not_done(
    used_store: UsedStore, tmp_path: Path, folder: Path, forked: Forker
) -> None:
    undone, done = kill_all_commands(
        used_store, forked, tmp_path / "copy", KILLS, random.Random(11)
    )
    assert undone + done == KILLS * len(used_store.commands())
    assert min(undone, done) > 5


@pytest.mark.parametrize("start", [0, 4096], ids=["cannot be opened", "can be opened"])
def test_a_recovery_can_be_killed_at_any_moment(
    used_store: UsedStore, tmp_path: Path, folder: Path, forked: Forker, ctx: Ctx, start: int
) -> None:
    before = state(copy_of(used_store, tmp_path / "copy"))

    def damaged() -> Path:
        path = copy_of(used_store, tmp_path / "copy")
        data = bytearray(path.read_bytes())
        data[start : start + 100] = b"\x99" * 100
        path.write_bytes(data)
        return path

    words = ["store", "recover", "--db", str(damaged())]
    ran = forked.run(words)
    assert (ran.code, "Nothing was lost." in ran.out) == (0, True), ran
    chance = random.Random(5)
    for _ in range(effort.times(5)):
        path = damaged()
        forked.run(words, kill_after=chance.uniform(0.2, 1.1) * ran.seconds)
        again = ctx("store", "recover", "--db", str(path))
        assert again.code == 0, again.err
        assert state(path) == before
        assert ctx("store", "check", "--db", str(path)).code == 0
        assert len(list(path.parent.glob("store.db.damaged-*Z"))) >= 1


def test_a_recovery_killed_between_its_two_renames_is_completed_by_the_next(
    used_store: UsedStore, tmp_path: Path, folder: Path, ctx: Ctx
) -> None:
    """At that moment no file has the store's name, and the new one waits beside it."""
    path = copy_of(used_store, tmp_path / "copy")
    before = state(path)
    path.rename(f"{path}{truth.NEXT}")
    assert ctx("store", "path", "--db", str(path), "--format=json").json["exists"] is True
    again = ctx("store", "recover", "--db", str(path))
    assert again.code == 0, again.err
    assert state(path) == before


def test_a_power_loss_at_any_byte_of_the_log_keeps_a_valid_store(
    used_store: UsedStore, tmp_path: Path, folder: Path, ctx: Ctx
) -> None:
    """With any part of the log on disk, the store has the state after some command."""
    path = copy_of(used_store, tmp_path / "copy")
    states, ends = [state(path)], [0]
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        # As long as somebody reads, nothing moves from the log into the file.
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM nodes").fetchone()
        base = path.read_bytes()
        for name, command in used_store.commands().items():
            if name.startswith("store"):
                continue
            ran = ctx("-q", *command, "--db", str(path))
            # Some find nothing to do any more after those before them.
            if ran.code == 0:
                states.append(state(path))
                ends.append(os.path.getsize(f"{path}-wal"))
        log = Path(f"{path}-wal").read_bytes()
        assert path.read_bytes() == base
    assert len(states) > 10
    chance = random.Random(7)
    anywhere = [chance.randrange(len(log)) for _ in range(effort.times(15))]
    cuts = [*ends, *(end - 1 for end in ends[1:]), *anywhere]
    cut_off = tmp_path / "cut" / "store.db"
    cut_off.parent.mkdir()
    for cut in cuts:
        for suffix in ("-wal", "-shm"):
            Path(f"{cut_off}{suffix}").unlink(missing_ok=True)
        cut_off.write_bytes(base)
        Path(f"{cut_off}-wal").write_bytes(log[:cut])
        last = max(number for number, end in enumerate(ends) if end <= cut)
        # A command may write something to the log after its change, such as a vector.
        possible = states[last : last + (1 if cut in ends else 2)]
        assert state(cut_off) in possible, f"cut at {cut} of {len(log)}"
        assert ctx("store", "check", "--db", str(cut_off)).code == 0


@pytest.mark.parametrize("name", ["add", "import", "store rebuild", "store restore"])
def test_a_full_disk_is_reported_and_loses_nothing(
    used_store: UsedStore, tmp_path: Path, folder: Path, forked: Forker, name: str
) -> None:
    """No file can grow: this is how SQLite sees a full disk."""
    words = used_store.commands()[name]
    path = copy_of(used_store, tmp_path / "copy")
    before = state(path)
    refused = 0
    for largest in (0, 1024, 40_000, 70_000, 110_000, 140_000):
        path = copy_of(used_store, tmp_path / "copy")
        ran = forked.run([*words, "--db", str(path)], largest_file=largest + 512)
        if ran.code == 0:
            assert state(path) != before or name == "store rebuild"
        else:
            refused += 1
            assert ran.code == 1, ran.err
            assert ran.err.startswith("error E014: "), ran.err
            assert state(path) == before, largest
        assert main(["-q", "store", "check", "--db", str(path)]) == 0
        assert main(["-q", "add", "--type=fact", "There is space again.", "--db", str(path)]) == 0
        assert [found.name for found in path.parent.glob("*.tmp*")] == []
    assert refused >= 2


def test_a_full_database_is_reported_and_loses_nothing(
    used_store: UsedStore, tmp_path: Path, folder: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = copy_of(used_store, tmp_path / "copy")
    before = state(path)
    opened = user_store.open_for_writing

    def small(name: str) -> sqlite3.Connection:
        connection = opened(name)
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")
        return connection

    with monkeypatch.context() as patch:
        patch.setattr(user_store, "open_for_writing", small)
        ran = ctx("add", "--type=fact", "x" * 100_000, "--db", str(path), "--format", "json")
    assert ran.code == 1
    error = json.loads(ran.err.splitlines()[-1])["error"]
    assert error["code"] == "E014"
    assert error["message"] == f"The disk is full while writing to {path}."
    assert state(path) == before
