"""`ctx task`"""

from pathlib import Path
from typing import Any

import pytest

from ctx.operations.task import extract, task_word
from tests.cli.conftest import Add
from tests.conftest import Ctx, git


def nodes(ctx: Ctx) -> dict[str, Any]:
    found = ctx("list", "--limit=0", "--format=json").json["nodes"]
    return {node["content"]: node for node in found}


def tags(ctx: Ctx) -> dict[str, list[str]]:
    return {content: node["tags"] for content, node in nodes(ctx).items()}


def test_from_start_to_end(folder: Path, ctx: Ctx, add: Add) -> None:
    add("--type=observation", "--tag=tier:working", "Before")
    add("--type=fact", "--tag=tier:reference", "Reference")
    started = ctx("task", "start", "Implement OAuth")
    task = started.out.split()[1]
    assert started.out == (
        f"Started: {task} Implement OAuth (task:implement-oauth)\n1 working node added to it.\n"
    )
    assert ctx("add", "--type=fact", "--tag=tier:working", "During").out.endswith(
        " (task:implement-oauth)\n"
    )
    add("--type=decision", "--tag=tier:working", "Decided")
    assert tags(ctx) == {
        "Decided": ["task:implement-oauth", "tier:working"],
        "During": ["task:implement-oauth", "tier:working"],
        "Implement OAuth": ["task:implement-oauth", "tier:working"],
        "Reference": ["tier:reference"],
        "Before": ["task:implement-oauth", "tier:working"],
    }
    current = ctx("task", "current").out
    assert current.startswith(f"{task} Implement OAuth (task:implement-oauth), started ")
    assert current.endswith(" ago, 3 working nodes\n")
    ended = ctx("task", "end")
    assert ended.out == (
        f"Ended: {task} Implement OAuth (task:implement-oauth)\n"
        "2 nodes archived, 1 kept as reference.\n"
    )
    assert tags(ctx) == {
        "Decided": ["task:implement-oauth", "tier:reference"],
        "During": ["task:implement-oauth", "tier:off-context"],
        "Implement OAuth": ["task:implement-oauth", "tier:off-context"],
        "Reference": ["tier:reference"],
        "Before": ["task:implement-oauth", "tier:off-context"],
    }
    metadata = nodes(ctx)["Implement OAuth"]["metadata"]
    assert metadata["status"] == "done"
    assert metadata["started"] <= metadata["ended"]
    assert ctx("task", "current").out == "No current task.\n"
    assert ctx("task", "current", "--format=json").json == {"task": None, "working": 0}


def test_starting_again_changes_nothing(folder: Path, ctx: Ctx) -> None:
    first = ctx("task", "start", "x", "--format=json").json
    before = ctx("export").out
    assert first["new"] is True
    for name in ("x", " X ", first["task"]["id"], first["task"]["short_id"]):
        again = ctx("task", "start", name, "--format=json").json
        assert (again["new"], again["replaced"], again["task"]) == (False, None, first["task"])
    assert ctx("export").out == before
    assert len(ctx("undo", "--list", "--format=json").json["changes"]) == 1


def test_one_task_takes_the_place_of_another(folder: Path, ctx: Ctx, add: Add) -> None:
    ctx("task", "start", "one")
    add("--type=fact", "--tag=tier:working", "Of one")
    assert "It replaces task:one; agents are not shown nodes of that task.\n" in (
        ctx("task", "start", "two").out
    )
    assert "Of one" not in ctx("compose").out
    back = ctx("task", "start", "one")
    assert "joined" not in back.out
    assert "Of one" in ctx("compose").out
    # To end a task that is not the current one leaves the current one.
    ctx("task", "end", "two")
    assert ctx("task", "current", "--format=json").json["task"]["task"] == "one"


def test_a_task_that_was_ended_can_be_taken_up(folder: Path, ctx: Ctx) -> None:
    ctx("task", "start", "x")
    ctx("task", "end")
    ctx("task", "start", "x")
    node = nodes(ctx)["x"]
    assert node["tags"] == ["task:x", "tier:working"]
    assert sorted(node["metadata"]) == ["slug", "started", "status"]
    assert node["metadata"]["status"] == "active"


