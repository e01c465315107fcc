"""Vectors of nodes: computed on demand, searched, and removed with the node."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from ctx.ids import CLI_SESSION, NodeId, Ulid
from ctx.layout import UserStore
from ctx.operations.recall import Options, recall
from ctx.packs import node_vectors
from ctx.search.vectors import Vectors
from ctx.workspace import Environment, Memory, open_memory
from tests.cli.conftest import Add, add, project
from tests.conftest import Ctx
from tests.search.test_embedders import Fake, fake
from tests.search.test_vectors import Seeded

__all__ = ["add", "fake", "project"]

QUESTION = "How do people log in?"


@contextmanager
def open_store(home: Path, folder: Path, database: str = "") -> Iterator[Memory]:
    user_store = UserStore(str(home / ".ctx"))
    surroundings = Environment(str(folder), user_store, {}, (), CLI_SESSION, database)
    with open_memory(surroundings, writing=False) as memory:
        yield memory


def keys(path: Path | str) -> set[str]:
    with closing(Vectors(str(path))) as file:
        return set(file.keys())


def nearest(memory: Memory) -> list[str]:
    near = node_vectors.nearness(memory, QUESTION)
    assert near is not None
    found = near(None)
    assert near(list(found)) == pytest.approx(dict(found))
    ordered = sorted(found, key=lambda node_id: -found[node_id])
    return [node.content for node in memory.graph.nodes(ordered)]


def test_a_node_without_common_words_is_found(folder: Path, surroundings: Path, add: Add) -> None:
    add("--type=fact", "The moon is full of cheese")
    add("--type=fact", "Users authenticate with a password and a second factor")
    with open_store(surroundings, folder) as memory:
        assert nearest(memory)[0].startswith("Users authenticate")
        assert recall(memory, Options(QUESTION)).nodes == ()
    assert os.stat(surroundings / ".ctx" / "vectors.db").st_mode & 0o777 == 0o600


def test_a_node_without_a_stored_vector_is_compared_too(
    folder: Path, surroundings: Path, ctx: Ctx, add: Add
) -> None:
    add("--type=fact", "The moon is full of cheese")
    with open_store(surroundings, folder) as memory:
        near = node_vectors.nearness(memory, QUESTION)
        assert near is not None
        add("--type=fact", "Users authenticate with a password")
        new = NodeId(Ulid(ctx("search", "authenticate", "--json").json["nodes"][0]["id"]))
        known = next(node_id for node_id in near(None) if node_id != new)
        cosines = near([known, new])
        assert cosines[new] > cosines[known]
        node_vectors.fill(memory)
        assert near([known, new]) == pytest.approx(cosines, abs=0.01)


def test_vectors_that_are_kept_open_follow_the_nodes(
    project: Path, surroundings: Path, ctx: Ctx, add: Add
) -> None:
    kept = node_vectors.OpenVectors()

    def found() -> set[str]:
        with open_store(surroundings, project) as memory:
            near = node_vectors.nearness(memory, QUESTION, kept)
            assert near is not None
            return {node.content for node in memory.graph.nodes(near(None))}

    one = add("--type=fact", "Users log in with a password")
    assert found() == found() == {"Users log in with a password"}
    add("--type=fact", "People sign in by mail")
    assert found() == {"Users log in with a password", "People sign in by mail"}
    assert ctx("update", one, "--content", "Nothing of the kind").code == 0
    assert found() == {"Nothing of the kind", "People sign in by mail"}
    with open_store(surroundings, project) as memory:
        assert memory.project_memory is not None
        place = Path(memory.project_memory.project.vectors)
    for file in place.parent.glob(f"{place.name}*"):
        file.unlink()
    assert found() == {"Nothing of the kind", "People sign in by mail"}


def test_vectors_follow_the_nodes(project: Path, surroundings: Path, ctx: Ctx, add: Add) -> None:
    mine = add("--user", "--type=fact", "People sign in by mail")
    ours = add("--type=fact", "Users log in with a password")
    with open_store(surroundings, project) as memory:
        assert set(nearest(memory)) == {"People sign in by mail", "Users log in with a password"}
        assert memory.project_memory is not None
        place = memory.project_memory.project.vectors
        full = [memory.graph.find(each) for each in (mine, ours)]
    both = {full[0]}, {full[1]}
    assert (keys(surroundings / ".ctx" / "vectors.db"), keys(place)) == both
    for words in (["rebuild"], ["rebuild", "--full"]):
        assert ctx(*words).code == 0
        assert (keys(surroundings / ".ctx" / "vectors.db"), keys(place)) == both

    assert ctx("update", ours, "--content", "Nothing of the kind").code == 0
    with open_store(surroundings, project) as memory:
        assert nearest(memory)[-1] == "Nothing of the kind"

    # A node takes its vector with it, at once.
    assert ctx("delete", ours, "-y").code == 0
    assert keys(place) == set()
    assert ctx("forget", "sign in by mail", "-y").code == 0
    assert keys(surroundings / ".ctx" / "vectors.db") == set()


def test_without_vectors_there_is_no_nearness(
    folder: Path, surroundings: Path, ctx: Ctx, add: Add
) -> None:
    ctx("delete", add("--type=fact", "Users log in"), "-y")
    with open_store(surroundings, folder) as memory:
        assert node_vectors.nearness(memory, QUESTION) is None
    add("--type=fact", "Users log in")
    assert ctx("config", "set", "search.vectors", "false").code == 0
    with open_store(surroundings, folder) as memory:
        assert node_vectors.nearness(memory, QUESTION) is None
        assert node_vectors.fill(memory) == 0
        assert len(recall(memory, Options("log in")).nodes) == 1
    # A file that was named stands alone: nothing is written beside it.
    other = folder / "other.db"
    assert ctx("--db", str(other), "add", "--type=fact", "Users log in").code == 0
    with open_store(surroundings, folder, str(other)) as memory:
        assert node_vectors.nearness(memory, QUESTION) is None
    assert not (folder / "vectors.db").exists()


def test_vectors_follow_changes_by_other_processes(
    folder: Path, surroundings: Path, ctx: Ctx
) -> None:
    lines = folder / "facts.jsonl"
    lines.write_text("".join(f'{{"content": "Bananas, kind {n}"}}\n' for n in range(130)))
    assert ctx("import", str(lines)).code == 0
    with open_store(surroundings, folder) as memory:
        assert node_vectors.fill(memory) == 130
    # All of them at once, and long ago.
    with closing(sqlite3.connect(surroundings / ".ctx" / "store.db")) as store, store:
        long_ago = "2020-01-01T00:00:00Z"
        store.execute("UPDATE nodes SET content = 'Pools of sockets', updated_at = ?", (long_ago,))
    with open_store(surroundings, folder) as memory:
        assert node_vectors.fill(memory) == 130
        assert node_vectors.fill(memory) == 0
        near = node_vectors.nearness(memory, "Bananas")
        assert near is not None
        assert max(near(None).values()) < 0.5
        # Another model computes all vectors again.
        with closing(Vectors(str(surroundings / ".ctx" / "vectors.db"))) as file:
            for expected in (130, 0):
                assert node_vectors.bring_up_to_date(memory.user, file, Seeded()) == expected
            assert len(file.keys(Seeded())) == 130


def test_a_question_is_sent_to_the_server_once(
    folder: Path, surroundings: Path, ctx: Ctx, add: Add, fake: Fake
) -> None:
    add("--type=fact", "Users log in")
    for setting in ("embedder=openai", f"url={fake.url}", "model=small"):
        assert ctx("config", "set", *f"search.{setting}".split("=", 1)).code == 0
    with open_store(surroundings, folder) as memory:
        near = node_vectors.nearness(memory, QUESTION)
        assert near is not None
        # From here on it fails, and what it has said is enough.
        fake.says = (500, b"")
        assert near(None) == near(list(near(None)))
        assert len(near(None)) == 1
        assert [body["input"] for _, _, body in fake.asked].count([QUESTION]) == 1
        assert node_vectors.nearness(memory, QUESTION) is None
