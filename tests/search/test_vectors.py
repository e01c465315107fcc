"""The file of vectors: filling, searching, and damage."""

import os
import stat
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctx import clock
from ctx.search.embedders import Embedder, default
from ctx.search.vectors import Vectors
from tests import effort

if TYPE_CHECKING:
    from ctx.search.embedders import Matrix


class Seeded(NamedTuple):
    """An embedder that gives every text a different random vector."""

    name: str = "seeded"
    version: str = "1"
    dimensions: int = 24

    def embed(self, texts: Sequence[str]) -> "Matrix":
        rows = numpy.zeros((len(texts), self.dimensions), numpy.float32)
        for row, text in zip(rows, texts, strict=True):
            if text:
                seed = [*text.encode(), *self.version.encode()]
                row += numpy.random.default_rng(seed).normal(size=self.dimensions)
                row /= numpy.linalg.norm(row)
        return rows


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "local" / "vectors.db")


@pytest.fixture
def vectors(path: str) -> Iterator[Vectors]:
    with closing(Vectors(path)) as opened:
        yield opened


NODES = {
    "a": "users log in with a password",
    "b": "the cake is baked in the oven",
    "c": "settings are read from a TOML file",
    "d": "",
}


def test_the_nearest_text_is_found(vectors: Vectors) -> None:
    assert vectors.fill(default(), NODES.items()) == 4
    expected = {"authentication": "a", "dessert recipe": "b", "configuration parsing": "c"}
    for question, key in expected.items():
        assert vectors.nearest(default(), question, limit=1)[0][0] == key
    assert vectors.nearest(default(), "") == []
    assert vectors.nearest(default(), "認証") == []
    # The search can be limited to some keys.
    ranked = [key for key, _ in vectors.nearest(default(), "authentication", ["c", "b", "x", "c"])]
    assert sorted(ranked) == ["b", "c"]
    assert vectors.nearest(default(), "authentication", []) == []
    assert vectors.nearest(default(), "authentication", limit=0) == []


def test_filling_again_embeds_only_changed_texts(vectors: Vectors) -> None:
    assert vectors.fill(Seeded(), NODES.items()) == 4
    assert vectors.fill(Seeded(), NODES.items()) == 0
    assert vectors.fill(Seeded(), {**NODES, "a": "something else", "e": "new"}.items()) == 2
    assert vectors.nearest(Seeded(), "something else", limit=1)[0][0] == "a"
    assert vectors.count(Seeded()) == 5


def test_filling_can_stop_and_continue(vectors: Vectors) -> None:
    texts = [(str(number), f"text {number}") for number in range(400)]
    assert vectors.fill(Seeded(), texts, limit=300) == 300
    assert vectors.fill(Seeded(), texts, go_on=clock.deadline(0)) == 0
    assert vectors.fill(Seeded(), texts) == 100
    assert vectors.count(Seeded()) == 400


def test_every_model_has_separate_rows(vectors: Vectors) -> None:
    newer, wider = Seeded(version="2"), Seeded(dimensions=32)
    vectors.fill(Seeded(), NODES.items())
    assert vectors.nearest(newer, NODES["a"]) == []
    assert vectors.fill(newer, [("a", NODES["a"])]) == 1
    assert vectors.fill(wider, [("b", NODES["b"])]) == 1
    assert [vectors.count(each) for each in (Seeded(), newer, wider)] == [4, 1, 1]
    assert dict(vectors.nearest(newer, NODES["a"])) == pytest.approx({"a": 1.0}, abs=0.01)
    assert dict(vectors.nearest(wider, NODES["b"])) == pytest.approx({"b": 1.0}, abs=0.01)


def test_the_stamp_of_a_text_is_stored_with_its_vector(vectors: Vectors) -> None:
    newer = Seeded(version="2")
    assert vectors.fill(Seeded(), NODES.items(), dict.fromkeys(NODES, "1")) == 4
    assert vectors.fill(newer, NODES.items(), {"a": "1"}) == 4
    assert vectors.stamps(newer) == {"a": "1", "b": "", "c": "", "d": ""}
    assert vectors.fill(newer, [("a", "something else"), ("b", NODES["b"])], {"b": "2"}) == 1
    assert vectors.stamps(newer) == {"a": "", "b": "2", "c": "", "d": ""}
    assert vectors.stamps(Seeded()) == {"b": "1", "c": "1", "d": "1"}


