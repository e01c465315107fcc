"""A scrub that is stopped anywhere is completed by the next one, and its result can be merged."""

import json
import shutil
import threading
from contextlib import closing
from pathlib import Path

import pytest

from ctx.cli.main import main
from ctx.config.resolve import load
from ctx.context import project_store_context
from ctx.hook_files import spool
from ctx.layout import Project, project_at
from ctx.objects.object_store import from_payload
from ctx.objects.repository import Repository
from ctx.project.given import EverythingGiven
from ctx.project.project_memory import ProjectMemory
from tests.conftest import git
from tests.e2e.conftest import Saved
from tests.e2e.planted_text import Planted, holding
from tests.faults import Disk, Stopped

WORD, OTHER = "harmless-looking", "second-word"
STOPS = 4
"""Moments at which a scrub is stopped, of the hundred or so that it has."""


def plant(at: Planted, text: str) -> None:
    at.run("add", "--user", "--type=fact", f"Mine: {text}")
    at.run("add", "--type=fact", f"Ours: {text}", "--meta", f"why={text}")
    at.run("add", "decision", f"Take {text}")
    at.run("add", "command", "--name", "make", "--body", f"{text}\n" * 40)
    at.talk.submit(f"Look at {text}.")


def keep(at: Planted, message: str) -> None:
    at.run("commit", "-m", message)
    git("add", "-A", cwd=at.project)
    git("commit", "-qm", message, cwd=at.project)


def scrub(at: Planted, word: str = WORD) -> None:
    at.run("scrub", word, "--yes")
    assert holding(at, word) == []


def contents(at: Planted) -> list[str]:
    listed = at.ctx("list", "--limit=0", "--format=json").json["nodes"]
    return sorted(node["content"].splitlines()[0] for node in listed)


def assert_consistent(at: Planted) -> None:
    for words in (("store", "check"), ("debug", "verify")):
        ran = at.ctx(*words)
        assert ran.code == 0, ran.out


# Crashes


def test_the_next_scrub_completes_an_interrupted_one(at: Planted) -> None:
    plant(at, WORD)
    keep(at, f"With {WORD}")
    at.run("add", "--type=fact", f"Staged: {WORD}")
    saved = Saved(at.home, at.project)
    whole = Disk()
    with whole.installed():
        assert main(["-q", "scrub", WORD, "--yes"]) == 0
    expected = contents(at)
    assert len(expected) == 5
    for number in range(STOPS):
        stop_at = whole.operations * (2 * number + 1) // (2 * STOPS)
        power_loss = bool(number % 2)
        saved.restore()
        disk = Disk(stop_at, power_loss=power_loss)
        with disk.installed(), pytest.raises(Stopped):
            main(["-q", "scrub", WORD, "--yes"])
        if power_loss:
            disk.lose_power()
        scrub(at)
        assert_consistent(at)
        assert contents(at) == expected, disk.log[-3:]


# Merges


def branch(at: Planted, name: str, start: str = "main") -> None:
    git("checkout", "-q", "-b", name, start, cwd=at.project)


def merge(at: Planted, name: str) -> None:
    git("merge", "-q", "--no-edit", name, cwd=at.project)


def test_an_unscrubbed_branch_can_be_merged(at: Planted) -> None:
    plant(at, WORD)
    keep(at, f"With {WORD}")
    branch(at, "goes-on")
    at.run("add", "--type=fact", "Said meanwhile.")
    keep(at, "meanwhile")
    git("checkout", "-q", "main", cwd=at.project)
    scrub(at)
    keep(at, "scrubbed")
    before = contents(at)
    for here, there in (("main", "goes-on"), ("goes-on", "main")):
        branch(at, f"{here}-first", here)
        merge(at, there)
        assert_consistent(at)
        assert contents(at) == sorted([*before, "Said meanwhile."])
        assert "[scrubbed]" in at.ctx("log").out
        assert holding(at, WORD) == []
        # Life goes on there: what is committed next builds on what was scrubbed.
        at.run("add", "--type=fact", f"After {here}.")
        keep(at, "after")
        assert f"After {here}." in contents(at)
        assert_consistent(at)
        at.run("gc", "--keep-days", "0")
        assert_consistent(at)


def test_two_branches_with_different_scrubs_can_be_merged(at: Planted) -> None:
    at.run("add", "--type=fact", f"Ours: {WORD} and {OTHER}")
    keep(at, "both words")
    for name, word in (("one", WORD), ("two", OTHER)):
        branch(at, name)
        at.run("scrub", word, "--project", "--yes")
        git("add", "-A", cwd=at.project)
        git("commit", "-qm", "scrubbed", cwd=at.project)
        git("checkout", "-q", "-f", "main", cwd=at.project)
    git("checkout", "-q", "one", cwd=at.project)
    # The log is prose, and both have changed a line of it.
    git("merge", "-q", "--no-edit", "-X", "ours", "two", cwd=at.project)
    assert_consistent(at)
    # Each holds what the other took out; to scrub again settles it.
    scrub(at, WORD)
    scrub(at, OTHER)
    assert_consistent(at)
    assert "Ours: [scrubbed] and [scrubbed]" in contents(at)


