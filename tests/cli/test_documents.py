"""Nodes that have a document: what commands do to them, they do to the file."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from ctx.narrative import narrative_files
from tests.conftest import Ctx, git
from tests.faults import NO_SPACE, Disk


@pytest.fixture
def task(ctx: Ctx, project: Path) -> Path:
    ctx("add", "task", "Add retry", "--body", "Five times.", "--tag=area:net", "--tag=urgent")
    [file] = (project / ".ctx/narrative/tasks").iterdir()
    return file


def node(ctx: Ctx, name: str = "task_0001") -> dict[str, Any]:
    found: dict[str, Any] = ctx("show", name, "--format=json").json["node"]
    return found


def body(file: Path) -> str:
    return file.read_text().partition("-->\n")[2]


def test_new_words_go_into_the_file(ctx: Ctx, task: Path) -> None:
    task.chmod(0o644)
    short = node(ctx)["id"][:12]
    ran = ctx("update", "task_0001", "--content", "Add retries\n\nTen times.", "--meta=size=small")
    assert ran == (0, f"Updated: {short} (content, metadata)\n", "")
    assert task.read_text().startswith("# Add retries\n\n<!-- metadata:\ncreated: ")
    assert body(task) == "\nTen times.\n"
    assert task.stat().st_mode & 0o777 == 0o644
    found = node(ctx)
    assert found["content"] == "Add retries\n\nTen times."
    assert found["metadata"]["size"] == "small"
    assert found["tags"] == ["area:net", "urgent"]
    again = ctx("update", "task_0001", "--content", "Add retries\n\nTen times.")
    assert again.out == f"Unchanged: {short}\n"
    assert ctx("update", "task_0001", "--content", "Only a title").code == 0
    assert (node(ctx)["content"], body(task).strip()) == ("Only a title", "")


def test_what_was_saved_in_between_is_not_written_over(
    ctx: Ctx, task: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = narrative_files.replace
    saved = "# A person was faster\n\n<!-- metadata:\ntags: [urgent]\n-->\n"

    def replace(folder: str, path: str, text: str, *, expected: bytes) -> bool:
        task.write_text(saved)
        return real(folder, path, text, expected=expected)

    monkeypatch.setattr(narrative_files, "replace", replace)
    ran = ctx("update", "task_0001", "--content", "Mine", "--meta=size=small")
    assert (ran.code, task.read_text()) == (1, saved)
    assert ran.err.startswith(f"error E008: The file tasks/{task.name} was changed just now.\n")
    found = node(ctx)
    assert (found["content"], "size" in found["metadata"]) == ("A person was faster", False)


@pytest.mark.slow
def test_on_a_full_disk_the_words_are_changed_or_not(ctx: Ctx, task: Path) -> None:
    before, stop, code = node(ctx), 0, 1
    text = task.read_text()
    while code:
        with Disk(stop, refuse_with=NO_SPACE).installed():
            code = ctx("update", "task_0001", "--content=New", "--meta=size=small").code
        assert node(ctx)["content"] == (before["content"] if code else "New")
        assert (task.read_text() == text) == bool(code)
        stop += 1
    assert node(ctx)["metadata"]["size"] == "small"
    assert stop > 10
    assert [path.name for path in task.parent.iterdir()] == [task.name]


def test_in_the_editor(
    ctx: Ctx, task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "editor"
    script.write_text('#!/bin/sh\nsed -i s/Five/Ten/ "$1"\n')
    script.chmod(0o755)
    monkeypatch.setenv("EDITOR", str(script))
    assert ctx("edit", "task_0001").out.endswith("(content)\n")
    assert body(task) == "\nTen times.\n"
    secret = "ghp_" + "k3X9w2Qz7Lm4Tn8Vb6Rc1Yd5Hf0Js2Pa4G7u"
    ran = ctx("update", "task_0001", "--content", f"Rotate\n\n{secret}")
    assert "1 secret removed: content, line 3" in ran.err
    assert secret not in task.read_text()
    # Without its file a node has its own words.
    task.unlink()
    assert ctx("update", "task_0001", "--content", "Mine now").code == 0
    assert node(ctx)["content"] == "Mine now"
    assert not task.exists()


def test_what_other_branches_have_too_is_left_to_people(ctx: Ctx, task: Path) -> None:
    git("init", "-q", "-b", "main")
    assert ctx("list").code == 0
    git("add", "-A")
    before = task.read_text()
    short = node(ctx)["id"][:12]
    ran = ctx("update", "task_0001", "--content", "Said by a command")
    assert ran.err == (
        f".ctx/narrative/tasks/{task.name} is in git and keeps its text; your change holds"
        f" until somebody edits the file. `ctx edit {short}` edits the file.\n"
    )
    assert (node(ctx)["content"], task.read_text()) == ("Said by a command", before)
    # What a person writes afterwards is the last word, and can be answered again.
    task.write_text("# Written by a person\n")
    assert node(ctx)["content"] == "Written by a person"
    assert ctx("update", "task_0001", "--content", "Said again").code == 0
    assert node(ctx)["content"] == "Said again"
    assert ctx("undo").code == 0
    assert node(ctx)["content"] == "Written by a person"


def test_a_tag_in_the_file_holds_until_it_is_taken_away(ctx: Ctx, task: Path) -> None:
    before = task.read_text()
    assert ctx("tag", "task_0001", "area:io").code == 0
    short = node(ctx)["id"][:12]
    ran = ctx("untag", "task_0001", "urgent", "area:io")
    assert ran.out == f"Untagged: {short} - urgent, - area:io\n"
    assert node(ctx)["tags"] == ["area:net"]
    assert task.read_text() == before
    ctx("tag", "task_0001", "urgent")
    assert node(ctx)["tags"] == ["area:net", "urgent"]
    ctx("untag", "task_0001", "urgent")
    task.write_text("# T\n\n<!-- metadata:\ntags: [tier:pinned, tier:working]\n-->\n")
    assert node(ctx)["tags"] == ["tier:working"], "nothing is pinned by itself"
    ctx("pin", "task_0001")
    assert node(ctx)["tags"] == ["tier:pinned", "tier:working"]
    ctx("unpin", "task_0001")
    ctx("tag", "task_0001", "tier:reference")
    assert node(ctx)["tags"] == ["tier:reference"]
    ctx("undo")
    assert node(ctx)["tags"] == ["tier:working"]


def test_a_deleted_node_leaves_its_file(ctx: Ctx, task: Path) -> None:
    ran = ctx("delete", "task_0001")
    assert ran.err == (
        f".ctx/narrative/tasks/{task.name} stays on disk; "
        "delete what you no longer need with `git rm`.\nTo restore it: `ctx undo`\n"
    )
    assert ctx("list").out == "No nodes.\n"
    task.write_text("# Said again\n")
    assert ctx("list").out == "No nodes.\n"
    ctx("undo")
    assert node(ctx)["content"] == "Said again"


def test_undoing_words_that_went_into_the_file(ctx: Ctx, task: Path) -> None:
    ctx("update", "task_0001", "--content", "Second\n\nTen times.")
    task.write_text(task.read_text().replace("Ten", "Eleven"))
    ctx("update", "task_0001", "--content", "Third", "--meta=size=small")
    for title, content in (("Second", "Second\n\nEleven times."), ("Second", None)):
        ran = ctx("undo")
        assert ran.out.startswith("Undone: update at ")
        assert node(ctx)["content"] == (content or "Second\n\nEleven times.")
        assert task.read_text().startswith(f"# {title}\n")
    # A person's words were not said by a command, and stay.
    assert "warning: content of" in ran.err
    changes = ctx("undo", "--list", "--format=json").json["changes"]
    assert ctx("undo", changes[1]["id"]).out.startswith("Redone")
    assert (node(ctx)["content"], node(ctx)["metadata"]["size"]) == ("Third", "small")
    assert task.read_text().startswith("# Third\n")
    git("init", "-q", "-b", "main")
    git("add", "-A")
    [change] = [each["id"] for each in changes if "Third" in each["what"]]
    ran = ctx("undo", change)
    assert f"{task.name} is in git and keeps its text" in ran.err
    assert node(ctx)["content"] == "Second\n\nEleven times."
    assert task.read_text().startswith("# Third\n")


@pytest.mark.slow
def test_on_a_full_disk_words_are_taken_back_or_not(ctx: Ctx, task: Path) -> None:
    ctx("update", "task_0001", "--content", "New")
    stop = 0
    while node(ctx)["content"] == "New":
        assert task.read_text().startswith("# New\n")
        with Disk(stop, refuse_with=NO_SPACE).installed():
            ran = ctx("undo")
        stop += 1
    # A refusal may come when the step is there already; then it holds, and the file is as it was.
    assert node(ctx)["content"] == "Add retry\n\nFive times."
    assert task.read_text().startswith("# New\n" if ran.code else "# Add retry\n")
    assert stop > 10


def test_undoing_an_addition_leaves_the_file(ctx: Ctx, project: Path) -> None:
    narrative = project / ".ctx/narrative"
    for kind in ("task", "decision", "note"):
        before = set(narrative.rglob("*.md"))
        node_id = ctx("add", kind, f"Bad {kind}", "--tag=a:b").out.split()[1]
        [file] = [
            path
            for path in set(narrative.rglob("*.md")) - before
            if f"Bad {kind}" in path.read_text() and path.parent != narrative
        ]
        ran = ctx("undo")
        shown = file.relative_to(project)
        assert f"{shown} stays on disk; delete what you no longer need with `git rm`.\n" in ran.err
        assert ctx("list").out == "No nodes.\n"
        undoing = ctx("undo", "--list", "--format=json").json["changes"][0]["id"]
        assert ctx("undo", undoing).code == 0
        found = node(ctx, node_id)
        assert (found["content"], "a:b" in found["tags"]) == (f"Bad {kind}", True)
        assert ctx("undo").code == 0
    # A decision that was taken back is none in a commit.
    ctx("add", "--type=fact", "Something else")
    made = ctx("commit", "--auto", "--format=json").json
    assert (made["message"], made["nodes"]) == ("Keep 1 node", 1)


def test_a_mention_in_the_file_holds_until_it_is_taken_away(ctx: Ctx, task: Path) -> None:
    def related() -> list[str]:
        found = ctx("edges", "task_0001", "--format=json").json["edges"]
        return [edge["to_id"] for edge in found]

    task.write_text("# T\n\n<!-- metadata:\nmentions: [src/a.py, src/b.py]\n-->\n")
    first, second = related()
    assert ctx("unlink", "task_0001", first).code == 0
    assert related() == [second]
    assert ctx("undo").code == 0
    assert related() == [first, second]
    ctx("unlink", "task_0001", first)
    ctx("link", "task_0001", first, "--type=MENTIONS")
    assert related() == [first, second]


def test_a_note_in_the_log_is_written_once(ctx: Ctx, project: Path) -> None:
    node_id = ctx("add", "note", "As it was").out.split()[1]
    [file] = (project / ".ctx/narrative/log").iterdir()
    before = file.read_bytes()
    assert ctx("update", node_id, "--content", "As it is").code == 0
    assert node(ctx, node_id)["content"] == "As it is"
    assert file.read_bytes() == before


def test_a_renamed_file_is_still_the_nodes(ctx: Ctx, task: Path) -> None:
    before = node(ctx)
    task.write_text(f"{task.read_text()}\nAsk finance.\n")
    renamed = task.rename(task.with_name(task.name.replace("add-retry", "try-again")))
    ctx("tag", before["id"], "after:renaming")
    [found] = ctx("list", "--format=json").json["nodes"]
    assert (found["id"], found["metadata"]["file"]) == (before["id"], f"tasks/{renamed.name}")
    assert found["content"].endswith("Ask finance.")
    assert found["tags"] == ["after:renaming", "area:net", "urgent"]
    # Whoever takes a file as the beginning of another one has another node.
    copy = renamed.with_name("task_0002-copied-0000.md")
    copy.write_text(renamed.read_text())
    found = ctx("list", "--format=json").json["nodes"]
    assert len({each["id"] for each in found}) == 2


def test_a_file_that_comes_before_its_records_is_the_same_node(
    ctx: Ctx, task: Path, project: Path
) -> None:
    mine = node(ctx)
    other = project.parent / "other"
    shutil.copytree(project, other)
    shutil.rmtree(other / ".git/ctx")
    assert ctx("-C", str(other), "trust", "--yes").code == 0
    [theirs] = ctx("-C", str(other), "list", "--format=json").json["nodes"]
    assert (theirs["id"], theirs["content"]) == (mine["id"], mine["content"])
