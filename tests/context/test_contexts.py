"""A prepared context is used while it is valid, and not longer."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ctx import clock, layout
from ctx.context import contexts, layers
from ctx.context.contexts import Context, ContextItem, ContextKey
from ctx.ids import NodeId, Ulid
from ctx.layout import Place
from ctx.memory import pending
from ctx.memory.changes import Change, changing
from ctx.memory.graph import Graph
from ctx.sqlite.connection import transaction
from tests.conftest import git
from tests.memory import graphs

DAY_MS = 86_400_000
HERE = Place("/work/app", "app", "current_task:app:main")
ONE, OTHER = (NodeId(Ulid(f"01KF{number:022d}")) for number in (1, 2))
CONTEXT = Context("Text, 更新.\n", 9, (ContextItem(ONE, "fact:01KF00000001", "2026", 7, "0a0b"),))


def keep(graph: Graph, key: ContextKey, context: Context = CONTEXT) -> None:
    with transaction(graph.connection):
        contexts.keep(graph.connection, key, context, clock.iso(clock.now_ms()))


def test_a_stored_context_is_ready() -> None:
    with graphs.graph() as graph:
        key = ContextKey(HERE, "")
        assert contexts.valid_context(graph.connection, key) is None
        keep(graph, key)
        assert contexts.valid_context(graph.connection, key) == CONTEXT
        keep(graph, key, CONTEXT._replace(text="Another."))
        found = contexts.valid_context(graph.connection, key)
        assert found is not None
        assert found.text == "Another."
        rows = graph.connection.execute("SELECT place, project FROM contexts").fetchall()
        assert rows == [("/work/app#1", "app")]


def test_each_place_part_and_day_has_its_own_context() -> None:
    here = ContextKey(HERE, "", day="20407 +0")
    with graphs.graph() as graph:
        keep(graph, here)
        for other in (
            ContextKey(HERE._replace(folder="/work/app2"), ""),
            here._replace(place=HERE._replace(project="renamed")),
            here._replace(place=HERE._replace(project=None)),
            here._replace(settings="3000"),
            here._replace(part=2),
            here._replace(day="20408 +0"),
        ):
            assert contexts.valid_context(graph.connection, other) is None
        second = CONTEXT._replace(text="Part 2.")
        keep(graph, here._replace(part=2), second)
        assert contexts.valid_context(graph.connection, here) == CONTEXT
        assert contexts.valid_context(graph.connection, here._replace(part=2)) == second


CHANGES: dict[str, Callable[[Change], object]] = {
    "add": lambda change: change.add_node("fact", "New."),
    "update": lambda change: change.update_node(ONE, content="Changed."),
    "tag": lambda change: change.tag(ONE, "tier:pinned"),
    "untag": lambda change: change.untag(ONE, "tier:working"),
    "link": lambda change: change.link(ONE, OTHER, "SUPERSEDES", {}),
    "view": lambda change: change.put_view("default", "type:fact", None),
    "task": lambda change: change.set_current_task("current_task:app:main", "x"),
    "delete": lambda change: change.delete_node(ONE),
}


def test_every_change_of_memory_invalidates_a_context() -> None:
    with graphs.graph() as graph:
        with changing(graph, "add", graphs.WHO) as change:
            for node_id in (ONE, OTHER):
                change.add_node("fact", "Text.", node_id=node_id)
            change.tag(ONE, "tier:working")
        for name in CHANGES:
            keep(graph, ContextKey(HERE, ""))
            assert contexts.valid_context(graph.connection, ContextKey(HERE, "")) == CONTEXT
            with changing(graph, name, graphs.WHO) as change:
                CHANGES[name](change)
            assert contexts.valid_context(graph.connection, ContextKey(HERE, "")) is None, name


def test_writes_outside_of_memory_keep_a_context_valid() -> None:
    with graphs.graph() as graph:
        keep(graph, ContextKey(HERE, ""))
        with changing(graph, "nothing", graphs.WHO):
            pass
        pending.put(graph.connection, "recall_results:a", "[]")
        pending.forget_session(graph.connection, "a")
        graph.connection.execute(
            "INSERT INTO events (id, session, event, at, body) VALUES ('1', 's', 'Stop', '', '{}')"
        )
        assert contexts.valid_context(graph.connection, ContextKey(HERE, "")) == CONTEXT


def test_settings_are_part_of_the_key(tmp_path: Path) -> None:
    home = str(tmp_path)
    nothing_set = contexts.settings(home, {})
    assert nothing_set == f"{contexts.FORMAT} "
    assert contexts.is_default(nothing_set)
    assert contexts.settings(home, {"CTX_HOME": home, "PATH": "/bin"}) == nothing_set
    small = contexts.settings(home, {"CTX_CONTEXT_BUDGET": "500"})
    assert small not in (nothing_set, contexts.settings(home, {"CTX_CONTEXT_BUDGET": "600"}))
    assert not contexts.is_default(small)
    config = tmp_path / "config.toml"
    config.write_text("[context]\nbudget = 500\n")
    first = contexts.settings(home, {})
    assert first not in (nothing_set, small)
    assert not contexts.is_default(first)
    assert contexts.settings(home, {}) == first
    config.write_text("[context]\nbudget = 600\n")
    os.utime(config, ns=(0, 1))
    second = contexts.settings(home, {})
    assert second != first
    config.write_text("[context]\nbudget = 1600\n")
    os.utime(config, ns=(0, 1))
    assert contexts.settings(home, {}) != second


def test_a_context_of_another_format_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with graphs.graph() as graph:
        keep(graph, ContextKey(HERE, contexts.settings(str(tmp_path), {})))
        monkeypatch.setattr(contexts, "FORMAT", contexts.FORMAT + 1)
        now = ContextKey(HERE, contexts.settings(str(tmp_path), {}))
        assert contexts.valid_context(graph.connection, now) is None
        assert contexts.is_default(now.settings)


def test_contexts_of_unused_places_are_removed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = clock.now_ms()
    elsewhere = ContextKey(HERE._replace(folder="/work/old"), "")
    with graphs.graph() as graph:
        for key, days in ((elsewhere, 0), (ContextKey(HERE, ""), 20)):
            monkeypatch.setattr(clock, "now_ms", lambda days=days: now + days * DAY_MS)
            keep(graph, key)
        for days, left in ((29, 2), (31, 1), (51, 0)):
            monkeypatch.setattr(clock, "now_ms", lambda days=days: now + days * DAY_MS)
            with transaction(graph.connection):
                contexts.forget_old(graph.connection)
            found = [
                contexts.valid_context(graph.connection, key)
                for key in (ContextKey(HERE, ""), elsewhere)
            ]
            assert found == [CONTEXT] * left + [None] * (2 - left)


def test_the_folders_of_a_working_tree_are_one_place(repo: Path, surroundings: Path) -> None:
    """So a session that starts in a sub-folder uses the context of the top folder."""
    home = str(surroundings / ".ctx")
    (repo / "src").mkdir()
    assert layout.place(str(repo / "src"), home) == layout.place(str(repo), home)
    git("commit", "-q", "--allow-empty", "-m", "First")
    git("worktree", "add", "-q", str(repo.parent / "tree"))
    tree = layout.place(str(repo.parent / "tree"), home)
    here = layout.place(str(repo), home)
    assert tree.project == here.project == "app"
    assert (tree.folder, tree.task_key) != (here.folder, here.task_key)


def test_a_problem_is_shown_while_it_lasts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = str(tmp_path)
    assert contexts.key_of(HERE, home, {}).health == ""
    (tmp_path / contexts.HEALTH).write_text("3 events were skipped <!-- x; `ctx status`.\nMore\n")
    key = contexts.key_of(HERE, home, {})
    assert contexts.notice(key, contexts.NO_STORE) == (
        " Something is wrong with ctx: 3 events were skipped <\\!-- x; `ctx status`."
    )
    with graphs.graph() as graph:
        wanted = layers.ContextRequest(
            None, None, 2_000, notice=contexts.notice(key, contexts.NO_STORE)
        )
        assert "3 events were skipped" in layers.context([graph.connection], wanted).text
    now = clock.wall_ms()
    monkeypatch.setattr(clock, "wall_ms", lambda: now + DAY_MS + 1_000)
    assert contexts.key_of(HERE, home, {}).health == ""
