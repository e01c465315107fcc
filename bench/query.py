"""The time of a query: `ctx query` as a whole cold process, in process, and without an index.

The tasks come from the repository itself: subjects of its commits, and docstrings of its functions.
ctx is measured as the whole command. The floor is a bare interpreter, the baseline is `git grep` of
one rare word in the same files, and all of them alternate. In process, the library is called
repeatedly. For the answer without an index, the user store has none, and the process that builds
one starts after the answer.

The repository is only read. The index is in a temporary user store, so a repository with its own
project store is refused.

    python -m bench query [REPOSITORY [ROUNDS]]
"""

import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from itertools import cycle
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple

from bench import report, timing
from bench.timing import Cost, Figure, ms, times
from ctx import layout, locks
from ctx.code import index_file
from ctx.layout import CodePlace, UserStore
from ctx.library import open_project

HERE = Path(__file__).parent.parent
CTX = str(Path(sys.executable).with_name("ctx"))
BARE = [sys.executable, "-I", "-S", "-c", "pass"]
EMPTY = "python -I -S -c pass"

ROUNDS = 15
WITHOUT_ROUNDS = 5
TASKS = 100
BUDGETS = (2000, 8000)
COMMITS = 3000
SHORTEST_TASK = 4
LONG_NAME = 12


class Target(NamedTuple):
    """A repository with its index, and the queries."""

    place: CodePlace
    environment: dict[str, str]
    tasks: list[str]
    rare_word: str
    files: int