def test_a_summary_without_a_model(folder: Path, ctx: Ctx, add: Add) -> None:
    ctx("task", "start", "Parser")
    add("--type=observation", "--tag=tier:working", "First note")
    add("--type=open-question", "--tag=tier:working", "What about tabs?")
    fact = add("--type=fact", "--tag=tier:working", "Tabs are\nfour columns")
    add("--type=decision", "--tag=tier:working", "Recursive descent")
    add("--type=observation", "--tag=tier:working", "Second note")
    ended = ctx("task", "end", "--summarize")
    text = (
        "Task: Parser\n\nDecisions:\n- Recursive descent\n\n"
        "Facts and patterns:\n- Tabs are four columns\n\n"
        "Open questions:\n- What about tabs?\n\n"
        "Last observations:\n- First note\n- Second note\n"
    )
    assert ended.out.endswith(text)
    summary = nodes(ctx)[text.strip()]
    assert f"Created summary: {summary['id'][:12]}" in ended.out
    assert (summary["type"], summary["tags"]) == ("summary", ["task:parser", "tier:reference"])
    trace = ctx("trace", summary["id"], "--format=json").json
    assert len(trace["steps"]) == 6
    assert fact in ctx("trace", summary["id"]).out
    assert ctx("task", "end", "Parser", "--summarize").out.endswith(
        "0 nodes archived, 0 kept as reference.\n"
    )


def test_a_summary_keeps_to_its_size(folder: Path, ctx: Ctx, add: Add) -> None:
    ctx("task", "start", "x")
    for number in range(20):
        add("--type=observation", "--tag=tier:working", f"Note {number} {'word ' * 60}")
    summary = ctx("task", "end", "--summarize", "--format=json").json["summary"]
    assert summary["token_estimate"] <= 400
    lines = summary["content"].splitlines()
    assert lines[-3].startswith("- Note 19")
    assert lines[-1] == f"… and {20 - len(lines) + 5} more"
    assert extract("Task: x", []) == "Task: x"


def test_pinned_and_superseded_nodes(folder: Path, ctx: Ctx, add: Add) -> None:
    ctx("task", "start", "x")
    pinned = add("--type=fact", "--tag=tier:working", "--tag=tier:pinned", "Pinned")
    old = add("--type=decision", "--tag=tier:working", "Old")
    add("--type=decision", "--tag=tier:working", f"--supersedes={old}", "New")
    ended = ctx("task", "end", "--format=json").json
    assert len(ended["promoted"]) == 1
    shown = {
        node["content"]: node["tags"]
        for node in ctx("list", "--include-superseded", "--format=json").json["nodes"]
    }
    assert shown["Old"] == ["task:x", "tier:off-context"]
    assert shown["Pinned"] == ["task:x", "tier:off-context", "tier:pinned"]
    assert pinned in ctx("compose").out


def test_undo(folder: Path, ctx: Ctx, add: Add) -> None:
    add("--type=fact", "--tag=tier:working", "Note")
    add("--type=decision", "--tag=tier:working", "Decision")
    before = tags(ctx)
    ctx("task", "start", "x")
    assert ctx("undo").code == 0
    assert tags(ctx) == before
    ctx("task", "start", "y")
    started = tags(ctx)
    ctx("task", "end", "--summarize")
    assert len(tags(ctx)) == 4
    assert ctx("undo").code == 0
    assert tags(ctx) == started


def test_the_current_task_follows_undo_and_redo(folder: Path, ctx: Ctx) -> None:
    def current() -> str | None:
        task = ctx("task", "--format=json").json["task"]
        return task["task"] if task else None

    def last() -> str:
        made: str = ctx("undo", "--list", "--limit=1", "--format=json").json["changes"][0]["id"]
        return made

    ctx("task", "start", "alpha")
    ctx("task", "start", "beta")
    ctx("undo")
    assert current() == "alpha"
    ctx("undo", last())
    assert current() == "beta"
    ctx("task", "end")
    assert current() is None
    ctx("undo")
    assert current() == "beta"


