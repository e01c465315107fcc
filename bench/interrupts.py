"""How often the exit code after Ctrl-C is right.

Every writing command gets SIGINT at many points: at its operations (file system and SQL
statements), and at random function calls. Exit code 0 must mean that the change is stored, and 130
that it is not.

`tests/e2e/test_interrupts.py` defines what counts; this runs more of it.

    python -m bench interrupts [POINTS OF EACH COMMAND]
"""

import os
import random
import sys
from collections.abc import Callable

import pytest

from bench import report
from bench.crash import MEMORY, fresh_folder
from bench.timing import Figure
from ctx.errors import CtxError
from tests.e2e.interrupted_commands import interrupter
from tests.e2e.test_interrupts import interrupt_project, interrupt_user_store
from tests.e2e.test_memory_crash import UsedStore
from tests.e2e.test_project_crash import Stage
from tests.llm import model_server
from tests.llm.model_server import Says


def in_user_store(points: int) -> int:
    with fresh_folder(MEMORY) as folder, interrupter(folder) as program:
        lived = UsedStore(folder)
        counts = points, points
        return sum(interrupt_user_store(lived, program, folder / "copy", counts, random.Random()))


def in_project() -> int:
    with (
        fresh_folder(MEMORY) as folder,
        pytest.MonkeyPatch.context() as patch,
        model_server.serve() as server,
    ):
        server.otherwise = Says("It is in main.py.")
        patch.setenv("CTX_LLM_BACKEND", "openai")
        patch.setenv("CTX_LLM_SERVER_URL", server.url)
        patch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
        for role in ("AUTHOR", "COMMITTER"):
            patch.setenv(f"GIT_{role}_NAME", "A Person")
            patch.setenv(f"GIT_{role}_EMAIL", "person@example.org")
        with interrupter(folder.parent) as program:
            return interrupt_project(Stage(folder), program, every=1)


def figure(name: str, run: Callable[[], int]) -> Figure:
    try:
        total = run()
    except (AssertionError, CtxError) as error:
        print(f"{name}: {error}")
        return Figure(name, "wrong", limit="all")
    return Figure(name, f"{total:,} of {total:,}", limit="all")


def main() -> None:
    points = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    name = "commands interrupted by Ctrl-C: the exit code says whether the change is stored"
    report.show(
        "interrupts",
        [
            figure(f"{name}, user store", lambda: in_user_store(points)),
            figure(f"{name}, project", in_project),
        ],
    )


if __name__ == "__main__":
    main()
