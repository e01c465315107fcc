"""How many planted faults the tests find.

It records once which tests execute the statement of which fault, also in the hooks, workers and
commands that tests start. Then it plants one fault at a time, runs these tests, the nearest first,
and stops at the first that fails. A fault that makes a test hang is found too.

    python -m bench faults [--seed N] [--tree PATH] [--jobs N] [--work FOLDER]

The last commit of the tree is tested. The faults of a seed are drawn once and kept in seed-N.json
beside this file. Later trees are tested with the same faults. If a function or statement no longer
exists, its fault is left out, also of the rates before. Results are written to the work folder
after each fault, so an interrupted run continues when it is started again. `--write` keeps what was
found, also of an interrupted run, which can then continue on another machine. Allow three hours for
each seed on two quiet processors.
"""

import argparse
import json
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from bench import report
from bench.faults import kinds, planted, suite
from bench.faults.planted import Fault
from bench.timing import Figure

HERE = Path(__file__).parent
SEEDS = [1, 2]
COUNT = 120
LIMIT = "≥ 90 %"


class Kept(NamedTuple):
    fault: Fault
    found: dict[str, str | None]
    """For each measured commit the test that found it, "" if none did, None if the fault could not
    be planted. A commit is left out until the fault was tried there."""

    def is_counted(self, commits: Iterable[str]) -> bool:
        is_everywhere = all(self.found.get(commit) is not None for commit in commits)
        return is_everywhere and not self.fault.equivalent


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench faults")
    parser.add_argument("--seed", type=int, action="append", help="once or more; 1 and 2 if none")
    parser.add_argument("--tree", type=Path, default=HERE.parents[1], help="a checkout of ctx")
    parser.add_argument("--jobs", type=int, default=2, help="how many copies of the tree")
    parser.add_argument("--count", type=int, default=COUNT, help="about so many for a new seed")
    parser.add_argument(
        "--work", type=Path, default=Path(tempfile.gettempdir(), "ctx-faults"), metavar="FOLDER"
    )
    return parser


def kept(seed: int, tree: Path, count: int, folder: Path) -> list[Kept]:
    """The faults of a seed: kept in the repository, or drawn from this tree."""
    drawn = folder / f"seed-{seed}.json"
    if not drawn.exists() and not _kept_path(seed).exists():
        keep(drawn, [Kept(fault, {}) for fault in planted.draw(tree, seed, count)])
    path = _kept_path(seed) if _kept_path(seed).exists() else drawn
    lines = json.loads(path.read_text("utf-8"))
    return [Kept(Fault(**line.pop("fault")), **line) for line in lines]


def keep(path: Path, faults: Iterable[Kept]) -> None:
    """One line for each fault, so that a diff shows what changed."""
    lines = (
        json.dumps({"found": found, "fault": fault._asdict()}, ensure_ascii=False)
        for fault, found in faults
    )
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n", "utf-8")


def _kept_path(seed: int) -> Path:
    return HERE / f"seed-{seed}.json"


def search(
    tree: Path, faults: Sequence[Fault], jobs: int, folder: Path, found: dict[str, str]
) -> None:
    """Add the test that finds each fault, by the key of the fault."""
    results = folder / "results.jsonl"
    results.touch()
    for text in results.read_text("utf-8").splitlines():
        line = json.loads(text)
        found[line["fault"]] = line["found_by"]
    waiting = [fault for fault in faults if fault.key not in found]
    if not waiting:
        return
    copies = [suite.Copy(tree, folder / f"copy-{number}") for number in range(1, jobs + 1)]
    try:
        recording = recorded(copies, faults, folder)
        lock = threading.Lock()

        def find(fault: Fault, copy: suite.Copy) -> None:
            result = suite.find(copy, fault, recording)
            with lock, results.open("a", encoding="utf-8") as file:
                line = {"fault": fault.key, **result._asdict()}
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
                found[fault.key] = result.found_by
                recording.unreliable.update(result.unreliable)
                by = result.found_by or "not found"
                count = f"{len(found)} of {len(faults)}"
                print(f"{count}: {fault}\n    {by} ({result.seconds:.0f} s)", flush=True)

        suite.share(copies, waiting, find)
    finally:
        for copy in copies:
            copy.close()


