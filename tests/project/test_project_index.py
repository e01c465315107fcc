"""After any sequence of moves, the index equals one that is built from scratch."""

import os
import shutil
import sqlite3
import tempfile
import tracemalloc
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from sqlite3 import Connection
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctx import clock, disk
from ctx.ids import ObjectId, SessionId, derived_ulid
from ctx.memory import records
from ctx.memory.materialise import materialise_all
from ctx.memory.records import Record
from ctx.objects import refs
from ctx.objects.loose_objects import LooseStore
from ctx.objects.object_store import Object, typed
from ctx.objects.object_types import Commit, StepKind, WorkCommit
from ctx.objects.trees import EMPTY
from ctx.project import batches, index_sync, project_index, project_index_state
from ctx.project.project_index import IndexedDocument
from ctx.project.project_index_state import Fingerprint
from ctx.sqlite.connection import transaction
from tests import effort
from tests.e2e.growing_project import open_project_memory
from tests.memory.graphs import TABLES, graph
from tests.memory.test_replay import RECORD_FIELDS, STAMP, generated_record
from tests.project.repositories import repository_at

Tables = dict[str, list[tuple[Any, ...]]]


class Kept(NamedTuple):
    """A generated commit."""

    parents: frozenset[int]
    batches: frozenset[int]
    amends: int | None


class Chain(NamedTuple):
    bases: frozenset[int]
    batches: tuple[int, ...]


class Drawn(NamedTuple):
    said: list[Record]
    batches: list[list[int]]
    """Of which records each is made. A record may be in several."""
    commits: list[Kept]


@st.composite
def drawn(draw: st.DrawFn) -> Drawn:
    told = draw(st.lists(st.tuples(STAMP, RECORD_FIELDS), min_size=1, max_size=20))
    # Somebody may use an id twice.
    last = len(told) - 1 if draw(st.booleans()) else max(0, len(told) - 3)
    said = [
        generated_record(min(number, last), stamp, *each)
        for number, (stamp, each) in enumerate(told)
    ]
    some = st.lists(st.integers(0, len(said) - 1), min_size=1, max_size=6, unique=True)
    made = draw(st.lists(some, min_size=1, max_size=6))
    numbers = st.frozensets(st.integers(0, len(made) - 1), max_size=3)
    commits: list[Kept] = []
    for number in range(draw(st.integers(1, 6))):
        before = st.integers(0, number - 1) if number else st.nothing()
        parents = st.frozensets(before, max_size=2) if number else st.just(frozenset())
        amends = st.one_of(st.none(), before) if number else st.none()
        commits.append(Kept(draw(parents), draw(numbers), draw(amends)))
    return Drawn(said, made, commits)


# What happens: where the project is at then, or what becomes of files.
MOVES = st.lists(
    st.one_of(
        st.tuples(st.just("heads"), st.frozensets(st.integers(0, 5), max_size=3)),
        st.tuples(
            st.just("chain"),
            st.sampled_from(["one", "two"]),
            st.frozensets(st.integers(0, 5), max_size=2),
            st.lists(st.integers(0, 5), max_size=3),
        ),
        st.tuples(
            st.just("document"),
            st.sampled_from(["a.md", "b.md"]),
            st.lists(st.integers(0, 19), max_size=3),
        ),
        st.tuples(st.just("lost"), st.sampled_from(["commit", "batch"]), st.integers(0, 5)),
        st.tuples(st.just("found")),
        st.tuples(st.just("index deleted")),
        st.tuples(st.just("index damaged")),
    ),
    min_size=1,
    max_size=12,
)


