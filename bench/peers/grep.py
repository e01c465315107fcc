"""A word in a repository: git grep, ripgrep and ctx, each as a whole process.

The word is the name of a function that exists once. grep finds the lines with the word. `ctx code
callers` finds the function and who calls it. `ctx query` answers another question: which files a
task needs. ctx reads an index, whose building is listed apart; grep needs none. `git grep` searches
the tracked files, ripgrep those that git does not ignore.
"""

import os
import tempfile
from collections.abc import Callable
from functools import partial
from itertools import cycle

from bench import query, report, timing
from bench.peers.installs import RIPGREP
from bench.query import BARE, CTX
from bench.timing import Cost, ms


def compare(repository: str, rounds: int) -> None:
    """The repository is only read."""
    with tempfile.TemporaryDirectory(prefix="ctx-bench-", ignore_cleanup_errors=True) as home:
        before = os.times()
        target = query.indexed(os.path.realpath(repository), home)
        after = os.times()
        indexing = (
            after.children_user + after.children_system
            - before.children_user - before.children_system
        )  # fmt: skip
        print(f"the word is {target.rare_word}")
        root, word, tasks = target.place.root, target.rare_word, cycle(target.tasks)
        run = partial(timing.of_child, environment=target.environment, folder=root)

        def ask_ctx(*words: str) -> Cost:
            query.quiet(target.place)
            return run([CTX, *words])

        sides: dict[str, Callable[[], Cost]] = {
            "`python -I -S -c pass`": lambda: run(BARE),
            "`git grep` of the word": lambda: run(
                ["git", "grep", "-n", "--fixed-strings", "--word-regexp", word]
            ),
            RIPGREP.label: lambda: run([str(RIPGREP.bin / "rg"), "-n", "-F", "-w", word, "."]),
            "`ctx code callers` of the word": lambda: ask_ctx("code", "callers", word),
            "`ctx query`, files for a task": lambda: ask_ctx("query", next(tasks)),
        }
        for side in sides.values():
            side()
        costs = timing.alternate(rounds, sides)
        rows = [[name, ms(costs.cpu(name)), ms(costs.wall(name))] for name in sides]
        rows.append(["`ctx code index`, once", f"{indexing:.1f} s", ""])
        note = f"{os.path.basename(root)}: {target.files:,} source files"
        command = f"python -m bench peers grep --repository REPOSITORY --rounds {rounds}"
        table = report.Table("peers-grep", ["whole process", "CPU", "wall"], rows, note)
        report.show_table(table, command)
