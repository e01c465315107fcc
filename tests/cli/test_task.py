"""`ctx task`"""

from pathlib import Path
from typing import Any

import pytest

from ctx.operations.task import extract, task_word
from tests.cli.conftest import Add
from tests.conftest import Ctx, git


def nodes(ctx: Ctx) -> dict[str, Any]:
    found = ctx("list", "--all-projects", "--limit=0", "--format=json").json["nodes"]
    return {node["content"]: node for node in found}


def tags(ctx: Ctx) -> dict[str, list[str]]:
    return {content: node["tags"] for content, node in nodes(ctx).items()}


def test_from_start_to_end(folder: Path, ctx: Ctx, add: Add) -> None:
    add("--type=observation", "--tag=tier:working", "Before")
    add("--type=fact", "--tag=tier:reference", "Reference")
    before = tags(ctx)
    started = ctx("task", "start", "Implement OAuth")
    task = started.out.split()[1]
    assert started.out == (
        f"Started: {task} Implement OAuth (task:implement-oauth)\n1 working node added to it.\n"
    )
    assert ctx("undo").code == 0
    assert tags(ctx) == before
    task = ctx("task", "start", "Implement OAuth").out.split()[1]
    assert ctx("add", "--type=fact", "--tag=tier:working", "During").out.endswith(
        " (task:implement-oauth)\n"
    )
    add("--type=decision", "--tag=tier:working", "Decided")
    during = tags(ctx)
    working = ["task:implement-oauth", "tier:working"]
    names = ("Decided", "During", "Implement OAuth", "Before")
    assert during == {**dict.fromkeys(names, working), "Reference": ["tier:reference"]}
    current = ctx("task", "current").out
    assert current.startswith(f"{task} Implement OAuth (task:implement-oauth), started ")
    assert current.endswith(" ago, 3 working nodes\n")
    ended = ctx("task", "end")
    assert ended.out == (
        f"Ended: {task} Implement OAuth (task:implement-oauth)\n"
        "2 nodes archived, 1 kept as reference.\n"
    )
    archived = ["task:implement-oauth", "tier:off-context"]
    assert tags(ctx) == {
        **dict.fromkeys(names, archived),
        "Decided": ["task:implement-oauth", "tier:reference"],
        "Reference": ["tier:reference"],
    }
    metadata = nodes(ctx)["Implement OAuth"]["metadata"]
    assert metadata["status"] == "done"
    assert metadata["started"] <= metadata["ended"]
    assert ctx("task", "current").out == "No current task.\n"
    assert ctx("task", "current", "--format=json").json == {"task": None, "working": 0}
    assert ctx("undo").code == 0
    assert tags(ctx) == during
    # Once it was ended, it can be taken up again.
    ctx("task", "end")
    ctx("task", "start", "Implement OAuth")
    node = nodes(ctx)["Implement OAuth"]
    assert node["tags"] == working
    assert sorted(node["metadata"]) == ["slug", "started", "status"]
    assert node["metadata"]["status"] == "active"


def test_starting_again_changes_nothing(folder: Path, ctx: Ctx, add: Add) -> None:
    first = ctx("task", "start", "x", "--format=json").json
    before = ctx("export").out
    assert first["new"] is True
    for name in ("x", " X ", first["task"]["id"], first["task"]["short_id"]):
        again = ctx("task", "start", name, "--format=json").json
        assert (again["new"], again["replaced"], again["task"]) == (False, None, first["task"])
    assert ctx("export").out == before
    assert len(ctx("undo", "--list", "--format=json").json["changes"]) == 1
    # Names that differ in signs are different tasks.
    for name, word in (("C++", "c"), ("C#", "c-2"), ("c++", "c"), ("c-2", "c-2")):
        assert f"(task:{word})" in ctx("task", "start", name).out
    # One may be a node already, or only a tag.
    task = add("--type=task", "Write the docs\n\nall of them")
    started = ctx("task", "start", "write the docs", "--format=json").json
    assert started["task"]["id"].startswith(task)
    assert started["task"]["task"] == "write-the-docs"
    ctx("update", task, "--content=Write all the docs")
    assert ctx("task", "end", "--format=json").json["task"]["id"].startswith(task)
    add("--type=fact", "--tag=tier:working", "--tag=task:loose", "Note")
    assert ctx("task", "end", "loose").out == (
        "Ended: task:loose\n1 node archived, 0 kept as reference.\n"
    )


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


def test_the_current_task_follows_undo_and_redo(
    tmp_path: Path, ctx: Ctx, add: Add, monkeypatch: pytest.MonkeyPatch
) -> None:
    def current() -> str | None:
        task = ctx("task", "--format=json").json["task"]
        return task["task"] if task else None

    def last() -> str:
        made: str = ctx("undo", "--list", "--limit=1", "--format=json").json["changes"][0]["id"]
        return made

    for name in ("site", "shop"):
        git("init", "-q", str(tmp_path / name))
    monkeypatch.chdir(tmp_path / "shop")
    ctx("task", "start", "alpha")
    ctx("task", "start", "beta")
    ctx("undo")
    assert current() == "alpha"
    ctx("undo", last())
    assert current() == "beta"
    ctx("task", "end")
    assert current() is None
    # Undoing elsewhere concerns the task of this place.
    monkeypatch.chdir(tmp_path / "site")
    ctx("undo")
    assert current() is None
    monkeypatch.chdir(tmp_path / "shop")
    assert current() == "beta"
    # The node of a task whose end is undone may be gone.
    node = ctx("task", "start", "gamma").out.split()[1]
    add("--type=observation", "--tag=tier:working", "note")
    ctx("task", "end")
    ended = last()
    ctx("delete", node)
    assert ctx("undo", ended).code == 0
    assert tags(ctx)["note"] == ["project:shop", "task:gamma", "tier:working"]


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


def test_mistakes(folder: Path, ctx: Ctx, add: Add) -> None:
    fact = add("--type=fact", "Fact")
    for words, told in (
        (["end"], "E011: No current task.\n  Name it: `ctx task end NAME`\n"),
        (["end", "nowhere"], "E020: There is no task 'nowhere'.\n  `ctx list --type=task` shows"),
        (["start", "!?"], "E011: '!?' cannot name a task.\n"),
        (["start", fact], f"E011: The node {fact} is of type fact, not a task.\n"),
        (["start", "01ZZZZZZZZZZ"], "E020"),
    ):
        assert ctx("task", *words).err.startswith(f"error {told}")
    assert nodes(ctx).keys() == {"Fact"}
    for name, word in (
        ("Implement OAuth", "implement-oauth"),
        ("  C++ / parser_v2!  ", "c-parser-v2"),
        ("設計 レビュー", "設計-レビュー"),
        ("हिन्दी पाठ", "हिन्दी-पाठ"),
        ("E\u0301te\u0301", "été"),
        ("x" * 80, "x" * 60),
        ("a" * 59 + " b", "a" * 59),
    ):
        assert task_word(name) == task_word(word) == word


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
    # In a project they have numbers.
    ctx("init")
    ctx("add", "task", "Of the project")
    lines = [line.split() for line in ctx("task", "list").out.splitlines()]
    assert ["task_0001", "open"] in [line[1:3] for line in lines]
