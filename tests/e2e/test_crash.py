"""Stopping at every file-system operation loses nothing that was reported as done."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from ctx import clock
from ctx.cli.main import main
from ctx.ids import CLI_SESSION
from ctx.layout import project_at
from ctx.objects import trees
from ctx.objects.repository import Repository
from ctx.objects.verify import verify
from ctx.project import staging
from tests import effort
from tests.conftest import git
from tests.e2e.conftest import Saved, messages
from tests.faults import NO_SPACE, READ_ONLY, Disk, Stopped


@pytest.fixture(autouse=True)
def still(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop the clock, so that a step performs the same operations in every run."""
    moment = clock.wall_ms() + 60_000
    monkeypatch.setattr(clock, "wall_ms", lambda: moment)


class Step(NamedTuple):
    """A command, the changes of the user before it, and what must hold after it."""

    words: list[str]
    edits: Mapping[str, str]
    files: Mapping[str, str]
    messages: set[str]


FIRST = {"a.txt": "one\n", "d/b.txt": "b\n"}
SECOND = {**FIRST, "a.txt": "two\n"}
THIRD = {**SECOND, "d/e/c.txt": "c\n"}

SCENARIO = [
    Step(["init"], {}, {}, set()),
    Step(["add", "file", "."], FIRST, FIRST, set()),
    Step(["commit", "-m", "One"], {}, FIRST, {"One"}),
    Step(["add", "file", "a.txt"], {"a.txt": "two\n"}, SECOND, {"One"}),
    Step(["commit", "-m", "Two"], {".ctx/narrative/n.md": "# N\n"}, SECOND, {"One", "Two"}),
    Step(["commit", "--amend", "-m", "Second"], {}, SECOND, {"One", "Second"}),
    Step(["gc", "--keep-days", "0"], {}, SECOND, {"One", "Second"}),
    Step(
        ["add", "file", "d", "-m", "Three"],
        {"d/e/c.txt": "c\n"},
        THIRD,
        {"One", "Second", "Three"},
    ),
    Step(["gc", "--keep-days", "0", "--aggressive"], {}, THIRD, {"One", "Second", "Three"}),
]


def visible_files(folder: Path) -> dict[str, str]:
    """The files that a reader sees: committed files, overlaid by staged ones."""
    repository = Repository(project_at(str(folder)))
    reader = repository.everything
    found = trees.combined_paths(reader, repository.current())
    staged = staging.files(repository, staging.chain(repository, CLI_SESSION))
    found.update((path, version.blob_id) for path, version in staged.items())
    return {path: reader.read(blob).payload.decode() for path, blob in found.items()}


def check(folder: Path, before: Step | None, now: Step, where: str) -> None:
    """Check that after a stop, the state is that before or after the step."""
    report = verify(Repository(project_at(str(folder))))
    assert not report.damages, f"{where}: {report.damages}"
    files = visible_files(folder)
    old = before.files if before else {}
    for path, content in old.items():
        allowed = {content, now.files[path]}
        assert files.get(path) in allowed, f"{where}: {path} is {files.get(path)!r}"
    said = before.messages if before else set()
    found = messages(folder)
    assert said <= found or now.messages <= found, f"{where}: only {found} is left"


