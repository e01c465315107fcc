"""Recall returns relevant nodes, and passages of other sources."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ctx.ids import CLI_SESSION
from ctx.layout import UserStore
from ctx.operations.passages import KINDS, Kind, Passage
from ctx.operations.recall import Options, RecallResult, recall, recall_everything
from ctx.operations.visible_nodes import VisibleNodes
from ctx.workspace import Environment, Memory, open_memory
from tests.cli.conftest import Add, add
from tests.conftest import Ctx, git

__all__ = ["add"]


@contextmanager
def open_memory_in(home: Path, folder: Path) -> Iterator[Memory]:
    surroundings = Environment(str(folder), UserStore(str(home / ".ctx")), {}, (), CLI_SESSION)
    with open_memory(surroundings, writing=False) as memory:
        yield memory


@pytest.fixture
def project(repo: Path, ctx: Ctx) -> Path:
    (repo / "retry.py").write_text("def retry(call):\n    '''Call again after a failure.'''\n")
    git("add", ".")
    git("commit", "-qm", "Retry failed payments\n\nThree times, with a pause.")
    assert ctx("init").code == 0
    (repo / ".ctx" / "narrative" / "README.md").write_text(
        "# Shop\n\nSells tea.\n\n## Payments\n\nA payment is retried three times.\n"
    )
    assert ctx("code", "index").code == 0
    return repo


def passage_summary(passage: Passage) -> tuple[str, str, str | None, int | None]:
    return passage.kind, passage.title, passage.path, passage.first_line


def contents(found: RecallResult) -> list[str]:
    return [node.content for node in found.nodes]


def test_nodes_narrative_and_commits_are_searched(
    project: Path, surroundings: Path, add: Add
) -> None:
    add("--type=decision", "Payments are retried, because banks are slow")
    add("--type=fact", "Tea comes from Assam")
    with open_memory_in(surroundings, project) as memory:
        found = recall_everything(memory, Options("why are payments retried?"), KINDS)
        assert contents(found) == ["Payments are retried, because banks are slow"]
        assert [passage_summary(each) for each in found.beside] == [
            ("narrative", "Shop › Payments", ".ctx/narrative/README.md", 5),
            ("commit", "Retry failed payments", None, None),
            ("file", "retry.py", "retry.py", None),
        ]
        node = found.nodes[0]
        assert found.scores == {node.id: 1.0}
        assert [name for name, _ in found.signals[node.id]] == ["text", "beginning"]
        commits: tuple[Kind, ...] = ("commits",)
        some = recall_everything(memory, Options("payments"), commits)
        assert [each.kind for each in some.beside] == ["commit"]
        assert some.beside[0].text == "Three times, with a pause."


def test_filters_apply_only_to_nodes(project: Path, surroundings: Path, add: Add) -> None:
    add("--type=decision", "Payments are retried")
    with open_memory_in(surroundings, project) as memory:
        for query in ("type:decision", "type:decision payments", "project:other payments"):
            assert recall_everything(memory, Options(query), KINDS).beside == ()
        other = Options("payments", visible=VisibleNodes(project="other"))
        assert recall_everything(memory, other, KINDS).beside == ()
        mine = recall_everything(memory.only("user"), Options("payments retried"), KINDS)
        assert mine.nodes == ()
        assert [each.kind for each in mine.beside] == ["commit", "file"]


def test_only_relevant_nodes_are_returned(folder: Path, surroundings: Path, add: Add) -> None:
    add("--type=fact", "Redis is a cache, with one server")
    for number in range(12):
        add("--type=fact", f"The server number {number}")
    with open_memory_in(surroundings, folder) as memory:
        found = recall(memory, Options("what is redis for on our server?"))
        assert contents(found) == ["Redis is a cache, with one server"]
        assert (found.total, found.partial) == (1, False)
        every = recall(memory, Options("server", limit=5))
        assert (len(every.nodes), every.total) == (5, 13)
        assert recall(memory, Options("server zebra", limit=0)).partial
        assert recall_everything(memory, Options("payments"), KINDS).beside == ()
