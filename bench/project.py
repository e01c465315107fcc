"""The cost of project memory: staging, replay, switching branches, commands in a project.

Staging: a step of five objects, compared with writing and syncing only those five files, and with
all files that a step needs (the objects, the work commit and the session's ref).
Replay: an index of 50,000 records built from the objects, compared with inserting the same rows
into the same tables.
Switching: to heads whose index is cached, and to heads that are 100 records away from a cached one.
Commands: whole processes in a project of 10,000 nodes, and in one with 1,000 commits.

    python -m bench project [ROUNDS]
"""

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import patch

from bench import report, timing
from bench.crash import fresh_folder
from bench.timing import Cost, Figure, ms, times
from ctx import clock, disk, ids
from ctx.cli.main import main as run_ctx
from ctx.ids import ObjectId, SessionId
from ctx.memory.records import Record, edge_key
from ctx.objects.object_store import Object, blob, typed
from ctx.objects.object_types import Commit, StepKind
from ctx.objects.trees import EMPTY
from ctx.project import batches, project_index, project_index_state, staging
from ctx.sqlite.connection import transaction
from tests.e2e.growing_project import PROSE, TAGS, grow, open_project_memory, size
from tests.project.repositories import repository_at

# Unlike /tmp, it is never in memory, where fsync is free.
DISK = "/var/tmp"  # noqa: S108 - a fresh folder in it
RECORDS = 50_000
EACH = 5
"""Records about a node: the node, two tags, an edge, and a change."""
IN_A_COMMIT = 100
STEPS = 40


# Staging