def test_an_old_index_in_a_clone_is_not_used(at: Planted, tmp_path: Path) -> None:
    """The heads are the same, but the index must be rebuilt."""
    plant(at, WORD)
    keep(at, f"With {WORD}")
    clone = tmp_path / "clone"
    git("clone", "-q", str(at.project), str(clone))
    at.run("-C", str(clone), "trust", "--yes")
    there = ("-C", str(clone), "list", "--project", "--limit=0")
    assert WORD in at.ctx(*there).out
    scrub(at)
    keep(at, "scrubbed")
    given = project_store_context.read(at.talk.client.home, project_at(str(clone))).connection
    assert given is not None
    given.close()
    git("pull", "-q", cwd=clone)
    # A hook makes nothing, and so it has nothing to give.
    assert (
        project_store_context.read(at.talk.client.home, project_at(str(clone))).connection is None
    )
    assert WORD not in at.ctx(*there).out
    assert "[scrubbed]" in at.ctx(*there).out
    assert at.ctx("-C", str(clone), "debug", "verify").code == 0


def all_of(project: Project) -> ProjectMemory:
    """The memory of a project, also what agents are not given."""
    config = load("", None, {}, ())
    return ProjectMemory(project, lambda: config, EverythingGiven(project.root, project))


def test_a_forged_replacement_does_not_change_my_records(at: Planted) -> None:
    """A replacement file of another person points from my batch to other text."""
    at.run("add", "--type=fact", "I said so.", "--tag=tier:pinned")
    keep(at, "mine")
    repository = Repository(project_at(str(at.project)))
    (head,) = repository.current()
    (batch,) = head.commit.record_batches
    said = repository.objects.read(batch)
    forged = from_payload(said.kind, said.payload.replace(b"I said so.", b"He said no"))
    repository.objects.write([forged])
    repository.replaced.note([(batch, forged.id)])
    with closing(all_of(repository.project)) as memory:
        connection = memory.graph.connection
        assert connection.execute("SELECT content FROM nodes").fetchall() == [("He said no",)]
        query = "SELECT mine FROM commits WHERE id = ?"
        assert connection.execute(query, (head.id,)).fetchone() == (0,)
    # What I scrub myself stays mine.
    at.run("scrub", "said no", "--yes")
    with closing(all_of(repository.project)) as memory:
        connection = memory.graph.connection
        assert connection.execute("SELECT content FROM nodes").fetchall() == [("He [scrubbed]",)]


# Others at work


def test_other_working_trees_are_reported(at: Planted, tmp_path: Path) -> None:
    at.run("add", "--type=fact", f"Ours: {WORD}")
    keep(at, f"With {WORD}")
    other = tmp_path / "other"
    git("worktree", "add", "-q", str(other), cwd=at.project)
    at.run("-C", str(other), "add", "--type=fact", f"Staged there: {WORD}")
    # Its index may be gone: what is staged there is compressed.
    for index in (at.project / ".git" / "ctx").glob("*/index"):
        shutil.rmtree(index)
    ran = at.ctx("scrub", WORD, "--yes")
    assert ran.code == 1
    assert "run `ctx scrub` there too" in ran.out
    at.run("-C", str(other), "scrub", WORD, "--yes")
    scrub(at)
    assert "Staged there: [scrubbed]" in at.ctx("-C", str(other), "list").out


def test_hooks_can_run_during_a_scrub(at: Planted) -> None:
    """Their events are in the spool, and are scrubbed there or reported."""
    plant(at, WORD)
    at.run("hook", "apply")
    is_over = threading.Event()

    def report() -> None:
        number = 0
        while not is_over.is_set() and number < 60:
            number += 1
            said = at.talk.payload("UserPromptSubmit", prompt=f"{number} {WORD}")
            event_id = spool.new_id(1_768_906_800_000 + number)
            spool.put(at.talk.client.home, event_id, "prompt-submit", json.dumps(said).encode())

    reporting = threading.Thread(target=report)
    reporting.start()
    try:
        first = at.ctx("scrub", WORD, "--yes")
    finally:
        is_over.set()
        reporting.join()
    # What came after the last look, nobody could have told.
    assert first.code == 0 or "run the command again" in first.out
    scrub(at)
    at.run("hook", "apply")
    assert holding(at, WORD) == []
    assert_consistent(at)
