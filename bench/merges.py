"""How many merges succeed without manual work, and give the same memory in either order.

A trial has 2 to 5 branches from one base, 1 to 25 random commands on each, and real `git merge` in
fresh clones without settings, in two orders. Every other base has no `.gitattributes`.
`tests/e2e/merge_trials.py` defines what counts as sound: every merge exits with 0, no conflict
marker is left, nothing that was added is lost, and reading leaves `git status` clean. The graph
must be the same for both orders, after a second merge, after the heads are joined, and for a
rebuilt index.

    python -m bench merges [TRIALS]
"""

import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from bench import report
from bench.timing import Figure
from bench.trials import MEMORY, prepare
from tests.e2e import merge_trials
from tests.e2e.trial_commands import Unsound


class Outcome(NamedTuple):
    seed: int
    tried: merge_trials.Tried | None
    problem: str


def base_of(seed: int, space: str) -> Path:
    """Every other project has no git attributes."""
    return Path(space, "with attributes" if seed % 2 == 0 else "without attributes")


def try_out(asked: tuple[int, str]) -> Outcome:
    seed, space = asked
    folder = Path(tempfile.mkdtemp(dir=space))
    try:
        return Outcome(seed, merge_trials.trial(base_of(seed, space), folder, seed), "")
    except Unsound as error:
        return Outcome(seed, None, str(error))
    finally:
        shutil.rmtree(folder)


def main() -> None:
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    started = time.perf_counter()
    outcomes = []
    with tempfile.TemporaryDirectory(dir=MEMORY) as space:
        prepare(space)
        for seed in (0, 1):
            merge_trials.make_base(base_of(seed, space), attributes=seed == 0)
        workers = multiprocessing.Pool(os.cpu_count(), prepare, [space])
        with workers:
            asked = ((seed, space) for seed in range(trials))
            for outcome in workers.imap_unordered(try_out, asked):
                outcomes.append(outcome)
                if outcome.problem:
                    print(f"trial {outcome.seed}: {outcome.problem}", flush=True)
    sound = [outcome.tried for outcome in outcomes if outcome.tried]
    branches = sum(tried.branches for tried in sound)
    operations = sum(tried.operations for tried in sound)
    print(f"{branches:,} branches with {operations:,} commands, merged in two orders each")
    print(f"in {time.perf_counter() - started:.0f} s")
    name = "real `git merge` of 2 to 5 branches with 1 to 25 commands each: the same memory"
    report.show("merges", [Figure(name, f"{len(sound)} of {trials}", limit="all")])
    if len(sound) < trials:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
