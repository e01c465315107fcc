"""`ctx add task`, `ctx add decision` and `ctx add note`: a node, and in a project its file."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ctx.cli.output import Output
from tests.cli.conftest import Piped
from tests.conftest import Ctx, git
from tests.faults import NO_SPACE, Disk

# Tasks


def node(ctx: Ctx, name: str) -> dict[str, Any]:
    found: dict[str, Any] = ctx("show", name, "--format=json").json["node"]
    return found


def files(project: Path) -> list[str]:
    return sorted(path.name for path in (project / ".ctx/narrative/tasks").glob("*"))


def test_a_task_of_a_project_is_a_node_and_a_file(ctx: Ctx, project: Path) -> None:
    words = ["--body", "## Objective\nFive times.\n", "--mention=src/net.rs", "--mention=core::Net"]
    ran = ctx("add", "task", "Add retry", *words, "--tag=area:net", "--tag=tier:reference")
    [name] = files(project)
    assert re.fullmatch(r"task_0001-add-retry-[0-9a-z]{4}\.md", name)
    short = ran.out.split()[1]
    assert ran.out == f"Added: {short} task_0001\n  .ctx/narrative/tasks/{name}\n"
    found = node(ctx, "task_0001")
    assert found["content"] == "Add retry\n\n## Objective\nFive times."
    assert found["tags"] == ["area:net", "tier:reference"]
    assert found["metadata"] == {"file": f"tasks/{name}", "slug": "add-retry", "status": "open"}
    at = found["created_at"]
    written = (
        f"# Add retry\n\n<!-- metadata:\ncreated: {at}\nupdated: {at}\nnode: {found['id']}\n"
        "tags: [area:net]\nmentions: [src/net.rs, core::Net]\n-->\n\n"
        "## Objective\nFive times.\n"
    )
    assert (project / ".ctx/narrative/tasks" / name).read_text() == written
    edges = ctx("edges", "task_0001", "--format=json").json["edges"]
    assert [edge["type"] for edge in edges] == ["MENTIONS", "MENTIONS"]
    # It is begun and ended by records alone.
    assert "Add retry (task:add-retry)" in ctx("task", "start", "task_0001").out
    assert node(ctx, "task_0001")["metadata"]["status"] == "active"
    assert "Ended: " in ctx("task", "end").out
    assert node(ctx, "task_1")["metadata"]["status"] == "done"
    assert files(project) == [name]
    assert (project / ".ctx/narrative/tasks" / name).read_text() == written
    # One that is started by a new name gets its file.
    for _ in range(2):
        assert ctx("task", "start", "Find the leak").code == 0
        assert len(files(project)) == 2
    assert files(project)[1].startswith("task_0002-find-the-leak-")
    ran = ctx("task", "start", "task_0007")
    assert (ran.code, ran.err[:11]) == (1, "error E020:")
    # So is one that a person wrote.
    (project / ".ctx/narrative/tasks/task_0009-by-hand.md").write_text("# By hand\n\nDo it.\n")
    assert node(ctx, "task_0009")["content"] == "By hand\n\nDo it."
    assert "By hand" in ctx("task", "start", "task_0009").out
    assert node(ctx, "task_0009")["metadata"]["status"] == "active"
    assert ctx("add", "task", "Next", "--format=json").json["number"] == "task_0010"


def test_numbers_that_two_branches_took(ctx: Ctx, project: Path) -> None:
    ctx("add", "task", "One", "-m", "One")
    git("add", "-A")
    git("commit", "-qm", "one")
    git("switch", "-qc", "other")
    other = ctx("add", "task", "Theirs", "-m", "Theirs", "--format=json").json["added"]
    git("add", "-A")
    git("commit", "-qm", "theirs")
    git("switch", "-q", "main")
    mine = ctx("add", "task", "Mine", "-m", "Mine", "--format=json").json["added"]
    git("add", "-A")
    git("commit", "-qm", "mine")
    git("merge", "-q", "--no-edit", "other")
    assert mine["number"] == other["number"] == "task_0002"
    ran = ctx("task", "start", "task_0002")
    assert ran.code == 1
    told = sorted(
        f"  {each['node']['id']}  {each['node']['metadata']['file']}" for each in (mine, other)
    )
    assert ran.err.startswith("error E021: Several documents are called task_0002.\n")
    assert sorted(ran.err.splitlines()[1:3]) == told
    assert "Theirs" in ctx("task", "start", "task_0002-theirs").out
    end = mine["path"].removesuffix(".md").rpartition("-")[2]
    assert "Mine" in ctx("show", f"task_0002-{end}").out
    assert ctx("add", "task", "Next", "--format=json").json["number"] == "task_0003"


def test_titles_of_tasks(ctx: Ctx, project: Path) -> None:
    for number, (title, name, content) in enumerate(
        (
            ("../../etc/passwd", "etc-passwd", "../../etc/passwd"),
            ("-->  <!-- metadata:", "metadata", "--> <!-- metadata:"),
            ("# Heading #", "heading", "# Heading #"),
            ("שלום עולם", "שלום-עולם", "שלום עולם"),
            ("First\nand a second line", "first", "First\n\nand a second line"),
            ("a\tb\x1b[31m", "a-b-31m", "a b\x1b[31m"),
        ),
        1,
    ):
        assert ctx("add", "task", title).code == 0
        assert files(project)[-1][:-8] == f"task_000{number}-{name}"
        assert node(ctx, f"task_000{number}")["content"] == content
        assert ctx("task", "start", title.partition("\n")[0]).code == 0
        assert len(files(project)) == number


def test_a_task_that_is_refused_leaves_nothing(
    ctx: Ctx, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = ctx("add", "task", "x" * 301)
    assert long.err.startswith("error E023: The title has 301 characters; the limit is 300.")
    monkeypatch.setattr("ctx.operations.document.LARGEST", 9_000)
    assert ctx("add", "task", "x", "--body", "y" * 9_001).err.startswith("error E023: ")
    assert ctx("add", "task", "x", "--stream=work").code == 2
    assert ctx("add", "task", "x", "--mention=").err.startswith("error E023: ")
    assert ctx("add", "task").code == 2
    # A link in a cloned repository is not followed.
    elsewhere = project.parent / "elsewhere"
    elsewhere.mkdir()
    tasks = project / ".ctx/narrative/tasks"
    tasks.symlink_to(elsewhere)
    ran = ctx("add", "task", "Add retry")
    assert (ran.code, ran.err[:11]) == (1, "error E015:")
    assert list(elsewhere.iterdir()) == []
    tasks.unlink()
    # Files where the folders should be.
    for place in (tasks, tasks.parent):
        shutil.rmtree(place, ignore_errors=True)
        place.write_text("not a folder")
        ran = ctx("add", "task", "Retry")
        assert ran.code == 1
        assert "error E0" in ran.err
        assert "E000" not in ran.err
        assert place.read_text() == "not a folder"
        assert ctx("list").out == "No nodes.\n"


def test_secrets_in_a_task(ctx: Ctx, project: Path) -> None:
    secret = "ghp_" + "k3X9w2Qz7Lm4Tn8Vb6Rc1Yd5Hf0Js2Pa4G7u"
    ran = ctx("add", "task", f"Rotate {secret}", "--body", f"It is {secret}.")
    assert ran.err.startswith("warning: 2 secrets removed: title, line 1 (")
    kept = b"".join(path.read_bytes() for path in project.rglob("*") if path.is_file())
    assert secret.encode() not in kept
    assert ctx("add", "task", "x", f"--mention={secret}").err.startswith("error E023: ")


@pytest.mark.slow
def test_on_a_full_disk_there_is_no_task_without_its_file(ctx: Ctx, project: Path) -> None:
    ctx("add", "task", "The first")
    stop, code = 0, 1
    while code:
        with Disk(stop, refuse_with=NO_SPACE).installed():
            ran = ctx("add", "task", f"Try {stop}")
        code = ran.code
        listed = ctx("list", "--type=task", "--limit=0", "--format=json").json["nodes"]
        assert sorted(each["metadata"]["file"] for each in listed) == [
            f"tasks/{name}" for name in files(project)
        ]
        assert all("slug" in each["metadata"] for each in listed)
        assert code == 0 or ran.err.startswith("error E01")
        stop += 1
    assert stop > 10


@pytest.mark.slow
def test_three_tasks_at_once(ctx: Ctx, project: Path) -> None:
    command = [sys.executable, "-m", "ctx", "add", "task"]
    running = [
        subprocess.Popen([*command, f"Task {number}"], stdout=subprocess.DEVNULL)
        for number in range(3)
    ]
    assert [process.wait(300) for process in running] == [0] * 3
    assert [name[:9] for name in files(project)] == [f"task_000{n}" for n in range(1, 4)]
    assert ctx("list", "--type=task", "--format=json").json["total"] == 3


def test_a_task_outside_of_a_project(ctx: Ctx, repo: Path, piped: Piped) -> None:
    piped(b"Why not.\n")
    words = ["--body", "-", "--tag=area:net", "--mention=a.py"]
    added = ctx("add", "task", "Add retry", *words, "--format=json").json
    assert (added["number"], added["path"]) == (None, None)
    assert added["node"]["content"] == "Add retry\n\nWhy not."
    assert added["node"]["tags"] == ["area:net", "project:app"]
    [edge] = ctx("edges", added["node"]["id"], "--format=json").json["edges"]
    assert edge["type"] == "MENTIONS"
    assert "Add retry" in ctx("task", "start", "Add retry").out
    assert not os.path.exists(".ctx")


def test_a_task_in_the_editor(
    ctx: Ctx, project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script = tmp_path / "editor"
    script.write_text('#!/bin/sh\nprintf "# Better\\n\\nBody.\\n" > "$1"\n')
    script.chmod(0o755)
    monkeypatch.setenv("EDITOR", str(script))
    monkeypatch.setattr(Output, "is_interactive", property(lambda _: True))
    monkeypatch.setattr("ctx.cli.settings.stdin_is_terminal", lambda: True)
    assert ctx("add", "task").code == 0
    assert node(ctx, "task_0001")["content"] == "Better\n\nBody."
    # Emptied, or closed without a change.
    for left in (': > "$1"', ":"):
        script.write_text(f"#!/bin/sh\n{left}\n")
        assert ctx("add", "task").err == "error E011: The text is empty; nothing added.\n"
        assert ctx("add").err == "error E011: The text is empty; nothing added.\n"
    assert len(files(project)) == 1
    assert ctx("add", "task", "Draft").code == 0
    assert node(ctx, "task_0002")["content"] == "Draft"
    script.write_text('#!/bin/sh\necho "Use tabs" > "$1"\n')
    added = ctx("add", "pattern", "--format=json").json
    assert (added["node"]["type"], added["node"]["content"]) == ("pattern", "Use tabs")
    assert added["given"] == ["tier:reference"]


# Decisions


def test_a_decision_of_a_project(ctx: Ctx, project: Path) -> None:
    words = ["--body", "All at once would bring it down.", "--tag=area:net", "--mention=src/net.rs"]
    ran = ctx("add", "decision", "Retry with jitter", *words)
    [file] = (project / ".ctx/narrative/decisions").iterdir()
    assert re.fullmatch(r"0001-retry-with-jitter-[0-9a-z]{4}\.md", file.name)
    short = ran.out.split()[1]
    assert ran.out == (
        f"Added: {short} decision_0001 (tier:reference)\n  .ctx/narrative/decisions/{file.name}\n"
    )
    shown = ctx("show", "decision_0001", "--format=json").json["node"]
    assert shown["content"] == "Retry with jitter\n\nAll at once would bring it down."
    assert shown["tags"] == ["area:net", "tier:reference"]
    at = shown["created_at"]
    assert file.read_text() == (
        f"# Retry with jitter\n\n<!-- metadata:\ncreated: {at}\nupdated: {at}\n"
        f"node: {shown['id']}\n"
        "tags: [area:net]\nmentions: [src/net.rs]\n-->\n\nAll at once would bring it down.\n"
    )


def test_the_page_of_all_decisions_is_local(ctx: Ctx, project: Path) -> None:
    ctx("add", "decision", "Use tabs", "--body", "Everybody agrees.")
    ctx("add", "decision", "Use spaces", "--body", "Nobody agreed.")
    page = (project / ".ctx/narrative/decisions.md").read_text()
    assert re.findall("^## .*", page, re.MULTILINE) == ["## 0002 Use spaces", "## 0001 Use tabs"]
    assert "decisions.md" not in git("status", "--short", "-uall")
    ctx("update", "decision_0002", "--content", "Use spaces after all")
    page = (project / ".ctx/narrative/decisions.md").read_text()
    assert re.findall("^## .*", page, re.MULTILINE)[0] == "## 0002 Use spaces after all"


def test_the_words_of_a_decision_are_those_of_its_file(ctx: Ctx, project: Path) -> None:
    node_id = ctx("add", "decision", "Use tabs", "--format=json").json["node"]["id"]
    [file] = (project / ".ctx/narrative/decisions").iterdir()
    file.write_text("# Use spaces\n\n<!-- metadata:\ntags: [area:style]\n-->\n\nWe voted.\n")
    shown = ctx("show", node_id, "--format=json").json["node"]
    assert shown["content"] == "Use spaces\n\nWe voted."
    assert shown["tags"] == ["area:style", "tier:reference"]
    file.unlink()
    shown = ctx("show", node_id, "--format=json").json["node"]
    assert (shown["content"], shown["tags"]) == ("Use tabs", ["tier:reference"])


def test_a_decision_in_a_feature_and_for_all_projects(ctx: Ctx, project: Path) -> None:
    words = ("--stream=retry", "--tag=tier:pinned", "--format=json")
    added = ctx("add", "decision", "x", *words).json
    assert added["path"].startswith(".ctx/narrative/feature/retry/decisions/0001-x-")
    assert (added["number"], added["given"]) == ("decision_0001", [])
    assert added["node"]["tags"] == ["tier:pinned"]
    added = ctx("add", "decision", "y", "--user", "--format=json").json
    assert (added["number"], added["node"]["scope"]) == (None, "user")
    assert added["node"]["tags"] == ["tier:reference"]


# Notes


def test_a_note_of_a_project_is_a_node_and_a_file(ctx: Ctx, project: Path) -> None:
    words = ["--tag=area:net", "--no-tier", "--format=json"]
    added = ctx("add", "note", "The proxy", "timed out", *words).json
    node = added["node"]
    assert (node["type"], node["content"]) == ("observation", "The proxy timed out")
    assert (node["tags"], node["scope"], node["staged"]) == (["area:net", "note"], "project", "cli")
    assert added["number"] is None
    path = added["path"].removeprefix(".ctx/narrative/")
    assert node["metadata"] == {"file": path}
    [file] = (project / ".ctx/narrative/log").iterdir()
    assert f"log/{file.name}" == path
    written = f"{node['created_at']}"
    assert file.read_text() == (
        "# The proxy timed out\n\n<!-- metadata:\n"
        f"created: {written}\nupdated: {written}\nauthor: cli\nsession: cli\ntags: [area:net]\n"
        "-->\n"
    )
    assert file.stat().st_mode & 0o777 == 0o600
    assert git("status", "--short", "--", ".ctx/narrative/log") == "?? .ctx/narrative/log/\n"
    mine = ctx("add", "note", "Mine", "--user", "--no-tier", "--format=json").json
    assert (mine["node"]["scope"], mine["node"]["tags"]) == ("user", ["note"])
    assert mine["path"] is None


def test_outside_of_a_project_a_note_is_a_node_alone(ctx: Ctx, repo: Path) -> None:
    ran = ctx("add", "note", "Tests are slow")
    assert ran.out.endswith(" (tier:reference, project:app)\n")
    assert ran.err == (
        "Added to your own store. `ctx init` creates a project store, with files.\n"
        "Agents are shown this from their next session on. To prevent it: --no-tier\n"
    )
    shown = ctx("show", ran.out.split()[1], "--format=json").json["node"]
    assert shown["tags"] == ["note", "project:app", "tier:reference"]
    assert shown["metadata"] == {}
    decision = ctx("add", "decision", "Run them at night", "--format=json").json["node"]
    assert decision["tags"] == ["project:app", "tier:reference"]
    assert list(repo.iterdir()) == [repo / ".git"]
    # There is nothing to commit to.
    ran = ctx("add", "note", "x", "--commit")
    assert (ran.code, ran.err[:11]) == (1, "error E012:")
    ctx("init")
    assert ctx("add", "note", "x", "--commit", "--user").code == 2
    assert ctx("list", "--format=json").json["total"] == 2


def test_a_note_with_a_body(ctx: Ctx, project: Path, piped: Piped) -> None:
    for data, words, content in (
        (b"p99 is 45 ms\n", ["Load test", "--body", "-"], "Load test\n\np99 is 45 ms"),
        (b"All of it\nfrom there\n", ["-"], "All of it\nfrom there"),
        (b"", ["--body", "First line\nand more"], "First line\n\nand more"),
    ):
        piped(data)
        assert ctx("add", "note", *words, "--format=json").json["node"]["content"] == content
    missing = 'error E011: The text is missing.\n  `ctx add note "…"`, or --stdin\n'
    assert ctx("add", "note").err == missing
    assert ctx("add", "note", "  ").err.startswith("error E023: ")
    ran = ctx("add", "note", "x", "--body", "y" * 1_000_000)
    assert ran.err.startswith("error E023: The document would have 1,000,")
    assert len(list((project / ".ctx/narrative/log").iterdir())) == 3


def test_while_a_task_is_the_current_one_a_note_is_a_working_node(ctx: Ctx, project: Path) -> None:
    ctx("task", "start", "Retry")
    assert (
        ctx("add", "note", "Half done").out.splitlines()[0].endswith(" (tier:working, task:retry)")
    )
    for word, tags in (
        ("--tag=tier:reference", ["note", "tier:reference"]),
        ("--no-tier", ["note", "task:retry"]),
    ):
        ran = ctx("add", "note", "Kept for good", word, "--format=json").json
        assert ran["node"]["tags"] == tags


def test_streams_of_notes(ctx: Ctx, project: Path) -> None:
    one = ctx("add", "note", "a", "--stream=retry", "--format=json").json["path"]
    two = ctx("add", "note", "b", "--stream=work", "--session=s-1", "--format=json").json["path"]
    assert one.startswith(".ctx/narrative/feature/retry/log/")
    assert two.startswith(".ctx/narrative/work/s-1/log/")
    for name in ("../..", "a/b", ""):
        ran = ctx("add", "note", "c", f"--stream={name}")
        assert (ran.code, ran.err[:11]) == (2, "error E011:")


def test_a_note_can_be_committed_at_once(ctx: Ctx, project: Path) -> None:
    ran = ctx("add", "note", "Ready", "-m", "Retry with jitter", "--format=json").json
    assert ran["commit"]["message"] == "Retry with jitter"
    assert ran["added"]["path"].removeprefix(".ctx/narrative/") in ran["commit"]["documents"]
    assert ctx("show", ran["added"]["node"]["id"], "--format=json").json["node"]["staged"] is None
    ran = ctx("add", "note", "Said by itself", "--commit", "--format=json").json
    assert ran["commit"]["message"] == "Said by itself"
