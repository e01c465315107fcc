"""How many crashes a project store survives without losing acknowledged work.

Killed: a process that adds, commits, amends and collects is ended by SIGKILL at a random time. Each
round uses a fresh store. Stopped: every command of a scenario is ended at each of its file-system
operations, once as by a kill and once as by a power failure that reverts everything that was not
synced.

`tests/e2e/test_crash.py` defines what counts as surviving; this runs more of it.

    python -m bench crash [ROUNDS]
"""

import contextlib
import io
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import report
from bench.timing import Figure
from ctx import clock
from ctx.cli.main import main as run_ctx
from ctx.errors import CtxError
from tests.e2e.test_crash import Stage, kill_at_random, stop_everywhere

# Disk failures are simulated here, so no real disk is needed.
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - a fresh folder


@contextlib.contextmanager
def fresh_folder(base: str | None) -> Iterator[Path]:
    """A current folder, a home and an environment without user settings."""
    with tempfile.TemporaryDirectory(dir=base) as space, pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith(("CTX_", "GIT_", "CLAUDE")):
                patch.delenv(name)
        patch.setenv("HOME", space)
        patch.setenv("CTX_HOME", f"{space}/.ctx")
        folder = Path(space, "app")
        folder.mkdir()
        patch.chdir(folder)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            yield folder


def killed(rounds: int) -> Figure:
    survived = 0
    for number in range(rounds):
        with fresh_folder(None) as folder:
            try:
                assert run_ctx(["init"]) == 0
                kill_at_random(folder, rounds=1, seed=number)
            except (AssertionError, CtxError) as error:
                lost = f"round {number}: {error}"
            else:
                lost = ""
                survived += 1
        if lost:
            print(lost)
    name = "commands killed at random times: store intact"
    return Figure(name, f"{survived} of {rounds}", limit="all")


def stopped(*, power_loss: bool, in_git: bool) -> int:
    """How many stops were survived; 0 if something was lost."""
    name = f"{'power lost' if power_loss else 'killed'}{', in git' if in_git else ''}"
    with fresh_folder(MEMORY) as folder, pytest.MonkeyPatch.context() as patch:
        # The clock is frozen, so that a step does the same operations in each run.
        moment = clock.now_ms() + 60_000
        patch.setattr(clock, "now_ms", lambda: moment)
        if in_git:
            subprocess.run(["git", "init", "-q", "-b", "main"], check=True)
        try:
            stops = stop_everywhere(Stage(folder), power_loss=power_loss)
        except (AssertionError, CtxError) as error:
            lost = f"{error}"
        else:
            return stops
    print(f"{name}: {lost}", flush=True)
    return 0


def stopped_everywhere(name: str, stops: list[int]) -> Figure:
    count = f"{sum(stops):,} of {sum(stops):,}" if all(stops) else "lost"
    return Figure(name, count, limit="all")


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    stops = [
        stopped(power_loss=power_loss, in_git=in_git)
        for in_git in (False, True)
        for power_loss in (False, True)
    ]
    name = "commands stopped at every file-system operation, by a kill or a power cut: nothing lost"
    report.show("crash", [killed(rounds), stopped_everywhere(name, stops)])


if __name__ == "__main__":
    main()