def test_undoing_elsewhere_leaves_the_task_of_this_place(
    tmp_path: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("shop", "site"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        git("init", "-q")
    monkeypatch.chdir(tmp_path / "shop")
    ctx("task", "start", "alpha")
    ctx("task", "end")
    monkeypatch.chdir(tmp_path / "site")
    ctx("undo")
    assert ctx("task").out == "No current task.\n"
    monkeypatch.chdir(tmp_path / "shop")
    assert "alpha" in ctx("task").out


def test_undoing_the_end_of_a_task_whose_node_is_gone(folder: Path, ctx: Ctx, add: Add) -> None:
    node = ctx("task", "start", "alpha").out.split()[1]
    add("--type=observation", "--tag=tier:working", "note")
    ctx("task", "end")
    change = ctx("undo", "--list", "--limit=1", "--format=json").json["changes"][0]["id"]
    ctx("delete", node)
    assert ctx("undo", change).code == 0
    assert tags(ctx)["note"] == ["task:alpha", "tier:working"]


def test_names_that_differ_in_signs_are_different_tasks(folder: Path, ctx: Ctx) -> None:
    assert "(task:c)" in ctx("task", "start", "C++").out
    assert "(task:c-2)" in ctx("task", "start", "C#").out
    assert "(task:c)" in ctx("task", "start", "c++").out
    assert "(task:c-2)" in ctx("task", "start", "c-2").out


def test_a_secret_in_a_name_is_kept_nowhere(folder: Path, ctx: Ctx, surroundings: Path) -> None:
    ran = ctx("task", "start", "rotate password=hunter2correcthorse99")
    assert "1 secret removed: name, line 1 (password)" in ran.err
    for file in (surroundings / ".ctx").iterdir():
        assert b"hunter2" not in file.read_bytes()


def test_tasks_of_two_projects(
    tmp_path: Path, ctx: Ctx, add: Add, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("shop", "site"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        git("init", "-q")
        add("--type=fact", "--tag=tier:working", f"--tag=project:{name}", f"Of {name}")
    # In `site`: what belongs to the shop is let alone.
    assert "1 working node added to it." in ctx("task", "start", "release").out
    monkeypatch.chdir(tmp_path / "shop")
    assert ctx("task", "current").out == "No current task.\n"
    assert tags(ctx)["Of shop"] == ["project:shop", "tier:working"]
    started = ctx("task", "start", "release", "--format=json").json
    assert started["new"] is True
    assert ctx("task", "end").code == 0
    assert tags(ctx)["Of shop"] == ["project:shop", "task:release", "tier:off-context"]
    assert tags(ctx)["Of site"] == ["project:site", "task:release", "tier:working"]


def test_a_task_that_is_only_a_tag(folder: Path, ctx: Ctx, add: Add) -> None:
    add("--type=fact", "--tag=tier:working", "--tag=task:loose", "Note")
    assert ctx("task", "end", "loose").out == (
        "Ended: task:loose\n1 node archived, 0 kept as reference.\n"
    )


def test_a_node_that_is_a_task_already(folder: Path, ctx: Ctx, add: Add) -> None:
    task = add("--type=task", "Write the docs\n\nall of them")
    started = ctx("task", "start", "write the docs", "--format=json").json
    assert started["task"]["id"].startswith(task)
    assert started["task"]["task"] == "write-the-docs"
    ctx("update", task, "--content=Write all the docs")
    assert ctx("task", "end", "--format=json").json["task"]["id"].startswith(task)


def test_mistakes(folder: Path, ctx: Ctx, add: Add) -> None:
    assert ctx("task", "end").err == (
        "error E011: No current task.\n  Name it: `ctx task end NAME`\n"
    )
    assert ctx("task", "end", "nowhere").err == (
        "error E020: There is no task 'nowhere'.\n  `ctx list --type=task` shows them.\n"
    )
    assert ctx("task", "start", "!?").err == (
        "error E011: '!?' cannot name a task.\n  A name has at least one letter or digit.\n"
    )
    fact = add("--type=fact", "Fact")
    assert ctx("task", "start", fact).err == (
        f"error E011: The node {fact} is of type fact, not a task.\n"
        "  `ctx list --type=task` shows tasks.\n"
    )
    unknown = ctx("task", "start", "01ZZZZZZZZZZ")
    assert (unknown.code, unknown.err.split(":")[0]) == (1, "error E020")
    assert nodes(ctx).keys() == {"Fact"}


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("Implement OAuth", "implement-oauth"),
        ("implement-oauth", "implement-oauth"),
        ("  C++ / parser_v2!  ", "c-parser-v2"),
        ("設計 レビュー", "設計-レビュー"),
        ("हिन्दी पाठ", "हिन्दी-पाठ"),
        ("E\u0301te\u0301", "été"),
        ("x" * 80, "x" * 60),
        ("a" * 59 + " b", "a" * 59),
    ],
)
def test_the_word_of_a_name(name: str, word: str) -> None:
    assert task_word(name) == word
    assert task_word(word) == word


def test_listing_tasks_with_their_state(ctx: Ctx, folder: Path) -> None:
    assert ctx("task", "list").out == 'No tasks. To start one: `ctx task start "…"`\n'
    for name in ("First", "Second", "Third"):
        assert ctx("task", "start", name).code == 0
    ctx("task", "end", "First")
    ctx("add", "task", "Later")
    listed = ctx("task", "list", "--json").json
    assert [(each["name"], each["state"]) for each in listed["tasks"]] == [
        ("Third", "current"),
        ("Second", "active"),
        ("Later", "open"),
    ]
    assert listed["done"] == 1
    text = ctx("task", "list").out
    assert text.endswith("  … and 1 done (--all)\n")
    assert "task_" not in text
    assert "done" in ctx("task", "list", "--all").out.splitlines()[-1]


def test_tasks_of_a_project_are_listed_by_number(ctx: Ctx, project: Path) -> None:
    ctx("add", "task", "Later")
    [line] = ctx("task", "list").out.splitlines()
    assert line.split()[1:3] == ["task_0001", "open"]