def test_a_removed_vector_is_erased_from_the_file(vectors: Vectors, path: str) -> None:
    vectors.fill(Seeded(), NODES.items())
    [row] = Seeded().embed([NODES["a"]])
    kept = numpy.rint(row * (127 / numpy.abs(row).max())).astype(numpy.int8).tobytes()
    files = [path, f"{path}-wal"]
    assert any(kept in Path(each).read_bytes() for each in files)
    assert vectors.forget(["a", "unknown"]) == 1
    assert not any(kept in Path(each).read_bytes() for each in files)
    assert vectors.count(Seeded()) == 3
    assert vectors.keep_only(["b", "z"]) == 2
    assert [key for key, _ in vectors.nearest(Seeded(), "anything")] == ["b"]
    assert vectors.keep_only([]) == 1
    assert vectors.nearest(Seeded(), "anything") == []


def test_reading_creates_no_file(vectors: Vectors, path: str) -> None:
    assert vectors.nearest(Seeded(), "anything") == []
    assert vectors.count(Seeded()) == 0
    assert vectors.forget(["a"]) == vectors.keep_only([]) == 0
    assert not os.path.exists(os.path.dirname(path))
    # The file is private.
    vectors.fill(Seeded(), NODES.items())
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode) == 0o700


@pytest.mark.parametrize("damage", ["not a database", "cut", "overwritten", "another layout"])
def test_a_damaged_file_is_rebuilt(path: str, damage: str) -> None:
    texts = [(str(number), f"text {number}") for number in range(900)]
    with closing(Vectors(path)) as vectors:
        vectors.fill(Seeded(), texts)
    whole = Path(path).read_bytes()
    match damage:
        case "not a database":
            Path(path).write_bytes(b"something else entirely" * 1_000)
        case "cut":
            Path(path).write_bytes(whole[: len(whole) // 2])
        case "overwritten":
            Path(path).write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))
        case _:
            # The version of the layout, in the head of the file.
            Path(path).write_bytes(whole[:60] + b"\x00\x00\x00\x63" + whole[64:])
    with closing(Vectors(path)) as vectors:
        assert len(vectors.nearest(Seeded(), "text 7", limit=3)) in (0, 3)
        vectors.fill(Seeded(), texts)
        assert vectors.nearest(Seeded(), "text 7", limit=1)[0][0] == "7"
        assert vectors.count(Seeded()) == 900


def test_several_threads_can_fill_and_read_at_once(path: str) -> None:
    def fill(first: int) -> int:
        with closing(Vectors(path)) as mine:
            texts = [(str(number), f"text {number}") for number in range(first, first + 400)]
            done = mine.fill(Seeded(), texts)
            assert mine.nearest(Seeded(), f"text {first}", limit=1)[0][0] == str(first)
            return done

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(fill, [0, 200, 400, 600])) >= 1_000
    with closing(Vectors(path)) as vectors, closing(Vectors(path)) as others:
        assert vectors.count(Seeded()) == 1_000
        # What another process adds is read.
        others.fill(Seeded(), [("b", "two")])
        assert vectors.nearest(Seeded(), "two", limit=1)[0][0] == "b"


@given(st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=40, unique=True), st.data())
@settings(max_examples=effort.times(25), deadline=None)
def test_the_nearest_vectors_equal_those_of_a_full_scan(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], data: st.DataObject
) -> None:
    asked = data.draw(st.sampled_from(texts))
    expected = (Seeded().embed(texts) @ Seeded().embed([asked])[0]).tolist()
    with closing(Vectors(str(tmp_path_factory.mktemp("v") / "v.db"))) as vectors:
        vectors.fill(Seeded(), zip(texts, texts, strict=True))
        found = vectors.nearest(Seeded(), asked, limit=len(texts))
    assert dict(found) == pytest.approx(
        dict(zip(texts, map(float, expected), strict=True)), abs=0.02
    )
    assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)


class Counted(Seeded):
    """An embedder for thousands of texts: the vector follows from a number."""

    def embed(self, texts: Sequence[str]) -> "Matrix":
        grid = numpy.outer([int(text) + 1 for text in texts], numpy.sqrt(numpy.arange(2, 26)))
        rows = numpy.sin(grid * 7.3)
        unit: Matrix = (rows / numpy.linalg.norm(rows, axis=1)[:, None]).astype(numpy.float32)
        return unit


@pytest.mark.slow
def test_among_very_many_vectors_the_signs_preselect(vectors: Vectors) -> None:
    embedder: Embedder = Counted()
    keys = [str(number) for number in range(21_000)]
    assert vectors.fill(embedder, zip(keys, keys, strict=True), limit=len(keys)) == len(keys)
    [asked] = embedder.embed(["777"])
    exact = embedder.embed(keys) @ asked
    best = [str(place) for place in numpy.argsort(-exact, kind="stable")[:10]]
    found = [key for key, _ in vectors.nearest(embedder, "777", limit=10)]
    assert found[0] == "777"
    assert len(set(found) & set(best)) >= 9
