"""Whether git commands that discard work lose anything that was acknowledged.

A trial is 8 to 26 random steps: add, commit, gc, and git's commit, reset, amend, rebase, restore,
stash and drop, checkout -f, switch, orphan, clean, worktree remove, branch -D, reflog expire and
gc. It is sound if every acknowledged text is shown on some branch, listed by `ctx status` or
offered by `ctx stage recover`, and shown after it was taken up (see
`tests/e2e/discarding_trials.py`).

    python -m bench discarded_commits [TRIALS]
"""

import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from bench import report
from bench.merges import MEMORY, prepare
from bench.timing import Figure
from tests.e2e.discarding_trials import Trial
from tests.e2e.merge_trials import Unsound


def try_out(asked: tuple[int, str]) -> tuple[int, int, str]:
    """The seed, the number of acknowledged texts, and the problems."""
    seed, space = asked
    folder = Path(tempfile.mkdtemp(dir=space))
    try:
        return seed, Trial(folder, seed).run(), ""
    except Unsound as error:
        return seed, 0, str(error)
    finally:
        shutil.rmtree(folder)


def main() -> None:
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    started = time.perf_counter()
    sound = texts = 0
    with (
        tempfile.TemporaryDirectory(dir=MEMORY) as space,
        multiprocessing.Pool(os.cpu_count(), prepare, [space]) as workers,
    ):
        asked = ((seed, space) for seed in range(trials))
        for seed, acknowledged, problem in workers.imap_unordered(try_out, asked):
            sound += not problem
            texts += acknowledged
            if problem:
                print(f"trial {seed}: {problem}", flush=True)
    print(f"{texts:,} texts acknowledged, {time.perf_counter() - started:.0f} s")
    name = "random ctx and git commands: every acknowledged text is shown, listed or offered"
    report.show("discarded-commits", [Figure(name, f"{sound} of {trials}", limit="all")])
    if sound < trials:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