def recorded(
    copies: Sequence[suite.Copy], faults: Sequence[Fault], folder: Path
) -> suite.Recording:
    path = folder / "recording.json"
    if not path.exists() or not suite.Recording(path).has(faults):
        suite.record(copies, faults, folder)
    return suite.Recording(path)


# What is shown


def show(seed: int, faults: Sequence[Kept], commit: str) -> None:
    """Print what was found and what was not, and the rates now and at the first commit."""
    first = next(iter(faults[0].found))
    commits = list(dict.fromkeys([first, commit]))
    counted = [each for each in faults if each.is_counted(commits)]
    for fault, found in faults:
        if None in (found.get(first), found.get(commit)):
            print(f"left out, as its function or statement no longer exists: {fault}")
        elif fault.equivalent:
            print(f"left out, as nobody can observe it: {fault}\n    {fault.equivalent}")
    for is_found in (True, False):
        print(f"\nFaults of seed {seed} that {'a' if is_found else 'no'} test finds:")
        for fault, found in counted:
            if bool(found[commit]) is is_found:
                print(f"  {fault}")
                for each in commits:
                    print(f"    {each}: {found[each] or 'not found'}")

    def figure(name: str, meant: Sequence[Kept], limit: str = "") -> Figure:
        rates = [_rate([each.found[at] for each in meant]) for at in commits]
        baseline = f"{rates[0]} at {first}" if len(commits) > 1 else ""
        return Figure(f"{name}, seed {seed}", rates[-1], baseline=baseline, limit=limit)

    packages = groupby(sorted(counted, key=_package), _package)
    report.print_figures([figure(package, list(meant)) for package, meant in packages])
    guarding = [each for each in counted if each.fault.guards]
    figures = [
        figure("planted faults found by the tests", counted),
        figure("of these in redaction, trust, transactions, locks and sync", guarding, LIMIT),
        *(
            figure(kind, [each for each in counted if each.fault.kind == kind])
            for kind in kinds.KINDS
        ),
    ]
    report.show(f"faults-{seed}", figures, command="python -m bench faults")


def _package(kept: Kept) -> str:
    return kept.fault.package


def _rate(found: Sequence[str | None]) -> str:
    count = sum(map(bool, found))
    return f"{100 * count / max(1, len(found)):.1f} % of {len(found)}"


def main() -> None:
    options = arguments().parse_args()
    # Its tests end with it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    tree = options.tree.resolve()
    words = ["git", "-C", str(tree), "rev-parse", "--short=8", "HEAD"]
    commit = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    folder = options.work.resolve() / commit
    folder.mkdir(parents=True, exist_ok=True)
    lists = {seed: kept(seed, tree, options.count, folder) for seed in options.seed or SEEDS}
    every = [each for faults in lists.values() for each in faults]
    present = [fault for fault, _ in every if is_present(tree, fault)]
    found = {fault.key: by for fault, known in every if (by := known.get(commit)) is not None}
    try:
        search(tree, present, options.jobs, folder, found)
    finally:
        for seed, faults in lists.items():
            for fault, found_at in faults:
                if fault.key in found or fault not in present:
                    found_at[commit] = found.get(fault.key)
            if report.WRITES in os.environ:
                keep(_kept_path(seed), faults)
    for seed, faults in lists.items():
        show(seed, faults, commit)


def is_present(tree: Path, fault: Fault) -> bool:
    path = tree / "src/ctx" / fault.module
    return path.exists() and planted.planted(path.read_text("utf-8"), fault) is not None


if __name__ == "__main__":
    main()
