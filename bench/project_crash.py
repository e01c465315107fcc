"""How many crashes a session of staged work survives without losing acknowledged work.

Every command from `ctx stage start` over some twenty steps to `ctx stage compact`, and a few after
it, is ended at one in EVERY of its file-system operations, once as by a kill and once as by a power
failure that reverts everything that was not synced.

`tests/e2e/test_project_crash.py` defines what counts as surviving; this runs more of it.

    python -m bench project_crash [EVERY]
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench import report
from bench.crash import MEMORY, fresh_folder, stopped_everywhere
from ctx import clock
from ctx.errors import CtxError
from tests.e2e.test_project_crash import Stage, stop_everywhere
from tests.llm import model_server
from tests.llm.model_server import Says


@contextmanager
def place_to_stage() -> Iterator[tuple[Path, pytest.MonkeyPatch]]:
    """A folder for a project with staged work: a model answers, and git knows who commits."""
    with (
        fresh_folder(MEMORY) as folder,
        pytest.MonkeyPatch.context() as patch,
        model_server.serve() as server,
    ):
        server.otherwise = Says("It is in main.py.")
        patch.setenv("CTX_LLM_BACKEND", "openai")
        patch.setenv("CTX_LLM_SERVER_URL", server.url)
        patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        patch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
        for role in ("AUTHOR", "COMMITTER"):
            patch.setenv(f"GIT_{role}_NAME", "A Person")
            patch.setenv(f"GIT_{role}_EMAIL", "person@example.org")
        yield Path(folder), patch


def stopped(*, power_loss: bool, every: int) -> int:
    """How many stops were survived; 0 if something was lost."""
    name = "power lost" if power_loss else "killed"
    with place_to_stage() as (folder, patch):
        # The clock is frozen, so that a step does the same operations in each run.
        moment = clock.now_ms() + 60_000
        patch.setattr(clock, "now_ms", lambda: moment)
        try:
            stops = stop_everywhere(Stage(folder), power_loss=power_loss, every=every)
        except (AssertionError, CtxError) as error:
            lost = f"{error}"
        else:
            return stops
    print(f"{name}: {lost}", flush=True)
    return 0


def main() -> None:
    every = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    stops = [stopped(power_loss=power_loss, every=every) for power_loss in (False, True)]
    each = "all" if every == 1 else f"one in {every} of"
    name = f"a session of staged work stopped at {each} its file-system operations, by a kill or a"
    report.show("project-crash", [stopped_everywhere(f"{name} power cut: nothing lost", stops)])


if __name__ == "__main__":
    main()
