"""How often the exit code after Ctrl-C is right.

Every writing command gets SIGINT at many points: at its operations (file system and SQL
statements), and at random function calls. Exit code 0 must mean that the change is stored, and 130
that it is not.

`tests/e2e/test_interrupts.py` defines what counts; this runs more of it.

    python -m bench interrupts [POINTS OF EACH COMMAND]
"""

import random
import sys
from collections.abc import Callable

from bench import report
from bench.crash import MEMORY, fresh_folder
from bench.project_crash import place_to_stage
from bench.timing import Figure
from ctx.errors import CtxError
from tests.e2e.forked_commands import forker
from tests.e2e.test_interrupts import interrupt_project, interrupt_user_store
from tests.e2e.test_memory_crash import UsedStore
from tests.e2e.test_project_crash import Stage


def in_user_store(points: int) -> int:
    with fresh_folder(MEMORY) as folder, forker(folder) as program:
        lived = UsedStore(folder)
        counts = points, points
        return sum(interrupt_user_store(lived, program, folder / "copy", counts, random.Random()))


def in_project() -> int:
    with place_to_stage() as (folder, _), forker(folder.parent) as program:
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
