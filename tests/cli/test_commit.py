import re
from pathlib import Path

import pytest

from tests.conftest import Ctx, git


@pytest.fixture
def project(folder: Path, ctx: Ctx) -> Path:
    assert ctx("init").code == 0
    (folder / "a.txt").write_text("a\n")
    return folder


def test_keeps_what_is_staged_and_clears_the_stage(project: Path, ctx: Ctx) -> None:
    ctx("add", "file", "a.txt")
    made = ctx("commit", "-m", "One\n\nWith a body", "--format", "json").json
    assert made["files"] == ["a.txt"]
    assert made["steps"] == 1
    assert made["message"] == "One\n\nWith a body"
    pointers = ctx("debug", "refs", "--format", "json").json["pointers"]
    assert [(item["kind"], item["target"]) for item in pointers] == [
        ("head", made["commit"]),
        ("ref", made["commit"]),
    ]
    assert ctx("commit", "-m", "Two", "--format", "json").json["commit"] is None
    # Each session commits its own.
    (project / "a.txt").write_text("b\n")
    (project / "b.txt").write_text("b\n")
    ctx("add", "file", "a.txt", "--session", "one")
    ctx("add", "file", "b.txt", "--session", "two")
    made = ctx("commit", "-m", "Two", "--session", "one", "--format", "json").json
    assert made["files"] == ["a.txt"]


def test_amend_replaces_the_last_commit(project: Path, ctx: Ctx) -> None:
    ctx("add", "file", "a.txt")
    first = ctx("commit", "-m", "One", "--format", "json").json
    (project / "b.txt").write_text("b\n")
    ctx("add", "file", "b.txt")
    amended = ctx("commit", "--amend", "--format", "json").json
    assert amended["message"] == "One"
    assert amended["amends"] == first["commit"]
    assert amended["parents"] == first["parents"]
    history = ctx("debug", "history", "--format", "json").json["commits"]
    assert [commit["message"] for commit in history] == ["One", "Initial commit"]
    paths = ctx("debug", "index", "--format", "json").json["entries"][0]["paths"]
    assert paths == 2
    assert ctx("commit", "--amend", "-m", "One", "--format", "json").json["commit"] is None


def test_amend_among_several_heads_means_the_one_made_here(repo: Path, ctx: Ctx) -> None:
    ctx("init")
    git("add", "-A")
    git("commit", "-qm", "init")
    git("switch", "-qc", "other")
    (repo / "o.txt").write_text("o")
    ctx("add", "file", "o.txt", "-m", "Other")
    git("add", "-A")
    git("commit", "-qm", "other")
    git("switch", "-q", "main")
    (repo / "m.txt").write_text("m")
    mine = ctx("add", "file", "m.txt", "-m", "Mine", "--format", "json").json["commit"]
    git("add", "-A")
    git("commit", "-qm", "mine")
    git("merge", "-q", "--no-edit", "other")
    amended = ctx("commit", "--amend", "-m", "Mine, better", "--format", "json").json
    assert amended["amends"] == mine["commit"]
    assert len(ctx("debug", "refs", "--format", "json").json["pointers"]) == 3

    (repo / ".git" / "ctx" / "main" / "refs" / "main").unlink()
    refused = ctx("commit", "--amend", "-m", "Which?")
    assert refused.code == 2
    assert "2 heads" in refused.err


def test_narrative_is_kept_when_it_changed(project: Path, ctx: Ctx) -> None:
    def documents(*words: str) -> list[str] | None:
        made = ctx("commit", "-m", "Notes", *words, "--format", "json").json
        return made["documents"] if made["commit"] else None

    narrative = project / ".ctx" / "narrative"
    for folder in ("tasks", "decisions"):
        (narrative / folder).mkdir()
    (narrative / "tasks" / "task_0001-x-ab12.md").write_text("# X\n")
    (narrative / "decisions" / "0001-jitter-ab12.md").write_text("# Use jitter\n")
    (narrative / "README.md").write_text("# Changed\n")
    (narrative / "notes.txt").write_text("not markdown")
    assert documents() == [
        "README.md",
        "decisions/0001-jitter-ab12.md",
        "tasks/task_0001-x-ab12.md",
    ]
    assert ctx("tag", "task_0001", "area:x").code == 0
    assert "\n  # task " in ctx("commit", "-m", "Tag").out
    # Decisions are on one page.
    assert "Use jitter" in (narrative / "decisions.md").read_text()
    assert documents() is None
    (narrative / "README.md").write_text("# app\n")
    assert documents("--no-narrative") is None
    assert documents() == ["README.md"]
    (narrative / "README.md").write_text("mine\n")
    assert documents() == ["README.md"]
    # A human edit is never overwritten.
    ctx("init")
    ctx("gc", "--keep-days", "0", "--aggressive")
    assert (narrative / "README.md").read_text() == "mine\n"
    found = ctx("debug", "index", "narrative:README.md", "--format", "json").json["entries"]
    assert len(found) == 4
    entry = ctx("debug", "index", "narrative:tasks/task_0001-x-ab12.md", "--format", "json").json
    assert entry["entries"][0]["role"] == "task"