class World:
    """A project at some point of a history, and its expected graph."""

    def __init__(self, folder: str, drawn: Drawn) -> None:
        self._drawn = drawn
        os.mkdir(f"{folder}/.ctx")
        self.repository = repository_at(folder)
        self.project = self.repository.project
        made = [batches.encode_batch([drawn.said[each] for each in part]) for part in drawn.batches]
        self._batches = [each.id for each in made]
        self._commits: list[ObjectId] = []
        self._replaced: list[tuple[ObjectId, ...]] = []
        for number, kept in enumerate(drawn.commits):
            amends = None if kept.amends is None else self._commits[kept.amends]
            before = () if kept.amends is None else self._replaced[kept.amends]
            self._replaced.append((amends, *before) if amends else ())
            commit = typed(
                Commit(
                    parents=tuple(self._commits[each] for each in sorted(kept.parents)),
                    timestamp_unix=number,
                    message=f"{number}",
                    root_tree=EMPTY.id,
                    record_batches=tuple(self._batches[each] for each in sorted(kept.batches)),
                    amends=amends,
                    replaced=self._replaced[number],
                )
            )
            self._commits.append(commit.id)
            made.append(commit)
        self.repository.objects.write(made)
        self._heads: frozenset[int] = frozenset()
        self._chains: dict[str, Chain] = {}
        self._documents: dict[str, list[Record]] = {}
        self._lost: set[ObjectId] = set()
        self._seen = 0
        os.makedirs(self.repository.heads.folder)

    def move(self, kind: str, *told: Any) -> None:
        match kind, *told:
            case "heads", wanted:
                self._heads = frozenset(each % len(self._commits) for each in wanted)
                shutil.rmtree(self.repository.heads.folder)
                os.mkdir(self.repository.heads.folder)
                for each in self._heads:
                    Path(self.repository.heads.folder, self._commits[each]).touch()
            case "chain", session, bases, parts:
                self._stage(SessionId(session), bases, parts)
            case "document", path, said:
                some = [self._drawn.said[each % len(self._drawn.said)] for each in said]
                self._documents[path] = list(_overlay(path, _in_a_project(some)))
            case "lost", what, number:
                among = self._commits if what == "commit" else self._batches
                self._hide(among[number % len(among)])
                # An index that was made before goes on knowing what it held.
                shutil.rmtree(self.project.indexes, ignore_errors=True)
            case ("found",):
                for lost in sorted(self._lost):
                    os.rename(f"{self._path(lost)}~", self._path(lost))
                self._lost.clear()
            case ("index deleted",):
                shutil.rmtree(self.project.indexes, ignore_errors=True)
            case ("index damaged",):
                for path in Path(self.project.indexes).rglob(project_index_state.FILE):
                    path.write_bytes(path.read_bytes()[:50])

    def _stage(self, session: SessionId, bases: Iterable[int], parts: Iterable[int]) -> None:
        chain = Chain(
            frozenset(each % len(self._commits) for each in bases),
            tuple(each % len(self._batches) for each in parts),
        )
        name = refs.work(session)
        tip: ObjectId | None = None
        for number, each in enumerate(chain.batches):
            step = typed(
                WorkCommit(
                    parents=(tip,) if tip else (),
                    bases=tuple(self._commits[each] for each in sorted(chain.bases)),
                    session_id=session,
                    created_at=number,
                    step_kind=StepKind.NOTE,
                    payload=(self._batches[each],),
                )
            )
            self.repository.staged.write([step])
            tip = step.id
        self._chains[session] = chain
        self.repository.refs.move(name, self.repository.refs.read(name), tip)

    def _hide(self, object_id: ObjectId) -> None:
        if object_id not in self._lost:
            os.rename(self._path(object_id), f"{self._path(object_id)}~")
            self._lost.add(object_id)

    def _path(self, object_id: ObjectId) -> str:
        return f"{self.project.objects}/{object_id[:2]}/{object_id}"

    def expected(self) -> Tables:
        """The graph of all reachable records, built from scratch."""
        reached = self._reached()
        # A parent that cannot be read is a boundary: it was here.
        parents = {parent for each in reached for parent in self._drawn.commits[each].parents}
        known = {self._commits[each] for each in {*reached, *parents, *self._heads}}
        known.update(id for each in reached for id in self._replaced[each])
        numbers = {part for each in reached for part in self._drawn.commits[each].batches}
        for chain in self._chains.values():
            if chain.batches and known.issuperset(self._commits[each] for each in chain.bases):
                numbers.update(chain.batches)
        there = [each for each in numbers if self._batches[each] not in self._lost]
        said: dict[str, Record] = {}
        for number in sorted(there, key=lambda each: self._batches[each]):
            for each in self._drawn.batches[number]:
                said.setdefault(self._drawn.said[each].id, self._drawn.said[each])
        return made_at_once([*_in_a_project(said.values()), *self._overlays()])

    def _reached(self) -> set[int]:
        found: set[int] = set()
        waiting = list(self._heads)
        while waiting:
            each = waiting.pop()
            if each not in found and self._commits[each] not in self._lost:
                found.add(each)
                waiting += self._drawn.commits[each].parents
        return found

    def _overlays(self) -> list[Record]:
        return [record for part in self._documents.values() for record in part]

    def from_index(self) -> Tables:
        """The same graph from the index, after updating it."""
        now = project_index_state.state(self.project)
        opened = project_index.open_index(self.repository, now)
        with transaction(opened.connection):
            opened.bring(now)
            seen = {
                path: Fingerprint(hash(tuple(r.id for r in said)), 0, 0)
                for path, said in self._documents.items()
            }
            for path in opened.changed_documents(seen):
                opened.put_document(path, IndexedDocument(seen[path], self._documents[path]))
        assert project_index_state.holds(opened.connection, self.project, now)
        assert_sound(opened.connection)
        opened.connection.close()
        again = project_index_state.read_current(self.project, now, seen)
        assert again is not None
        try:
            return tables(again)
        finally:
            again.close()


