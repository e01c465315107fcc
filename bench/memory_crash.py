"""How many kills a store of nodes survives, each command done or not done.

Every command that writes is ended by SIGKILL at random moments, each time in a fresh copy of the
same store. Afterwards the store is as before the command or as after it, `ctx store check` finds
nothing, and the next command can write.

What counts as surviving is what `tests/e2e/test_memory_crash.py` says; this runs more of it.

    python -m bench memory_crash [KILLS OF EACH COMMAND]
"""

import random
import sys

from bench import timing
from bench.crash import fresh_folder
from bench.timing import Figure
from ctx.errors import CtxError
from tests.e2e.forked import forker
from tests.e2e.test_memory_crash import Lived, kill_all_commands


def killed(kills: int) -> Figure:
    name = "killed at random"
    with fresh_folder(None) as folder:
        lived = Lived(folder)
        try:
            with forker(folder) as forked:
                undone, done = kill_all_commands(
                    lived, forked, folder / "copy", kills, random.Random()
                )
        except (AssertionError, CtxError) as error:
            lost = f"{error}"
        else:
            total = len(lived.commands()) * kills
            return Figure(
                f"{name}: {undone} times nothing was done, {done} times everything",
                f"{total}",
                limit=f"{total} of {total}",
            )
    print(f"{name}: {lost}")
    return Figure(name, "lost", limit="all")


def main() -> None:
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 25
    print("kills survived; none may leave half a command")
    timing.print_table([killed(kills)])


if __name__ == "__main__":
    main()
