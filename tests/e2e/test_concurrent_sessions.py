"""Concurrent sessions and people in one checkout do not lose each other's work."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ctx import locks
from ctx.cli.main import main
from ctx.layout import project_at
from ctx.objects import commits, trees
from ctx.objects.object_types import Commit
from ctx.objects.repository import Repository
from ctx.objects.verify import verify
from ctx.project import batches
from tests.conftest import Ctx, git
from tests.e2e.conftest import Saved
from tests.faults import Disk

SESSIONS = ("one", "two", "three", "four", "five", "six")
STEPS = 4

WORKER = f"""
import os, sys
from ctx.cli.main import main
session = os.environ["CTX_SESSION"] = sys.argv[1]
def ctx(*words):
    assert main(["-q", *words]) == 0, words
ctx("stage", "start", f"Task of {{session}}")
for number in range({STEPS}):
    ctx("add", "--type=fact", f"{{session}} {{number}}")
    with open(f"{{session}}-{{number}}.txt", "w") as file:
        file.write(session)
    ctx("add", "file", f"{{session}}-{{number}}.txt")
ctx("stage", "flush")
ctx("stage", "compact", "-m", session)
"""


@pytest.fixture
def project(repo: Path, ctx: Ctx) -> Path:
    assert ctx("init").code == 0
    git("add", "-A")
    git("commit", "-q", "-m", "Begin")
    return repo


def history(folder: Path) -> list[Commit]:
    """The commits after the first one, newest first."""
    repository = Repository(project_at(str(folder)))
    walked = commits.walk(repository.objects, [head.id for head in repository.current()])
    return [commit for _, commit in walked if commit and commit.parents]


def facts(ctx: Ctx) -> list[str]:
    shown = ctx("list", "--type=fact", "--limit=0", "--format=json")
    assert shown.code == 0, shown.err
    return sorted(node["content"] for node in shown.json["nodes"])


def test_concurrent_sessions_lose_nothing(project: Path, ctx: Ctx) -> None:
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, session],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for session in SESSIONS
    ]
    for worker in workers:
        _, told = worker.communicate(timeout=300)
        assert worker.returncode == 0, told
    made = history(project)
    assert sorted(commit.message for commit in made) == sorted(SESSIONS)
    assert all(len(commit.parents) == 1 for commit in made)
    repository = Repository(project_at(str(project)))
    ((_, head),) = repository.current()
    files = {path for path, _ in trees.paths(repository.objects, head.root_tree)}
    assert files == {f"{each}-{number}.txt" for each in SESSIONS for number in range(STEPS)}
    assert not os.path.exists(repository.project.lock)
    assert not locks.is_held(repository.project.lock)
    assert not list(project.rglob("*.tmp"))
    for commit in made:
        assert commit.session_id == commit.message
        (batch,) = commit.record_batches
        said = batches.read(repository.objects, batch)
        assert {record.session for record in said} == {commit.session_id}
        texts = {record.body.get("content") for record in said if record.kind == "node.put"}
        assert texts >= {f"{commit.message} {number}" for number in range(STEPS)}
    assert facts(ctx) == sorted(f"{each} {number}" for each in SESSIONS for number in range(STEPS))
    assert list(repository.refs.names()) == ["main"]
    assert not verify(repository).damages


class Meddler(Disk):
    """Runs an action right before the n-th operation of a program."""

    def __init__(self, at: int, meddle: Callable[[], None]) -> None:
        super().__init__()
        self._at = at
        self._meddle = meddle

    def _step(self, name: str, path: Any) -> None:
        if self.operations == self._at:
            self._meddle()
        super()._step(name, path)


def test_an_edit_during_compaction_is_kept(project: Path, ctx: Ctx) -> None:
    assert ctx("stage", "start", "Write it down", "--session", "s").code == 0
    assert ctx("add", "--type=fact", "Staged").code == 0
    (document,) = (project / ".ctx" / "narrative" / "tasks").glob("*.md")
    before = document.read_text()
    saved = Saved(project)
    counted = Meddler(-1, lambda: None)
    with counted.installed():
        assert main(["-q", "stage", "compact"]) == 0
    operations = counted.operations
    assert operations > 40
    for at in range(0, operations, 11):
        saved.restore()
        edited = f"{before}\nBy hand, at {at}.\n"
        beside = document.with_name(f"by-hand-{at}.md")

        def meddle(edited: str = edited, beside: Path = beside) -> None:
            document.write_text(edited)
            beside.write_text("# By hand\n")

        meddler = Meddler(at, meddle)
        with meddler.installed():
            assert main(["-q", "stage", "compact"]) == 0, at
        assert document.read_text() == edited, meddler.log[at]
        assert beside.read_text() == "# By hand\n"
        assert facts(ctx) == ["Staged"]
        shown = ctx("search", "hand", "--format=json").json
        assert len(shown["nodes"]) == 2, meddler.log[at]
        assert ctx("commit", "--auto").code == 0
        repository = Repository(project_at(str(project)))
        kept = {
            ref.path: repository.objects.read(ref.blob_id).payload.decode()
            for commit in reversed(history(project))
            for ref in commit.narrative_refs
        }
        assert kept[f"tasks/{document.name}"] == edited, meddler.log[at]
        assert kept[f"tasks/{beside.name}"] == "# By hand\n"
        assert not verify(repository).damages
