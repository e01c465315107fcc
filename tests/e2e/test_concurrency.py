"""Several processes at once: no commit is lost, no lock is left, history is one line."""

import os
import subprocess
import sys
from pathlib import Path

from ctx import locks
from ctx.layout import project_at
from ctx.objects import commits, refs, trees
from ctx.objects.repository import Repository
from ctx.objects.verify import verify
from tests import effort
from tests.conftest import Ctx

PROCESSES = 8
ROUNDS = effort.times(8)

WORKER = f"""
import sys
from ctx.cli.main import main
session = sys.argv[1]
for number in range({ROUNDS}):
    name = f"{{session}}-{{number}}.txt"
    with open(name, "w") as file:
        file.write(f"{{session}} {{number}}\\n")
    assert main(["-q", "add", "file", name, "--session", session]) == 0
    assert main(["-q", "commit", "-m", name, "--session", session]) == 0
"""


def test_eight_sessions_commit_into_one_store(folder: Path, ctx: Ctx) -> None:
    assert ctx("init").code == 0
    sessions = [f"s{number}" for number in range(PROCESSES)]
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, session],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for session in sessions
    ]
    for worker in workers:
        _, said = worker.communicate(timeout=600)
        assert worker.returncode == 0, said
    repository = Repository(project_at(str(folder)))
    heads = repository.current()
    assert len(heads) == 1
    walked = [visited.commit for visited in commits.walk(repository.objects, [heads[0][0]])]
    messages = [commit.message for commit in walked if commit]
    expected = [f"{session}-{number}.txt" for session in sessions for number in range(ROUNDS)]
    assert sorted(messages) == sorted([*expected, "Initial commit"])
    assert all(len(commit.parents) <= 1 for commit in walked if commit)
    assert sorted(path for path, _ in trees.paths(repository.objects, heads[0][1].root_tree)) == (
        sorted(expected)
    )
    assert list(repository.refs.names()) == [refs.MAIN]
    assert not os.path.exists(repository.project.lock)
    assert not locks.is_held(repository.project.lock)
    assert not verify(repository).damages
    assert not list(folder.rglob("*.tmp"))