class Stage:
    """The scenario step by step; the current step can be repeated."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._saved = Saved()

    def steps(self) -> Iterator[tuple[Step | None, Step]]:
        before = None
        for step in SCENARIO:
            for path, text in step.edits.items():
                target = self.folder / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text)
            self._saved = Saved(self.folder, Path(os.environ["CTX_HOME"]))
            yield before, step
            self.reset()
            assert main(step.words) == 0
            before = step

    def reset(self) -> None:
        self._saved.restore()


@pytest.fixture
def stage(folder: Path) -> Stage:
    return Stage(folder)


def operations_of(stage: Stage, step: Step) -> list[str]:
    disk = Disk()
    with disk.installed():
        assert main(step.words) == 0
    stage.reset()
    return disk.log


def stop_everywhere(stage: Stage, *, power_loss: bool | None, every: int = 1) -> int:
    """Stop each step at its operations: killed, after a loss of power, or in turn (None)."""
    in_turn = power_loss is None
    stops = 0
    for before, step in stage.steps():
        for number, operation in enumerate(operations_of(stage, step)):
            if number % every:
                continue
            power_loss = stops % 2 == 1 if in_turn else power_loss
            where = f"{' '.join(step.words)} stopped at {number}: {operation}"
            disk = Disk(number, power_loss=bool(power_loss))
            with disk.installed(), pytest.raises(Stopped):
                main(step.words)
            if power_loss:
                disk.lose_power()
            check(stage.folder, before, step, where)
            assert main(step.words) == 0, where
            check(stage.folder, step, step, f"{where}, then run again")
            stage.reset()
            stops += 1
    return stops


def test_a_stop_at_every_operation_loses_nothing(stage: Stage) -> None:
    step_size = effort.every(3)
    assert stop_everywhere(stage, power_loss=None, every=step_size) > 200 // step_size


def test_a_stop_in_a_git_checkout_loses_nothing(stage: Stage) -> None:
    git("init", "-q", "-b", "main")
    (stage.folder / "x").write_text("x")
    git("add", "x")
    git("commit", "-qm", "x")
    step_size = effort.every(15)
    assert stop_everywhere(stage, power_loss=True, every=step_size) > 200 // step_size


def makes_an_index(operations: list[str]) -> bool:
    """Whether the last operation was about an index or its folder."""
    *_, before, last = ["", *operations]
    is_for_its_folder = last.startswith("fsync") and before.startswith("mkdir")
    return "/local/index" in (before if is_for_its_folder else last)


def test_a_disk_error_at_every_operation_loses_nothing(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = stage.folder
    for before, step in stage.steps():
        operations = operations_of(stage, step)
        outside = {n for n, each in enumerate(operations) if os.environ["HOME"] in each}
        inside = [n for n, each in enumerate(operations) if f"{folder}/.ctx/objects" in each]
        # The store is trusted before anything is in it; the git folder gets a marker in between.
        trusting = [n for n in outside if n < min(inside, default=0)]
        outside.update(range(min(trusting, default=0), max(trusting, default=-1) + 1))
        for number, operation in effort.share(list(enumerate(operations)), 3):
            where = f"{' '.join(step.words)} refused at {number}: {operation}"
            capsys.readouterr()
            disk = Disk(number, refuse_with=(NO_SPACE, READ_ONLY)[number % 2])
            with disk.installed():
                result = main(step.words)
            said = capsys.readouterr().err
            if (
                operation.startswith("rmdir")
                or (operation.endswith("LOCK") and "unlink" in operation)
                or number in outside
                or operation.endswith("/mine")
                or makes_an_index(operations[: number + 1])
            ):
                # The work is done; only the tidying up after it was refused, or the trust in it,
                # or to note whose it is, or an index, which can be made at any time.
                assert result == 0, where
                check(folder, step, step, where)
            else:
                assert result == 1, where
                assert "error E014" in said, f"{where}: {said}"
                check(folder, before, step, where)
            assert {path.name for path in folder.rglob("*.tmp")} <= {"cli.spare.tmp"}, where
            assert main(step.words) == 0, where
            check(folder, step, step, f"{where}, then run again")
            stage.reset()


WORKER = """
import sys
from ctx.cli.main import main
life = sys.argv[1]
number = 0
while True:
    number += 1
    with open("f.txt", "w") as file:
        file.write(f"{life} {number}\\n" * 50)
    assert main(["-q", "add", "file", "f.txt"]) == 0
    assert main(["-q", "commit", "-m", f"{life} {number}"]) == 0
    if number % 3 == 0:
        assert main(["-q", "commit", "--amend", "-m", f"{life} {number}, again"]) == 0
    if number % 4 == 0:
        assert main(["-q", "gc", "--keep-days", "0", "--aggressive"]) == 0
    sys.stderr.write(f"done {number}\\n")
    sys.stderr.flush()
