"""Whether git commands that discard work lose anything that was acknowledged.

A trial is 8 to 26 random steps: add, commit, gc, and git's commit, reset, amend, rebase, restore,
stash and drop, checkout -f, switch, orphan, clean, worktree remove, branch -D, reflog expire and
gc. It is sound if every acknowledged text is shown on some branch, listed by `ctx status` or
offered by `ctx stage recover`, and shown after it was taken up (see
`tests/e2e/discarding_trials.py`).

    python -m bench discarded_commits [TRIALS] [--tree CHECKOUT]

`--tree` runs the same trials with another checkout of ctx.
"""

import argparse
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench import report
from bench.timing import Figure
from bench.trials import MEMORY, prepare
from tests.e2e.discarding_trials import Counts, Trial
from tests.e2e.trial_commands import Unsound

NAMES = {
    "acknowledged": "texts acknowledged in random sequences of ctx and git commands",
    "given": "given on some branch",
    "listed": "else listed by `ctx status`",
    "offered": "else offered by `ctx stage recover`",
    "pruned": "else pruned by `git gc`",
    "lost": "lost",
}


def try_out(asked: tuple[int, str]) -> tuple[int, Counts, str]:
    """The seed, what became of the texts, and the problems."""
    seed, space = asked
    folder = Path(tempfile.mkdtemp(dir=space))
    trial = Trial(folder, seed)
    try:
        trial.run()
    except Unsound as error:
        return seed, trial.counts, str(error)
    finally:
        shutil.rmtree(folder)
    return seed, trial.counts, ""


def try_all(trials: int) -> tuple[int, Counts]:
    """How many trials are sound, and the sums of what became of the texts."""
    sound, sums = 0, Counts()
    with (
        tempfile.TemporaryDirectory(dir=MEMORY) as space,
        multiprocessing.Pool(os.cpu_count(), prepare, [space]) as workers,
    ):
        asked = ((seed, space) for seed in range(trials))
        for seed, counts, problem in workers.imap_unordered(try_out, asked):
            sound += not problem
            sums = Counts(*map(sum, zip(sums, counts, strict=True)))
            if problem:
                print(f"trial {seed}: {problem}", file=sys.stderr, flush=True)
    return sound, sums


def try_tree(tree: Path, trials: int) -> tuple[int, Counts, str]:
    """The same with another checkout, and its commit."""
    command = [sys.executable, "-m", "bench.discarded_commits", str(trials), "--as-json"]
    path = {**os.environ, "PYTHONPATH": str(tree / "src")}
    done = subprocess.run(command, env=path, stdout=subprocess.PIPE, check=True)
    sound, counts = json.loads(done.stdout)
    asked = ["git", "-C", str(tree), "rev-parse", "--short=8", "HEAD"]
    name = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    return sound, Counts(*counts), name


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("trials", nargs="?", type=int, default=300)
    parser.add_argument("--tree", type=Path, help="another checkout of ctx")
    parser.add_argument("--as-json", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    trials: int = options.trials
    sound, counts = try_all(trials)
    if options.as_json:
        print(json.dumps([sound, counts]))
        return
    values: dict[str, Any] = {field: f"{value:,}" for field, value in counts._asdict().items()}
    theirs: dict[str, str] = {}
    of_theirs = ""
    if options.tree:
        sound_there, there, name = try_tree(options.tree.resolve(), trials)
        theirs = {field: f"{value:,} at {name}" for field, value in there._asdict().items()}
        of_theirs = f"{sound_there} of {trials} at {name}"
    rows = [
        Figure(text, values[field], baseline=theirs.get(field, ""),
               limit="0" if field == "lost" else "")
        for field, text in NAMES.items()
    ]  # fmt: skip
    name = "random sequences after which every acknowledged text is given, listed or offered"
    all_sound = Figure(name, f"{sound} of {trials}", baseline=of_theirs, limit="all")
    report.show("discarded-commits", [*rows, all_sound])
    if sound < trials:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