def environment(home: str) -> dict[str, str]:
    """This environment with a temporary home and without user settings."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("CTX_", "CLAUDE", "GIT_"))
    }
    quiet = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    return {**kept, **quiet, "HOME": home, "CTX_HOME": f"{home}/.ctx"}


def indexed(repository: str, home: str) -> Target:
    """Build the index with the command."""
    variables = environment(home)
    place = layout.code_at(repository, UserStore(variables["CTX_HOME"]))
    command = [CTX, "-C", place.root, "code", "index"]
    subprocess.run(command, env=variables, check=True, stdout=subprocess.DEVNULL)
    with closing(index_file.open_for_writing(place.database)) as connection:
        counted = "SELECT count(*) FROM files WHERE skipped IS NULL"
        files = connection.execute(counted).fetchone()[0]
        docs = [doc for (doc,) in connection.execute("SELECT DISTINCT doc FROM items ORDER BY doc")]
        once = "SELECT name FROM items GROUP BY name HAVING count(*) = 1 ORDER BY name"
        names = [name for (name,) in connection.execute(once)]
    rng = random.Random(7)
    tasks = [*sampled(subjects(place.root, variables), rng), *sampled(docs, rng)]
    rng.shuffle(tasks)
    if len(tasks) < 2:
        raise SystemExit(f"{place.root} has too few commits and docstrings to ask about.")
    rng.shuffle(names)
    # Long names are rarer.
    names.sort(key=lambda name: len(name) < LONG_NAME)
    return Target(place, variables, tasks[:TASKS], rare_word(place.root, names, variables), files)


def rare_word(root: str, names: Sequence[str], variables: Mapping[str, str]) -> str:
    """The first of the names that git finds. Some are written otherwise, or in untracked files."""
    for name in names:
        if re.fullmatch(r"\w+", name):
            grep = ["git", "grep", "--quiet", "--fixed-strings", "--word-regexp", name]
            if subprocess.run(grep, cwd=root, env=variables, check=False).returncode == 0:
                return name
    raise SystemExit(f"No function or class of {root} has a name that git grep finds.")


def subjects(root: str, variables: Mapping[str, str]) -> list[str]:
    words = ["git", "log", "--no-merges", f"--max-count={COMMITS}", "--format=%s"]
    done = subprocess.run(words, cwd=root, env=variables, capture_output=True, check=False)
    return sorted(set(done.stdout.decode("utf-8", "replace").splitlines()))


def sampled(texts: Sequence[str], rng: random.Random) -> list[str]:
    telling = [text for text in texts if len(text.split()) >= SHORTEST_TASK and text[0] != "-"]
    return rng.sample(telling, min(TASKS, len(telling)))


def quiet(place: CodePlace) -> None:
    """Wait until no background refresh is running."""
    while locks.is_held(place.lock):
        time.sleep(0.05)


# The command


def command(asked: Target, task: str) -> list[str]:
    return [CTX, "-C", asked.place.root, "query", "--format", "json", "--as", "pack", task]


def cold(asked: Target, rounds: int) -> timing.Rounds:
    tasks = cycle(asked.tasks)
    grep = ["git", "grep", "--count", "--fixed-strings", asked.rare_word]
    root, variables = asked.place.root, asked.environment

    def ours() -> Cost:
        quiet(asked.place)
        return timing.of_child(command(asked, next(tasks)), environment=variables)

    # One run to warm the disk cache and the bytecode.
    ours()
    return timing.alternate(
        rounds,
        {
            "ours": ours,
            "floor": lambda: timing.of_child(BARE, environment=variables),
            "grep": lambda: timing.of_child(grep, environment=variables, folder=root),
        },
    )


# In process


def in_process(asked: Target, budget: int) -> list[Cost]:
    variables = {name: asked.environment[name] for name in ("HOME", "CTX_HOME")}
    with open_project(asked.place.root, environment=variables) as project:
        project.query(asked.tasks[0], budget)
        return [
            timing.of_call(lambda task=task: project.query(task, budget))  # type: ignore[misc]
            for task in asked.tasks
        ]


# Without an index


def without(asked: Target, space: str) -> Iterator[Cost]:
    for number, task in zip(range(WITHOUT_ROUNDS), asked.tasks, strict=False):
        home = os.path.join(space, f"empty{number}")
        os.makedirs(home)
        variables = environment(home)
        place = layout.code_at(asked.place.root, UserStore(variables["CTX_HOME"]))
        # A process that finds the lock held starts no background refresh.
        with locks.hold(place.lock, "bench", 1):
            yield timing.of_child(command(asked, task), environment=variables)


def figures(asked: Target, rounds: int, space: str) -> list[Figure]:
    first = list(without(asked, space))
    process = cold(asked, rounds)
    return [
        Figure("`ctx query`, whole process, wall",
               ms(process.wall("ours")), f"{ms(process.wall('floor'))} for `{EMPTY}`",
               f"{ms(process.wall('grep'))} for `git grep` of a rare word",
               times(process.wall_ratio("ours", "grep")), "500 ms"),
        Figure("`ctx query`, whole process, CPU",
               ms(process.cpu("ours")), f"{ms(process.cpu('floor'))} for `{EMPTY}`",
               f"{ms(process.cpu('grep'))} for `git grep` of a rare word",
               times(process.cpu_ratio("ours", "grep")), "250 ms"),
        *(_in_process(asked, budget) for budget in BUDGETS),
        Figure(f"first answer without an index, wall, worst of {len(first)}",
               f"{max(cost.wall for cost in first):.2f} s", "", "", "", "3 s"),
        Figure("first answer without an index, CPU, p50",
               f"{median(cost.cpu for cost in first):.2f} s"),
    ]  # fmt: skip


def _in_process(asked: Target, budget: int) -> Figure:
    calls = in_process(asked, budget)
    walls = [cost.wall for cost in calls]
    cpu, tail = median(cost.cpu for cost in calls), quantiles(walls, n=20)[-1]
    name = f"in process, a pack of {budget:,} tokens, wall, p50 of {len(calls)} tasks"
    print(f"{budget:,} tokens: CPU {ms(cpu)}; wall, p95 {ms(tail)}")
    return Figure(name, ms(median(walls)), limit="60 ms")


def main() -> int:
    repository = os.path.realpath(sys.argv[1] if len(sys.argv) > 1 else HERE)
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else ROUNDS
    with tempfile.TemporaryDirectory() as space:
        home = os.path.join(os.path.realpath(space), "home")
        os.makedirs(home)
        if layout.find_project(repository, f"{home}/.ctx"):
            print(f"{repository} has a project store, whose index must not be changed.")
            return 2
        # Otherwise each process would compile its imports, if ctx is not installed.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = os.path.join(space, "compiled")
        asked = indexed(repository, home)
        print(f"the rare word is {asked.rare_word}", flush=True)
        try:
            lines = figures(asked, rounds, os.path.realpath(space))
        finally:
            quiet(asked.place)
        note = f"{os.path.basename(repository)}: {asked.files:,} source files;"
        note += f" medians of {rounds} rounds over {len(asked.tasks)} tasks"
        report.show("query", lines, note, "python -m bench query REPOSITORY")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