"""


def kill_at_random(folder: Path, rounds: int, seed: int) -> None:
    """Kill a worker repeatedly; everything that it reported must be stored."""
    chance = random.Random(seed)
    reported: set[str] = set()
    for life in range(rounds):
        worker = subprocess.Popen(
            [sys.executable, "-c", WORKER, f"Life {life}"],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert worker.stderr is not None
        said = []
        try:
            if life % 2:
                said.append(worker.stderr.readline())
                time.sleep(chance.uniform(0, 0.1))
            else:
                time.sleep(chance.uniform(0.1, 0.5))
        finally:
            worker.send_signal(signal.SIGKILL)
        said += worker.stderr.read().splitlines()
        worker.wait()
        worker.stderr.close()
        assert all(line.startswith("done ") for line in said), said
        for number in range(1, len(said) + 1):
            again = ", again" if number % 3 == 0 else ""
            reported.add(f"Life {life} {number}{again}")
        assert not verify(Repository(project_at(str(folder)))).damages
        lost = reported - messages(folder)
        assert not lost, f"reported and lost: {sorted(lost)}"
        # The next command takes up whatever the kill left behind.
        assert main(["-q", "add", "file", "."]) == 0
        assert main(["-q", "commit", "-m", f"After life {life}"]) == 0
    assert len(reported) >= rounds // 2


def test_kills_at_random_times_lose_nothing(folder: Path) -> None:
    assert main(["init"]) == 0
    kill_at_random(folder, rounds=effort.times(12), seed=7)


def test_an_interrupted_commit_is_not_repeated(folder: Path) -> None:
    """Another session can commit between the new head and the end of the chain."""
    assert main(["init"]) == 0
    (folder / "f.txt").write_text("one\n")
    assert main(["add", "file", "f.txt"]) == 0
    number = len(operations_until(folder, "unlink", "refs/work/cli"))
    with Disk(number).installed(), pytest.raises(Stopped):
        main(["commit", "-m", "One"])
    (folder / "f.txt").write_text("three\n")
    assert main(["add", "file", "f.txt", "-m", "Three", "--session", "other"]) == 0
    (folder / "g.txt").write_text("g\n")
    assert main(["add", "file", "g.txt", "-m", "Only g"]) == 0
    assert visible_files(folder) == {"f.txt": "three\n", "g.txt": "g\n"}
    assert messages(folder) == {"One", "Three", "Only g"}


def operations_until(folder: Path, verb: str, target: str) -> list[str]:
    """The operations of a commit before it touches a file, measured on a copy."""
    spare = folder.parent / "spare"
    shutil.copytree(folder, spare)
    assert main(["-C", str(spare), "trust", "--yes"]) == 0
    disk = Disk()
    with disk.installed():
        assert main(["-C", str(spare), "commit", "-m", "One"]) == 0
    (position,) = [
        number
        for number, line in enumerate(disk.log)
        if line.startswith(verb) and line.endswith(target)
    ]
    return disk.log[:position]


def test_an_interrupted_commit_is_finished_on_another_branch(repo: Path) -> None:
    assert main(["init"]) == 0
    git("add", "-A")
    git("commit", "-qm", "Store")
    git("branch", "other")
    (repo / "f.txt").write_text("one\n")
    assert main(["add", "file", "f.txt"]) == 0
    number = len(operations_until(repo, "unlink", "refs/work/cli"))
    with Disk(number).installed(), pytest.raises(Stopped):
        main(["commit", "-m", "One"])
    git("add", "-A")
    git("commit", "-qm", "One")
    git("checkout", "-q", "other")
    assert main(["gc"]) == 0
    git("checkout", "-q", "main")
    (repo / "f.txt").write_text("two\n")
    assert main(["add", "file", "f.txt", "-m", "Two", "--session", "other"]) == 0
    assert main(["commit", "-m", "Nothing new"]) == 0
    assert visible_files(repo) == {"f.txt": "two\n"}
    assert messages(repo) == {"One", "Two"}
