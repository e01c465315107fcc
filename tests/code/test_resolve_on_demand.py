"""Names are resolved on demand, with the same answers as in a fully resolved index."""

import random
import shutil
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ctx import locks
from ctx.code import affected_files, build, lookup
from ctx.code.lookup import Code
from ctx.code.vocabulary import LABELS
from tests import effort
from tests.code.index_contents import Key, built, built_from_scratch, place, refreshed_and_resolved
from tests.code.test_build import MANY, NATIVE, PYTHON, WEB, Versions, change, large, start, steps
from tests.conftest import Ctx
from tests.files import write

Answer = tuple[object, ...]


class QueriedIndex:
    """An index that is queried for items by key instead of by id."""

    def __init__(self, root: Path, database: Path) -> None:
        self._place = place(root, database)
        opened = lookup.open_index(str(database), str(root), self.follow)
        assert opened is not None
        self.code: Code = opened
        self.followed: list[int] = []
        paths = dict(self.code.connection.execute("SELECT id, path FROM files"))
        rows = self.code.connection.execute("SELECT id, kind, name, start, stop FROM items")
        self.items: dict[Key, int] = {
            (paths[item >> 16], start, stop, kind, name): item
            for item, kind, name, start, stop in rows
        }
        self.keys = {item: key for key, item in self.items.items()}

    def some(self, rng: random.Random, count: int) -> list[Key]:
        return rng.choices(sorted(self.items), k=count) if self.items else []

    def follow(self, files: object) -> None:
        assert isinstance(files, list)
        self.followed += files
        build.follow(self._place, files)

    def answer(self, key: Key) -> Answer:
        item = self.items[key]
        imports = [
            (self.keys[owner], each.line, self.keys.get(each.target or -1))
            for owner, each in self.code.imports(item >> 16)
        ]
        outward = [
            (each.label, self.keys[each.target], each.confidence, each.line, each.times)
            for each in self.code.edges_from([item])
        ]
        inward = [
            (self.keys[each.source], each.label, each.confidence, each.line, each.times)
            for each in self.code.edges_to([item])
        ]
        return sorted(imports, key=str), sorted(outward), sorted(inward)


@settings(
    max_examples=effort.times(8),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.sampled_from((PYTHON, NATIVE, WEB)), st.integers(0, 1), steps, st.integers(0, 1000))
@example(NATIVE, 0, [], 0)
@example(WEB, 0, [], 0)
# A file that has lost its import, and one that got the name from it.
@example(PYTHON, 1, [(0, "refresh", 0), (sorted(PYTHON).index("pkg/near.py"), "write", 0)], 14)
def test_answers_equal_those_of_a_fully_resolved_index(
    tmp_path: Path, pool: Versions, version: int, edits: list[tuple[int, str, int]], seed: int
) -> None:
    root, kept, new = tmp_path / "tree", tmp_path / "kept.db", tmp_path / "new.db"
    shutil.rmtree(root, ignore_errors=True)
    kept.unlink(missing_ok=True)
    start(root, pool, version)
    build.refresh(place(root, kept), at_once=0)
    rng = random.Random(seed)
    for number, what, chosen in edits:
        if what == "refresh":
            build.refresh(place(root, kept), at_once=0)
            with closing((queried := QueriedIndex(root, kept)).code.connection):
                for key in queried.some(rng, 3):
                    queried.answer(key)
        else:
            change(root, pool, number, what, chosen)
    build.refresh(place(root, kept), at_once=0)
    built_from_scratch(root, new)
    with (
        closing((queried := QueriedIndex(root, kept)).code.connection),
        closing((known := QueriedIndex(root, new)).code.connection),
    ):
        assert queried.items.keys() == known.items.keys()
        for key in queried.some(rng, 6):
            assert queried.answer(key) == known.answer(key)
        assert not known.followed
    assert refreshed_and_resolved(root, kept) == built(new)