class Staging:
    """Steps of five objects each."""

    def __init__(self, space: str) -> None:
        subprocess.run(["chattr", "+T", space], check=False, capture_output=True)
        self._numbers = count()
        self._repository = repository_at(tempfile.mkdtemp(dir=space))
        self._session = SessionId("bench")
        self._bare = tempfile.mkdtemp(dir=space)
        for number in range(256):
            os.mkdir(f"{self._bare}/{number:02x}")
        self._append(self._objects())
        os.sync()

    def ours(self) -> Cost:
        objects = self._objects()
        return timing.of_call(lambda: self._append(objects))

    def bare_objects(self) -> Cost:
        data = [each.canonical for each in self._objects()]
        return timing.of_call(lambda: self._write(data))

    def bare_files(self) -> Cost:
        """Including the work commit and the ref, which every step needs."""
        data = [each.canonical for each in self._objects()]
        return timing.of_call(lambda: self._write([*data, *data[:2]]))

    def _write(self, files: list[bytes]) -> None:
        for data in files:
            number = next(self._numbers)
            path = f"{self._bare}/{number % 256:02x}/{number}"
            fd = os.open(f"{path}.tmp", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            os.write(fd, data)
            disk.sync(fd)
            os.close(fd)
            os.rename(f"{path}.tmp", path)

    def _objects(self) -> list[Object]:
        number = next(self._numbers)
        return [blob(f"{number} {place} {PROSE * 4}".encode()) for place in range(5)]

    def _append(self, objects: list[Object]) -> None:
        payload = [each.id for each in objects]
        staging.append(self._repository, self._session, StepKind.COMMAND_RUN, objects, payload)


def staging_figures(rounds: int) -> list[Figure]:
    with tempfile.TemporaryDirectory(dir=DISK) as space:
        measured = Staging(space)
        sides = {
            "ours": measured.ours,
            "objects": measured.bare_objects,
            "files": measured.bare_files,
        }
        # Alternate step by step, because a disk is busy for short times.
        cost = timing.alternate(rounds * STEPS, sides)
    return [
        Figure(
            "stage a step of 5 objects, wall",
            ms(cost.wall("ours")),
            f"{ms(cost.wall(side))} for write, fsync and rename of {files}",
            "",
            times(cost.wall_ratio("ours", side)),
            limit,
        )
        for side, files, limit in (
            ("objects", "5 files", "2 ×"),
            ("files", "all 7 files of a step", ""),
        )
    ]


# Replay


def node_records(number: int) -> Iterator[Record]:
    """The records about one node."""
    node_id, before = _node_id(number), _node_id(number - 1)
    content = f"{number} {PROSE.format(n=number)}"
    tags = TAGS[number % len(TAGS)], f"ticket:{number % 97}"
    about: list[tuple[str, str, str | None, dict[str, Any]]] = [
        ("node.put", "", None, {"type": "fact", "content": content, "metadata": {"n": number}}),
        *(("tag.add", tag, None, {}) for tag in tags),
        ("node.put", "", None, {"summary": f"Summary {number}"}),
    ]
    if number:
        edge = {"id": ids.new_ulid(), "metadata": {"tool": "cli"}}
        about.append(("edge.put", edge_key("RELATES_TO", before), before, edge))
    change = ids.new_ulid()
    for place, (kind, key, target, body) in enumerate(about):
        stamp = (1_760_000_000_000 + number) << clock.COUNTER_BITS | place
        yield Record(
            ids.new_ulid(), stamp, change, "add", kind, node_id, key, target, body, "cli", "cli"
        )


def _node_id(number: int) -> ids.NodeId:
    return ids.NodeId(ids.derived_ulid(1_760_000_000_000 + number, f"{number}"))


class History:
    """A project with 50,000 records in 500 commits, and branches that continue from it."""

    def __init__(self, folder: str) -> None:
        os.makedirs(f"{folder}/.ctx/heads")
        self.repository = repository_at(folder)
        self.project = self.repository.project
        self._numbers = count()
        self.tip: ObjectId | None = None
        with patch.object(disk, "sync"):
            for _ in range(RECORDS // IN_A_COMMIT):
                self.tip = self.commit(self.tip)
        self.go(self.tip)

    def commit(self, parent: ObjectId | None) -> ObjectId:
        numbers = [next(self._numbers) for _ in range(IN_A_COMMIT // EACH)]
        batch = batches.encode_batch(
            [record for number in numbers for record in node_records(number)]
        )
        made = typed(
            Commit(
                parents=(parent,) if parent else (),
                timestamp_unix=1_760_000_000 + numbers[0],
                message=f"Commit {numbers[0]}",
                root_tree=EMPTY.id,
                record_batches=(batch.id,),
            )
        )
        self.repository.objects.write([batch, made])
        return made.id

    def go(self, head: ObjectId | None) -> None:
        """Make a commit the only head, as a checkout does."""
        assert head is not None
        for name in os.listdir(self.project.heads):
            os.unlink(f"{self.project.heads}/{name}")
        Path(self.project.heads, head).touch()

    def open(self) -> None:
        now = project_index_state.state(self.project)
        if connection := project_index_state.read_current(self.project, now, {}):
            connection.close()
            return
        made = project_index.open_index(self.repository, now)
        with closing(made.connection), transaction(made.connection):
            made.bring(now)

    def forget(self) -> None:
        shutil.rmtree(self.project.indexes, ignore_errors=True)


class Replay:
    """The same rows, built from the objects and inserted directly."""

    TABLES = ("records", "batches", "commits", "nodes", "tags", "edges", "views")

    def __init__(self, history: History, space: str) -> None:
        self._history = history
        self._space = space
        history.open()
        path = project_index_state.path_for(
            history.project, project_index_state.state(history.project)
        )
        with closing(sqlite3.connect(path)) as connection:
            self._schema = [
                row[0]
                for row in connection.execute(
                    # SQLite makes the tables of a text index with it.
                    "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE"
                    " '%_fts_%' ORDER BY type = 'trigger', type = 'index', rowid"
                )
            ]
            self._rows = {
                table: connection.execute(f"SELECT * FROM {table}").fetchall()
                for table in self.TABLES
            }
            self.records = len(self._rows["records"])

    def ours(self) -> Cost:
        self._history.forget()
        return timing.of_call(self._history.open)

    def bare(self) -> Cost:
        return timing.of_call(self._insert)

    def _insert(self) -> None:
        path = f"{tempfile.mkdtemp(dir=self._space)}/bare.db"
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = MEMORY")
            connection.execute("PRAGMA synchronous = OFF")
            with transaction(connection):
                for statement in self._schema:
                    connection.execute(statement)
                for table, rows in self._rows.items():
                    if not rows:
                        continue
                    places = ", ".join("?" * len(rows[0]))
                    connection.executemany(f"INSERT INTO {table} VALUES ({places})", rows)
        shutil.rmtree(os.path.dirname(path))


def replay_figures(rounds: int) -> list[Figure]:
    with tempfile.TemporaryDirectory(dir=DISK) as space:
        history = History(f"{space}/project")
        replay = Replay(history, space)
        cost = timing.alternate(rounds, {"ours": replay.ours, "bare": replay.bare})
        name = f"build the index of a project from {replay.records - 1:,} records"
        figures = [
            Figure(
                f"{name}, {kind}",
                ms(getattr(cost, kind.lower())("ours")),
                f"{ms(getattr(cost, kind.lower())('bare'))} for inserting the same rows",
                "",
                times(getattr(cost, f"{kind.lower()}_ratio")("ours", "bare")),
                limit,
            )
            for kind, limit in (("CPU", "2.5 ×"), ("wall", ""))
        ]
        figures += switching_figures(history, rounds)
    return figures


def switching_figures(history: History, rounds: int) -> list[Figure]:
    """Switch between two cached branches, and each time to a new one of 100 records."""
    tips = [history.tip, history.commit(history.tip)]
    for tip in tips:
        history.go(tip)
        history.open()

    def back() -> Cost:
        tips.reverse()
        history.go(tips[0])
        return timing.of_call(history.open)

    def unseen() -> Cost:
        history.go(history.commit(history.tip))
        return timing.of_call(history.open)

    seen = timing.alternate(rounds, {"back": back})
    new = timing.alternate(rounds, {"unseen": unseen})
    return [
        Figure(
            "switch to a set of heads that is cached, wall", ms(seen.wall("back")), limit="150 ms"
        ),
        Figure(
            f"switch to heads with 100 new records of {RECORDS:,}, wall",
            ms(new.wall("unseen")),
            limit="200 ms",
        ),
    ]


# Commands


def command_figures(rounds: int) -> list[Figure]:
    with fresh_folder(DISK) as folder:
        _begin(folder)
        with patch.object(disk, "sync"), open_project_memory(folder) as memory:
            grow(memory, commits=100, nodes=100)
        cost = _commands(
            rounds,
            {"list": ["list"], "add": ["add", "--type", "fact", "Said."], "bare": ["--version"]},
        )
        figures = [
            _command("`ctx list` in a project of 10,000 nodes", cost, "list"),
            _command("`ctx add` in a project of 10,000 nodes", cost, "add"),
        ]
    with fresh_folder(DISK) as folder:
        _begin(folder)
        before = size(folder / ".ctx")
        with patch.object(disk, "sync"), open_project_memory(folder) as memory:
            grow(memory, commits=1000, nodes=3)
        grown = size(folder / ".ctx") - before
        person = ("-c", "user.name=A Person", "-c", "user.email=person@example.org")
        for words in (["add", "-A"], [*person, "commit", "-qm", "Memory"]):
            subprocess.run(["git", *words], cwd=folder, check=True)

        def committing() -> Cost:
            run_ctx(["-q", "add", "--type", "fact", f"{next(numbers)}."])
            return _of_command(["commit", "-m", "One more"])

        numbers = count()
        sides = {"commit": committing, "bare": lambda: _of_command(["--version"])}
        cost = timing.alternate(rounds, sides)
        figures.append(_command("`ctx commit` after 1,000 commits", cost, "commit"))
    megabytes = f"{grown.bytes / 1e6:.1f} MB"
    return [
        *figures,
        Figure("1,000 commits of 3 nodes each, size", megabytes, limit="20 MB"),
        Figure("1,000 commits of 3 nodes each, files", f"{grown.files:,}", limit="8,000"),
    ]


def _begin(folder: Path) -> None:
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=folder, check=True)
    if run_ctx(["-q", "init"]):
        raise SystemExit("No project to measure.")


def _commands(rounds: int, commands: dict[str, list[str]]) -> timing.Rounds:
    def side(words: list[str]) -> Callable[[], Cost]:
        return lambda: _of_command(words)

    sides = {name: side(words) for name, words in commands.items()}
    timing.alternate(1, sides)
    return timing.alternate(rounds, sides)


def _of_command(words: list[str]) -> Cost:
    program = [str(Path(sys.executable).with_name("ctx")), "-q", *words]
    return timing.of_child(program if words != ["--version"] else [program[0], *words])


def _command(name: str, cost: timing.Rounds, side: str) -> Figure:
    return Figure(
        f"{name}, CPU",
        ms(cost.cpu(side)),
        f"{ms(cost.cpu('bare'))} for `ctx --version`",
        "",
        times(cost.cpu_ratio(side, "bare")),
    )


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    figures = staging_figures(rounds) + replay_figures(rounds) + command_figures(rounds)
    report.show("project", figures)


if __name__ == "__main__":
    main()
