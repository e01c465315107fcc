"""How well ctx finds the files for a task, on tasks whose real change is known.

Each task is a text, a repository at the commit before the change, and the source files that the
change touched. The benchmark checks out the commit, refreshes the index and ranks the files with
ctx. In the same run it ranks them by grep, by BM25, and by BM25 over split identifiers with the
words of the path and tests last. `Acc@k` is strict: all files of the change are among the first k.
`hit@5` requires one of them. `MRR` is the mean of 1 / rank of the first.

TASKS is a JSONL file with id, set, repo, parent_commit, query, gold_files and lang, or
`bench/history_tasks.tsv`: commits of repositories in other languages. MIRRORS is a folder with git
directories `owner+name/repo`. Each answer is appended to a file (`--results`), and an interrupted
run continues from it. `--against` compares the run with another results file, task by task. With
`--indexes FOLDER`, the index for each task is kept there and opened by the next run as it is: use
it only for versions of ctx that index alike.

    python -m bench localisation TASKS MIRRORS [--set S] [--repo R] [--limit N] [--without SIGNAL]
        [--jobs N] [--results FILE] [--against FILE] [--indexes FOLDER] [--packs]
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

from bench import baselines, code_index, history_tasks, packs, paired, report
from bench.checkouts import Checkout, mirror_of
from ctx.code import file_roles
from ctx.code.lookup import Code
from ctx.packs import file_ranking as ranking
from ctx.packs import seeds
from ctx.packs.file_ranking import RankedFile
from ctx.search import entities, question

OURS = "ours"
METHODS = (*baselines.NAMES, OURS)
BASELINE = baselines.CAREFUL
_LISTED = 200
SETS = {
    "lite": "SWE-bench Lite",
    "verified": "SWE-bench Verified",
    "multilingual": "multilingual (Rust, Go, JavaScript, TypeScript)",
    "githist": "history of repositories",
    "history": f"history ({', '.join(history_tasks.SUFFIXES)})",
}
SEVERAL = "changes of several files"
LIMITS = {"all": "≥ +10", SEVERAL: "≥ +8"}
"""How much better than the baseline ctx should be, in percentage points."""
TABLE, OF_HISTORY = "localisation", "localisation-history"


class Task(NamedTuple):
    id: str
    set: str
    repository: str
    parent: str
    """The commit before the change."""
    text: str
    gold: tuple[str, ...]
    language: str


class Answer(NamedTuple):
    """The result for a task: the rank of each gold file by each method, from 0."""

    id: str
    places: dict[str, list[int | None]]
    milliseconds: float
    """Time to rank with an open index."""
    confidence: float
    """The probability that ctx gives its first file."""
    contents: dict[str, packs.Contents] | None = None
    """Packs by size."""


def read_tasks(path: str, mirrors: str) -> Iterator[Task]:
    if path.endswith(".tsv"):
        yield from history(path, mirrors)
        return
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            yield Task(
                row["id"], row["set"], row["repo"], row["parent_commit"], row["query"],
                tuple(row["gold_files"]), row["lang"],
            )  # fmt: skip


def history(path: str, mirrors: str) -> Iterator[Task]:
    for each in history_tasks.read(path):
        if mirror := mirror_of(mirrors, each.repository):
            parent, text = history_tasks.parent_and_text(each, mirror)
            yield Task(each.id, "history", each.repository, parent, text, each.paths, each.language)
        else:
            print(f"There is no {each.repository}: left out {each.id}.", file=sys.stderr)


# Repository by repository


class Run(NamedTuple):
    """The options of a run."""

    mirrors: str
    without: frozenset[str]
    with_packs: bool
    indexes: str | None = None
    """Where to keep the index for each task."""


def answers(tasks: Sequence[Task], run: Run) -> Iterator[Answer]:
    """The tasks of one repository in commit order, so that each index is built from the last."""
    mirror = mirror_of(run.mirrors, tasks[0].repository)
    if mirror is None:
        print(f"There is no {tasks[0].repository} in {run.mirrors}.", file=sys.stderr)
        return
    ranker = baselines.Ranker(task.text for task in tasks)
    with tempfile.TemporaryDirectory(prefix="ctx-bench-") as space:
        checkout = Checkout(mirror, f"{space}/tree")
        for task in sorted(tasks, key=lambda each: (checkout.committed_at(each.parent), each.id)):
            checkout.move_to(task.parent)
            with opened(task, checkout, space, run) as code:
                yield answer(task, checkout, code, ranker, run)


def opened(task: Task, checkout: Checkout, space: str, run: Run) -> Code:
    """The refreshed index of the checkout; with all edges if packs are measured."""
    kind = "packs" if run.with_packs else "files"
    kept = run.indexes and os.path.join(run.indexes, kind, f"{task.id}.db")
    return code_index.open_index(checkout, space, with_edges=run.with_packs, kept=kept)


def answer(
    task: Task, checkout: Checkout, code: Code, ranker: baselines.Ranker, run: Run
) -> Answer:
    sources = {path: hash for path, hash in checkout.files().items() if baselines.is_source(path)}
    found = ranker.rank(task.text, sources, checkout.read)
    started = time.perf_counter()
    ours = ranked(code, task.text, run.without)
    took = 1000 * (time.perf_counter() - started)
    found[OURS] = [each.path for each in ours]
    places = {
        method: [paths.index(path) if path in paths else None for path in task.gold]
        for method, paths in ((name, paths[:_LISTED]) for name, paths in found.items())
    }
    contents = None
    if run.with_packs:
        changed = packs.changed_by(task.id, task.parent, checkout)
        contents = packs.of_task(task.text, task.gold, changed, code, checkout.root)
    return Answer(task.id, places, took, confidence_of(ours), contents)


def ranked(code: Code, text: str, without: frozenset[str]) -> list[RankedFile]:
    """The ranking by ctx."""
    named = seeds.in_code(code, entities.find(text))
    asked = question.read(text).without(seeds.project_words(code))
    return ranking.rank(code.connection, asked, named.files, named.items, _LISTED, without)


def confidence_of(found: Sequence[RankedFile]) -> float:
    scores = [
        each.score
        for each in found[: ranking.RANKED]
        if file_roles.role_of(each.path) != file_roles.BESIDE
    ]
    return ranking.confidence(scores) if scores else 0.0


# Parallel runs, and resuming


def done_before(path: str) -> dict[str, Answer]:
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as lines:
        # The last line may be truncated.
        rows = [json.loads(line) for line in lines if line.endswith("\n")]
    return {row["id"]: Answer(**row) for row in rows}


def answer_all(tasks: Sequence[Task], run: Run, jobs: int, results: str) -> dict[str, Answer]:
    known = done_before(results)
    waiting: defaultdict[str, list[Task]] = defaultdict(list)
    # A task may be in two sets.
    for task in {task.id: task for task in tasks if task.id not in known}.values():
        waiting[task.repository].append(task)
    groups = sorted(waiting.values(), key=len, reverse=True)
    if jobs == 1:
        for group in groups:
            answer_group(group, run, results)
    else:
        with ProcessPoolExecutor(jobs) as pool:
            started = [pool.submit(answer_group, group, run, results) for group in groups]
            for future in as_completed(started):
                future.result()
    return done_before(results)


def answer_group(tasks: Sequence[Task], run: Run, results: str) -> None:
    """Each answer is appended in one write, because several processes write to the file."""
    for number, each in enumerate(answers(tasks, run), 1):
        line = json.dumps(each._asdict()) + "\n"
        with open(results, "ab", buffering=0) as kept:
            kept.write(line.encode())
        print(f"{tasks[0].repository} {number} of {len(tasks)}", file=sys.stderr, flush=True)


# Figures


def accuracy(places: Sequence[int | None], first: int) -> float:
    return float(all(place is not None and place < first for place in places))


def hit(places: Sequence[int | None]) -> float:
    return float(any(place is not None and place < 5 for place in places))


def reciprocal(places: Sequence[int | None]) -> float:
    found = [place for place in places if place is not None]
    return 1 / (min(found) + 1) if found else 0.0


class Measure(NamedTuple):
    name: str
    of: Callable[[Sequence[int | None]], float]


MEASURES = (
    Measure("Acc@1", lambda places: accuracy(places, 1)),
    Measure("Acc@5", lambda places: accuracy(places, 5)),
    Measure("Acc@10", lambda places: accuracy(places, 10)),
    Measure("hit@5", hit),
    Measure("MRR", reciprocal),
)
STRICT = MEASURES[1]


def values(found: Iterable[Answer], method: str, measure: Measure) -> list[float]:
    return [measure.of(each.places[method]) for each in found]


def print_sets(tasks: Sequence[Task], found: dict[str, Answer]) -> None:
    """Every method on every set, in percent; the interval is for Acc@5."""
    head = "".join(f"{measure.name:>8}" for measure in MEASURES)
    for name, chosen in groups_of(tasks):
        print(f"\n{name}, {len(chosen)} tasks\n{'':32}{head}   Acc@5 between")
        those = [found[task.id] for task in chosen]
        for method in METHODS:
            means = (paired.mean(values(those, method, measure)) for measure in MEASURES)
            around = paired.interval(values(those, method, STRICT))
            cells = "".join(f"{100 * mean:8.1f}" for mean in means)
            print(f"{method:32}{cells}   {100 * around.low:.1f} to {100 * around.high:.1f}")
        ours, theirs = (values(those, method, STRICT) for method in (OURS, BASELINE))
        gain, apart = paired.gain(ours, theirs), paired.differing(ours, theirs)
        print(
            f"  ctx compared with the last of them, Acc@5: {100 * gain.mean:+.1f}"
            f" ({100 * gain.low:+.1f} to {100 * gain.high:+.1f}),"
            f" {apart.won} won, {apart.lost} lost, p = {apart.p:.2g}"
        )


def show_sets(tasks: Sequence[Task], found: dict[str, Answer], command: str, table: str) -> None:
    """Acc@5 of every method on every set, in percent, and the gain over the baseline."""
    rows = []
    limits = LIMITS if table == TABLE else {}
    for name, chosen in groups_of(tasks):
        if name in LIMITS or name in SETS.values():
            those = [found[task.id] for task in chosen]
            by_method = {method: values(those, method, STRICT) for method in METHODS}
            means = [f"{100 * paired.mean(each):.1f}" for each in by_method.values()]
            gain = paired.gain(by_method[OURS], by_method[BASELINE])
            shown = f"{100 * gain.mean:+.1f} ({100 * gain.low:+.1f} to {100 * gain.high:+.1f})"
            rows.append([f"{name}, {len(chosen)}", *means, shown, limits.get(name, "")])
    columns = ["development tasks", "grep", "BM25", "baseline", "ctx", "gain", "limit"]
    report.show_table(report.Table(table, columns, rows), command)


def show_calibration(found: Sequence[Answer], command: str, table: str) -> None:
    """How often the first file is right, by what ctx says about it."""
    rows = []
    for low in range(0, 100, 10):
        own = [each for each in found if low <= 100 * each.confidence < low + 10]
        if own:
            right = paired.mean([float(0 in each.places[OURS]) for each in own])
            rows.append([f"{low} to {low + 10} %", f"{100 * right:.1f} %", str(len(own))])
    columns = ["said", "right", "development tasks"]
    report.show_table(report.Table(f"{table}-confidence", columns, rows), command)


def print_difference(
    tasks: Sequence[Task], found: dict[str, Answer], other: dict[str, Answer]
) -> None:
    """Every measure of this run compared with another run, on the tasks of both."""
    ids = sorted({task.id for task in tasks} & other.keys())
    runs = [other[id] for id in ids], [found[id] for id in ids]
    rows = []
    for measure in MEASURES:
        before, after = (values(run, OURS, measure) for run in runs)
        rows.append([measure.name, *paired.row(before, after)])
    contents = [(before.contents, after.contents) for before, after in zip(*runs, strict=True)]
    rows += packs.differences(contents)
    note = f"{len(ids)} tasks in both runs"
    report.print_table(report.Table("", ["measure", *paired.COLUMNS], rows, note))


def groups_of(tasks: Sequence[Task]) -> list[tuple[str, list[Task]]]:
    """All tasks; by set, by language, and those that need several files."""
    groups: dict[str, list[Task]] = {"all": list(tasks)}
    for task in tasks:
        groups.setdefault(SETS.get(task.set, task.set), []).append(task)
    for task in tasks:
        groups.setdefault(f"language {task.language}", []).append(task)
    groups[SEVERAL] = [task for task in tasks if len(task.gold) > 1]
    return [(name, chosen) for name, chosen in groups.items() if chosen]


def chosen_tasks(tasks: Iterable[Task], options: argparse.Namespace) -> list[Task]:
    kept = [
        task
        for task in tasks
        if (not options.set or task.set in options.set)
        and (not options.repo or task.repository in options.repo)
    ]
    count = min(options.limit or len(kept), len(kept))
    # Spread over all tasks, the same ones in every run.
    return [kept[place * len(kept) // count] for place in range(count)]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench localisation")
    parser.add_argument("tasks", nargs="?")
    parser.add_argument("mirrors", nargs="?")
    parser.add_argument("--set", action="append", help="only this set; may be repeated")
    parser.add_argument("--repo", action="append", help="only this repository; may be repeated")
    parser.add_argument("--limit", type=int, help="number of tasks, spread over all")
    parser.add_argument("--without", action="append", default=[], help="switch off a signal")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--results", help="file for the answers; a later run continues from it")
    parser.add_argument("--against", help="results file of another run, to compare with")
    parser.add_argument("--indexes", help="folder in which to keep the indexes")
    parser.add_argument("--packs", action="store_true", help="measure packs too")
    options = parser.parse_args()
    if options.mirrors is None:
        print("  needs tasks and git directories: python -m bench localisation TASKS MIRRORS")
        return
    tasks = chosen_tasks(read_tasks(options.tasks, options.mirrors), options)
    mirrors = os.path.abspath(options.mirrors)
    run = Run(mirrors, frozenset(options.without), options.packs, options.indexes)
    with tempfile.TemporaryDirectory(prefix="ctx-bench-") as space:
        results = options.results or str(Path(space, "results.jsonl"))
        found = answer_all(tasks, run, options.jobs, results)
    answered = [task for task in tasks if task.id in found]
    if not answered:
        raise SystemExit("No task was answered.")
    print_sets(answered, found)
    of_history = options.tasks.endswith(".tsv")
    command = f"python -m bench localisation {'bench/history_tasks.tsv' if of_history else 'TASKS'}"
    command += " MIRRORS" + "".join(f" --set {name}" for name in options.set or ())
    if options.packs:
        contents = [(task.set, found[task.id].contents) for task in answered]
        packs.show_figures(
            contents, f"{command} --packs", "packs-history" if of_history else "packs"
        )
    else:
        table = OF_HISTORY if of_history else TABLE
        show_sets(answered, found, command, table)
        show_calibration([found[task.id] for task in answered], command, table)
    if options.against:
        print_difference(answered, found, done_before(options.against))
    took = sorted(found[task.id].milliseconds for task in answered)
    print(f"\nranking: {took[len(took) // 2]:.0f} ms median, {took[-1]:.0f} maximum")


if __name__ == "__main__":
    main()
