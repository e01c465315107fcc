"""How many stops a project store survives without losing what was reported as done.

Killed: a process that adds, commits, amends and collects is ended by SIGKILL at a random time,
each round in a fresh store, where nothing of an earlier round can be mistaken for what is lost.
Stopped: every command of a scenario is ended at each of its file-system operations, once as by a
kill and once as by a power failure that takes back whatever was never synced.

What counts as surviving is what `tests/e2e/test_crash.py` says; this runs more of it.

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

from bench import timing
from bench.timing import Figure
from ctx import clock
from ctx.cli.main import main as run_ctx
from ctx.errors import CtxError
from tests.e2e.test_crash import Stage, kill_at_random, stop_everywhere

# Where the disk's failures are played, and no disk is needed.
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - a fresh folder


@contextlib.contextmanager
def fresh_folder(base: str | None) -> Iterator[Path]:
    """A current folder, a home and an environment that no one else's settings reach."""
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
    return Figure("killed at random", f"{survived}", limit=f"{rounds} of {rounds}")


def stopped(*, power_loss: bool, in_git: bool) -> Figure:
    cause = "power lost" if power_loss else "killed"
    name = f"{cause} at every operation{', in git' if in_git else ''}"
    with fresh_folder(MEMORY) as folder, pytest.MonkeyPatch.context() as patch:
        # Time stands still, so that a step does the same operations each time it is run.
        moment = clock.now_ms() + 60_000
        patch.setattr(clock, "now_ms", lambda: moment)
        if in_git:
            subprocess.run(["git", "init", "-q", "-b", "main"], check=True)
        try:
            stops = stop_everywhere(Stage(folder, folder.with_name("spare")), power_loss=power_loss)
        except (AssertionError, CtxError) as error:
            lost = f"{error}"
        else:
            return Figure(name, f"{stops}", limit=f"{stops} of {stops}")
    print(f"{name}: {lost}")
    return Figure(name, "lost", limit="all")


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    figures = [killed(rounds)]
    for in_git in (False, True):
        figures += [stopped(power_loss=power_loss, in_git=in_git) for power_loss in (False, True)]
    print("stops survived; none may lose what was reported as done")
    timing.print_table(figures)


if __name__ == "__main__":
    main()
