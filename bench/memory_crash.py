"""How many kills a store of nodes survives, with each command applied completely or not at all.

Every writing command is ended by SIGKILL at random moments, each time in a fresh copy of the same
store. Afterwards the store must be as before or as after the command, `ctx store check` must find
nothing, and the next command must be able to write.

`tests/e2e/test_memory_crash.py` defines what counts as surviving; this runs more of it.

    python -m bench memory_crash [KILLS OF EACH COMMAND]
"""

import random
import sys

from bench import report
from bench.crash import fresh_folder
from bench.timing import Figure
from ctx.errors import CtxError
from tests.e2e.forked_commands import forker
from tests.e2e.test_memory_crash import UsedStore, kill_all_commands


def killed(kills: int) -> Figure:
    name = "memory commands killed at random times: applied completely or not at all"
    with fresh_folder(None) as folder:
        lived = UsedStore(folder)
        try:
            with forker(folder) as forked:
                undone, done = kill_all_commands(
                    lived, forked, folder / "copy", kills, random.Random()
                )
        except (AssertionError, CtxError) as error:
            lost = f"{error}"
        else:
            total = len(lived.commands()) * kills
            print(f"{undone} times not applied, {done} times applied")
            return Figure(name, f"{total:,} of {total:,}", limit="all")
    print(f"{name}: {lost}")
    return Figure(name, "lost", limit="all")


def main() -> None:
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 25
    report.show("memory-crash", [killed(kills)])


if __name__ == "__main__":
    main()