def tables(connection: Connection) -> Tables:
    """The content of all derived tables of a project."""
    return {
        table: connection.execute(f"SELECT {columns} FROM {table} ORDER BY 1, 2, 3").fetchall()
        for table, columns in TABLES.items()
        if table != "pending"
    }


def assert_sound(connection: Connection) -> None:
    connection.execute("INSERT INTO nodes_fts(nodes_fts, rank) VALUES ('integrity-check', 1)")
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    homeless = (
        "SELECT id FROM records WHERE stamp > 0 AND batch NOT IN (SELECT number FROM batches)"
    )
    assert connection.execute(homeless).fetchall() == []


def _overlay(path: str, said: Sequence[Record]) -> Iterator[Record]:
    for number, each in enumerate(said):
        told = each._replace(id=derived_ulid(0, f"{path} {number} {each.id}"))
        yield told._replace(stamp=records.BEYOND)


def _in_a_project(said: Iterable[Record]) -> list[Record]:
    """The records without those that a project ignores."""
    return [each for each in said if each.kind != "task.set" and each.target != each.subject]


def made_at_once(said: Sequence[Record]) -> Tables:
    with graph() as fresh:
        with transaction(fresh.connection):
            # A project has no view that nobody made.
            fresh.connection.execute("DELETE FROM views")
            fresh.connection.execute("DELETE FROM records")
            records.insert(fresh.connection, said)
            materialise_all(fresh.connection)
        return tables(fresh.connection)


@contextmanager
def world(drawn: Drawn) -> Iterator[World]:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        # Nothing here is about power failures.
        patch.setattr(disk, "sync", lambda _: None)
        yield World(folder, drawn)


@pytest.mark.slow
@settings(max_examples=effort.times(20), deadline=None, derandomize=True)
@given(drawn(), MOVES)
def test_any_sequence_of_moves_gives_the_index_from_scratch(
    drawn: Drawn, moves: list[tuple[Any, ...]]
) -> None:
    with world(drawn) as there:
        assert there.from_index() == there.expected()
        for move in moves:
            there.move(*move)
            assert there.from_index() == there.expected(), move