def test_only_files_that_can_refer_to_an_item_are_resolved(tmp_path: Path) -> None:
    root, kept = tmp_path / "tree", tmp_path / "kept.db"
    files = {"a.py": "def f(): ...\n", "b.py": "from a import f as g\n", "d.py": "import a\n"}
    write(root, files | {"c.py": "from b import g\ndef h(): g()\n", "e.py": "import b\n"})
    build.refresh(place(root, kept), at_once=0)
    with closing((queried := QueriedIndex(root, kept)).code.connection):
        ids = {path: number for number, path in queried.code.connection.execute(
            "SELECT id, path FROM files"
        )}  # fmt: skip
        (f,) = queried.code.named("a.f")
        callers = queried.code.edges_to([f.id], ("CALLS",))
        assert [queried.code.located([edge.source])[0].name for edge in callers] == ["c.h"]
        # Who speaks of it, also under another name.
        assert queried.followed == [ids["b.py"], ids["c.py"]]
        queried.code.edges_to([f.id], LABELS)
        queried.code.edges_from([f.id])
        assert queried.followed == [ids["b.py"], ids["c.py"], ids["a.py"]]
        queried.code.importing_files()
        assert queried.followed[3:] == [ids["d.py"], ids["e.py"]]


def test_only_queried_files_are_resolved(tmp_path: Path) -> None:
    root, kept = tmp_path / "tree", tmp_path / "kept.db"
    files = {"a.py": "import b\ndef f(): b.g()\n", "b.py": "def g(): g()\n"}
    write(root, files | {"c.py": "from a import f\n", "d.py": "from a import f\nf()\n"})
    build.refresh(place(root, kept), at_once=0)
    with closing((queried := QueriedIndex(root, kept)).code.connection):
        a, b, c, d = (
            id for (id,) in queried.code.connection.execute("SELECT id FROM files ORDER BY path")
        )
        assert queried.code.joined_files([c, a, b]) == {a: {b, c}, b: {a}, c: {a}}
        assert queried.followed == sorted([a, b, c])
        assert queried.code.joined_files([a, c, d], ("CALLS",)) == {a: {d}, c: set(), d: {a}}
        assert queried.followed == [*sorted([a, b, c]), d]


def test_a_change_of_a_widely_used_name_marks_all_files_unresolved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(affected_files, "_ALWAYS_COUNTED", 20)
    root, kept = tmp_path / "tree", tmp_path / "kept.db"
    write(root, {"a.py": "def f(): ...\n", "alone.py": "def g(): ...\n"})
    write(root, {f"m{number}.py": "from a import f\nf()\n" for number in range(25)})
    refreshed_and_resolved(root, kept)
    (root / "a.py").write_text("def f(x): ...\ndef f(y): ...\n")
    build.refresh(place(root, kept), at_once=0)
    # Then everybody is looked at again, also who does not.
    assert built(kept).unresolved == 27
    assert refreshed_and_resolved(root, kept) == built_from_scratch(root, tmp_path / "new.db")


def test_many_files_stay_unresolved_until_a_query_needs_them(repo: Path, ctx: Ctx) -> None:
    large(repo / "tree")
    assert ctx("code", "outline", "tree/m0.py").code == 0
    status = ctx("code", "status", "--no-refresh", "--format", "json").json["coverage"]
    assert (status["files"], status["unresolved"], status["edges"]) == (MANY, MANY, 0)
    found = ctx("code", "callers", "f5", "--format", "json").json
    callers = {call["caller"]["name"] for call in found["calls"]}
    assert callers == {"tree.m10.C10.f10", "tree.m11.C11.f11"}
    status = ctx("code", "status", "--no-refresh", "--format", "json").json["coverage"]
    assert 0 < status["unresolved"] < MANY
    found = ctx("code", "cycles", "--format", "json").json
    assert found["files"] == MANY
    assert ctx("code", "status", "--no-refresh", "--format", "json").json["coverage"][
        "unresolved"
    ] == 0  # fmt: skip


def test_an_answer_states_that_names_could_not_be_resolved(repo: Path, ctx: Ctx) -> None:
    large(repo / "tree")
    assert ctx("code", "outline", "tree/m0.py").code == 0
    path = ctx("code", "status", "--no-refresh", "--format", "json").json["path"]
    with locks.hold(f"{path}.lock", "a test", 0):
        found = ctx("code", "callers", "f5", "--no-refresh", "--format", "json").json
    assert (found["calls"], found["age"]["state"]) == ([], "busy")
    found = ctx("code", "callers", "f5", "--no-refresh", "--format", "json").json
    assert (len(found["calls"]), found["age"]["state"]) == (2, "as it was")