def test_auto_finds_its_own_words_and_is_silent_otherwise(project: Path, ctx: Ctx) -> None:
    ran = ctx("commit", "--auto")
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    ctx("add", "--no-tier", "--type=fact", "Deploys run on Mondays")
    ctx("add", "file", "a.txt")
    ran = ctx("commit", "--auto")
    assert re.fullmatch(
        r"Committed [0-9a-f]{12} Keep 1 node and 1 file \(1 node, 1 file, 1 narrative file\)\n",
        ran.out,
    )
    ctx("add", "--no-tier", "--type=decision", "We use SQLite\n\nNo servers to run.")
    made = ctx("commit", "--auto", "--format", "json").json
    assert made["message"] == "Decide: We use SQLite"
    assert ctx("commit", "--auto", "--format", "json").json["commit"] is None
    assert ctx("commit", "--auto", "-m", "Words").code == 2


def test_a_commit_says_what_it_changed(project: Path, ctx: Ctx) -> None:
    first = ctx("add", "--no-tier", "--type=fact", "Deploys run on Mondays").out.split()[1]
    second = ctx("add", "--no-tier", "--type=task", "Tell everybody").out.split()[1]
    ctx("link", second, first, "--type=DEPENDS_ON")
    ran = ctx("commit", "-m", "One", "--format", "json").json
    assert (ran["nodes"], ran["records"], ran["edges"]) == (2, 3, 1)
    assert ran["changes"] == [
        f"+ fact {first}: Deploys run on Mondays",
        f"+ task {second}: Tell everybody",
        f"> task {second} DEPENDS_ON fact {first}",
    ]
    assert ran["documents"] == [ran["log"]]
    ctx("update", first, "--content", "Deploys run on Fridays")
    told = ctx("commit", "-m", "Two").out
    assert re.sub(r"\b[0-9a-f]{12}\b", "COMMIT", told).splitlines()[:2] == [
        "Committed COMMIT Two (1 narrative file)",
        f"  ~ fact {first}: content: Deploys run on Fridays",
    ]


def test_a_commit_counts_the_deleted_nodes_that_it_leaves_out(project: Path, ctx: Ctx) -> None:
    def add(text: str) -> str:
        return ctx("add", "--no-tier", "--type=fact", text).out.split()[1]

    committed = add("Deploys run on Mondays")
    ctx("commit", "-m", "One")
    gone = add("Precious knowledge about deploys")
    assert ctx("delete", gone).err == "To restore it until the next commit: `ctx undo`\n"
    ran = ctx("commit", "-m", "Two")
    assert (ran.out, ran.err) == (
        "Nothing to commit in session cli.\n",
        "1 deleted node was never committed and can no longer be restored.\n",
    )
    assert ctx("list", "--deleted").out == "No nodes.\n"
    moved = add("Mine alone")
    ctx("move", moved, "--user")
    ctx("delete", add("Deleted one"), add("Deleted two"))
    add("Taken back")
    ctx("undo")
    assert ctx("delete", committed).err == "To restore it: `ctx undo`\n"
    elsewhere = ctx("add", "--no-tier", "Of another", "--session", "other").out.split()[1]
    ctx("delete", elsewhere)
    made = ctx("commit", "-m", "Three", "--json").json
    assert (len(made["changes"]), made["deleted_for_good"]) == (1, 3)
    assert ctx("commit", "--session", "other", "-m", "Four", "--json").json["deleted_for_good"] == 1
    assert ctx("restore", committed).code == 0
    assert ctx("commit", "-m", "Five", "--json").json["deleted_for_good"] == 0


def test_the_end_of_a_task_counts_them_too(project: Path, ctx: Ctx) -> None:
    ctx("task", "start", "Deploy")
    ctx("delete", ctx("add", "--type=fact", "Precious knowledge").out.split()[1])
    ran = ctx("task", "end")
    assert "1 deleted node was never committed and can no longer be restored.\n" in ran.err