def test_an_id_that_two_batches_use_does_not_make_the_order_matter() -> None:
    """The index of both is built anew as long as both are there."""

    def put(number: int, content: str) -> Record:
        body = {"type": "fact", "content": content}
        return generated_record(
            number, 1 << 20, "node.put", derived_ulid(1, "node"), "", None, body
        )

    said = [put(0, "One."), put(0, "Two."), put(0, "Three.")]
    one, two, three = (Kept(frozenset(), frozenset([each]), None) for each in range(3))
    both = [Kept(frozenset([0]), frozenset([1]), None), Kept(frozenset([1]), frozenset([0]), None)]
    with world(Drawn(said, [[0], [1], [2]], [one, two, three, *both])) as there:
        for heads in ([3], [0], [4], [1], [3, 2], [2], [3], [1]):
            there.move("heads", frozenset(heads))
            assert there.from_index() == there.expected(), heads


def test_a_new_index_reads_each_object_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It writes the records of many batches at once. And it has the same indexes and triggers as an
    empty one, although they are created last."""
    (tmp_path / ".ctx" / "heads").mkdir(parents=True)
    repository = repository_at(str(tmp_path))
    tip: ObjectId | None = None
    written = []
    for number in range(5):
        added = generated_record(
            number, number + 1, "node.put", derived_ulid(1, f"{number}"), "", None, {}
        )
        batch = batches.encode_batch([added])
        commit = typed(Commit((tip,) if tip else (), 1, "", EMPTY.id, record_batches=(batch.id,)))
        written += [batch, commit]
        tip = commit.id
    assert tip
    repository.objects.write(written)
    (tmp_path / ".ctx" / "heads" / tip).touch()
    read: list[ObjectId] = []
    original = LooseStore.read

    def counted(store: LooseStore, id: ObjectId) -> Object:
        read.append(id)
        return original(store, id)

    monkeypatch.setattr(LooseStore, "read", counted)
    inserted: list[int] = []
    insert_rows = records.insert_rows

    def insert(connection: Connection, rows: Iterable[tuple[object, ...]]) -> None:
        every = list(rows)
        inserted.append(len(every))
        insert_rows(connection, every)

    monkeypatch.setattr(records, "insert_rows", insert)
    made = project_index.open_index(repository, project_index_state.state(repository.project))
    assert sorted(read) == sorted(each.id for each in written)
    assert inserted == [5]
    assert made.connection.execute("SELECT count(*) FROM records WHERE stamp > 0").fetchone() == (
        5,
    )
    empty = sqlite3.connect(":memory:")
    project_index._create(empty)
    assert _indexes(made.connection) == _indexes(empty)
    made.connection.close()
    empty.close()


def _indexes(connection: Connection) -> set[tuple[str, str]]:
    sql = (
        "SELECT name, sql FROM sqlite_master WHERE type IN ('index', 'trigger') AND sql IS NOT NULL"
    )
    return set(connection.execute(sql))


def test_a_large_index_is_built_in_little_memory_and_shows_progress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_project_memory(tmp_path) as memory:
        (tmp_path / ".ctx" / "heads").mkdir(parents=True)
        tip: ObjectId | None = None
        for number in range(30):
            body = {"type": "fact", "content": "It.", "metadata": {"text": "x" * 500_000}}
            node_id = derived_ulid(1, f"{number}")
            added = generated_record(number, number + 1, "node.put", node_id, "", None, body)
            batch = batches.encode_batch([added])
            message = "y" * 200_000
            made = (tip,) if tip else ()
            commit = typed(Commit(made, 1, message, EMPTY.id, record_batches=(batch.id,)))
            tip = commit.id
            memory.repository.objects.write([batch, commit])
        assert tip
        (tmp_path / ".ctx" / "heads" / tip).touch()
        monkeypatch.setattr(index_sync, "_KEPT_BYTES", 1_000_000)
        ticks: list[tuple[int, ...]] = []
        doing = []

        @contextmanager
        def progress(text: str) -> Iterator[clock.Tick]:
            doing.append(text)
            yield lambda *done: ticks.append(done)

        memory._progress = progress
        tracemalloc.start()
        connection = memory.graph.connection
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert connection.execute("SELECT count(*) FROM nodes").fetchone() == (30,)
        assert peak < 12_000_000
        assert doing == ["Reading the project's memory"]
        assert (29, 30) in ticks
