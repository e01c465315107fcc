"""How much of what people would read for a task is in a pack, and what else is.

For each task, people chose the lines to read. The benchmark checks out the commit, refreshes the
index and builds packs without memory. It compares what a pack shows with these lines, and so for a
baseline: the files that a tuned BM25 ranks first, whole, until the budget is used up (the last one
is cut). For each pack it computes recall, precision and F1, and shows the means over the tasks:

- files,
- blocks: functions, methods and types that overlap the lines, with the enclosing ones,
- lines: those whose text is shown. A signature counts by the lines that it covers.

A second table shows where the lines of the people go, and what the tokens of a pack are used for.

TASKS is a JSONL file with id, repo, base_commit, problem_statement, gold_files and gold_lines.
MIRRORS is a folder with git directories `owner+name/repo`. Each answer is appended to a file
(`--results`), and an interrupted run continues from it. `--against` compares the run with another
results file, task by task. To measure another checkout of ctx with this benchmark, run the Python
of its environment in this folder. With `--indexes FOLDER`, the indexes are kept there and opened by
the next run as they are, which takes seconds. Use it only for versions that index alike.

    python -m bench gold TASKS MIRRORS [--repo R] [--budget N] [--results FILE] [--against FILE]
        [--indexes FOLDER]
"""

import argparse
import json
import os
import sys
import tempfile
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from bench import baselines, code_index, pack_lines, packs, paired, report
from bench.checkouts import Checkout, mirror_of
from bench.pack_lines import Files
from ctx.code.lookup import Code
from ctx.code.vocabulary import KINDS, SLOTS
from ctx.packs.prompt_pack import Chunk, PromptPack

FAULTY = {"SWE-Bench-Pro__javascript__maintenance__bugfix__ac8400d9"}
"""Its text is the issue of another project."""
OURS, BASELINE = "ctx", "BM25, whole files"
LEVELS = ("files", "blocks", "lines")
FIGURES = ("recall", "precision", "F1")
PLACES = (
    *("shown", "cut from a chosen item", "another item of a file in the pack", "signature only"),
    *("file ranked, left out", "file not ranked"),
)
SHOWN, CUT, OTHER_ITEM, SIGNATURE, LEFT_OUT, UNRANKED = PLACES
TOUCHING, GRAPH_MISSES = "tokens that touch gold", "tokens of graph chunks that do not"
_CHARACTERS_A_TOKEN = 3.5
"""As `ctx.tokens` estimates them."""
_BLOCKS = [KINDS.index(kind) for kind in KINDS if kind not in ("module", "const", "static")]

Lines = Mapping[str, Set[int]]
"""Line numbers by path."""
Measures = dict[str, float]


class Task(NamedTuple):
    id: str
    repository: str
    commit: str
    text: str
    files: frozenset[str]
    spans: Mapping[str, Sequence[tuple[int, int]]]


class Block(NamedTuple):
    """A definition."""

    path: str
    first_line: int
    last_line: int
    signature: str


def read_tasks(path: str) -> Iterator[Task]:
    with open(path, encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            if row["id"] not in FAULTY:
                yield Task(
                    row["id"], row["repo"], row["base_commit"], row["problem_statement"],
                    frozenset(row["gold_files"]), row["gold_lines"],
                )  # fmt: skip


# One task


def answers(
    tasks: Sequence[Task], mirror: str, budgets: Sequence[int], indexes: str | None
) -> Iterator[tuple[Task, dict[str, Measures]]]:
    """The tasks of one repository in commit order, so that each index is built from the last."""
    ranker = baselines.Ranker(task.text for task in tasks)
    with tempfile.TemporaryDirectory(prefix="ctx-bench-") as space:
        checkout = Checkout(mirror, f"{space}/tree")
        for task in sorted(tasks, key=lambda each: checkout.committed_at(each.commit)):
            checkout.move_to(task.commit)
            kept = indexes and os.path.join(indexes, f"{task.id}.db")
            with code_index.open_index(checkout, space, with_edges=True, kept=kept) as code:
                yield task, dict(answer(task, checkout, code, ranker, budgets))


def answer(
    task: Task, checkout: Checkout, code: Code, ranker: baselines.Ranker, budgets: Sequence[int]
) -> Iterator[tuple[str, Measures]]:
    files = Files(checkout.root)
    gold = {
        path: {line for first, last in spans for line in range(first, last + 1)}
        & set(range(1, len(files.lines(path)) + 1))
        for path, spans in task.spans.items()
    }
    sources = {path: hash for path, hash in checkout.files().items() if baselines.is_source(path)}
    best = ranker.rank(task.text, sources, checkout.read)[baselines.CAREFUL]
    for budget in budgets:
        pack = packs.build_pack(task.text, code, checkout.root, budget)
        shown = pack_lines.shown_by_path(pack.retrieved, files)
        measures = compared(shown, task.files, gold, code)
        measures |= where(pack, shown, gold, code) | used(pack, gold, files)
        yield f"{OURS} {budget}", measures
        whole = whole_files(best, files, budget)
        yield f"{BASELINE} {budget}", compared(whole, task.files, gold, code)


def whole_files(best: Iterable[str], files: Files, budget: int) -> Lines:
    """The first files whole, until the budget is used up."""
    shown: dict[str, Set[int]] = {}
    left = budget * _CHARACTERS_A_TOKEN
    for path in best:
        ends = list(accumulate(len(line) + 1 for line in files.lines(path)))
        kept = bisect_right(ends, left)
        shown[path] = set(range(1, kept + 1))
        if kept < len(ends):
            break
        left -= ends[-1]
    return {path: lines for path, lines in shown.items() if lines}


def compared(shown: Lines, gold_files: Set[str], gold: Lines, code: Code) -> Measures:
    """Recall, precision and F1 of files, blocks and lines."""
    return {
        **_overlap("files", set(shown), gold_files),
        **_overlap("blocks", set(blocks_of(shown, code)), set(blocks_of(gold, code))),
        **_overlap("lines", _flat(shown), _flat(gold)),
    }


def _overlap(level: str, ours: Set[object], theirs: Set[object]) -> Measures:
    """Nothing if the people chose nothing, such as constants, which are no blocks."""
    if not theirs:
        return {}
    both = len(ours & theirs)
    recall, precision = both / len(theirs), both / max(len(ours), 1)
    f1 = 2 * recall * precision / (recall + precision) if both else 0.0
    return {f"{level} recall": recall, f"{level} precision": precision, f"{level} F1": f1}


def blocks_of(lines: Lines, code: Code) -> Iterator[Block]:
    """The definitions that overlap some lines."""
    for path, numbers in lines.items():
        for block in _blocks_in(path, code):
            if not numbers.isdisjoint(range(block.first_line, block.last_line + 1)):
                yield block


def _blocks_in(path: str, code: Code) -> list[Block]:
    rows = code.connection.execute(
        "SELECT line, end_line, signature FROM items WHERE parent IS NOT NULL"
        " AND kind IN (SELECT value FROM json_each(?))"
        " AND id >> ? = (SELECT id FROM files WHERE path = ?)",
        (json.dumps(_BLOCKS), SLOTS, path),
    )
    return [Block(path, *row) for row in rows]


def _flat(lines: Lines) -> set[tuple[str, int]]:
    return {(path, number) for path, numbers in lines.items() for number in numbers}


# Where the lines go


def where(pack: PromptPack, shown: Lines, gold: Lines, code: Code) -> Measures:
    """The shares of the lines of the people by what has become of them."""
    ranked = {file.path for file in pack.files}
    places: Counter[str] = Counter()
    for path, numbers in gold.items():
        chunks = [chunk for chunk in pack.retrieved if chunk.path == path]
        blocks = _blocks_in(path, code)
        signatures = {(each.last_line, each.signature) for each in blocks}
        for number in numbers:
            if not chunks:
                place = LEFT_OUT if path in ranked else UNRANKED
            elif number in shown[path]:
                place = SHOWN
            else:
                place = _hidden(number, chunks, blocks, signatures)
            places[place] += 1
    return {place: places[place] / max(places.total(), 1) for place in PLACES}


def _hidden(
    number: int,
    chunks: Iterable[Chunk],
    blocks: Iterable[Block],
    signatures: Set[tuple[int | None, str]],
) -> str:
    """Why a line of a file in the pack is not shown. A function in a chosen class is another
    item."""
    around = [each for each in blocks if each.first_line <= number <= each.last_line]
    innermost = min(around, key=lambda each: each.last_line - each.first_line, default=None)
    place = OTHER_ITEM
    for chunk in chunks:
        first, last = chunk.first_line or 1, chunk.last_line or 0
        if not first <= number <= last:
            continue
        if innermost and (first > innermost.first_line or innermost.last_line < last):
            continue
        if all((last, text) not in signatures for text in _beginnings(chunk.snippet)):
            return CUT
        place = SIGNATURE
    return place


def _beginnings(snippet: str) -> Iterator[str]:
    """What may be a signature: all of it, or what is before the last line."""
    yield snippet
    yield snippet.rpartition("\n")[0]


def used(pack: PromptPack, gold: Lines, files: Files) -> Measures:
    """The shares of the tokens of a pack."""
    touching = misses = 0
    for chunk in pack.retrieved:
        shown = pack_lines.lines_of(chunk, files.lines(chunk.path)) if chunk.path else set()
        if not shown.isdisjoint(gold.get(chunk.path or "", ())):
            touching += chunk.tokens
        elif chunk.via:
            misses += chunk.tokens
    every = pack.token_budget.used or 1
    return {TOUCHING: touching / every, GRAPH_MISSES: misses / every, "tokens": every}


# Figures


def show_figures(found: Mapping[str, Mapping[str, Measures]], budgets: Sequence[int]) -> None:
    """The means over the tasks, as shares of 1."""

    def means(name: str, keys: Iterable[str]) -> list[float]:
        every = [of_task[name] for of_task in found.values()]
        return [paired.mean([each[key] for each in every if key in each]) for key in keys]

    rows, places = [], []
    for budget in budgets:
        for method in (OURS, BASELINE):
            name = f"{method} {budget}"
            cells = [
                " / ".join(f"{mean:.3f}" for mean in means(name, (f"{level} {f}" for f in FIGURES)))
                for level in LEVELS
            ]
            rows.append([f"{method}, {budget:,} tokens", *cells])
        name = f"{OURS} {budget}"
        shares = means(name, (*PLACES, TOUCHING, GRAPH_MISSES))
        [size] = means(name, ["tokens"])
        places.append([f"{budget:,}", *(f"{100 * each:.1f}" for each in shares), f"{size:,.0f}"])
    command = "python -m bench gold TASKS MIRRORS"
    heads = [f"{level}: R / P / F1" for level in LEVELS]
    note = f"{len(found)} tasks"
    report.show_table(report.Table("gold", ["pack", *heads], rows, note), command)
    columns = ["budget", *PLACES, TOUCHING, GRAPH_MISSES, "tokens used"]
    report.show_table(report.Table("gold-lines", columns, places, note), command)


def print_difference(
    found: Mapping[str, Mapping[str, Measures]],
    other: Mapping[str, Mapping[str, Measures]],
    budgets: Sequence[int],
) -> None:
    """Every measure of this run compared with another run, on the tasks of both."""
    ids = sorted(found.keys() & other.keys())
    rows = []
    for budget in budgets:
        name = f"{OURS} {budget}"
        for key in (*(f"{level} {f}" for level in LEVELS for f in FIGURES), *PLACES, TOUCHING):
            pairs = [(other[id][name], found[id][name]) for id in ids if name in other[id]]
            known = [(old[key], new[key]) for old, new in pairs if key in old and key in new]
            if known:
                old, new = zip(*known, strict=True)
                rows.append([f"{budget:,}, {key}", *paired.row(old, new)])
    columns = ["budget, measure", *paired.COLUMNS]
    report.print_table(report.Table("", columns, rows, f"{len(ids)} tasks in both runs"))


def read_results(path: str) -> dict[str, dict[str, Measures]]:
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as lines:
        # The last line may be truncated.
        rows = [json.loads(line) for line in lines if line.endswith("\n")]
    return {row["id"]: row["measures"] for row in rows}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench gold")
    parser.add_argument("tasks", nargs="?")
    parser.add_argument("mirrors", nargs="?")
    parser.add_argument("--repo", action="append", help="only this repository; may be repeated")
    parser.add_argument("--budget", action="append", type=int, help="may be repeated")
    parser.add_argument("--results", help="file for the answers; a later run continues from it")
    parser.add_argument("--against", help="results file of another run, to compare with")
    parser.add_argument("--indexes", help="folder in which to keep the indexes")
    options = parser.parse_args()
    if options.mirrors is None:
        print("  needs tasks and git directories: python -m bench gold TASKS MIRRORS")
        return
    budgets = options.budget or packs.BUDGETS
    by_repository: defaultdict[str, list[Task]] = defaultdict(list)
    for task in read_tasks(options.tasks):
        if not options.repo or task.repository in options.repo:
            by_repository[task.repository].append(task)
    with tempfile.TemporaryDirectory(prefix="ctx-bench-") as space:
        results = options.results or str(Path(space, "results.jsonl"))
        known = read_results(results)
        for repository, tasks in by_repository.items():
            mirror = mirror_of(options.mirrors, repository)
            if mirror is None:
                left_out = ", ".join(task.id for task in tasks)
                print(f"There is no {repository}: left out {left_out}.", file=sys.stderr)
                continue
            waiting = [task for task in tasks if task.id not in known]
            for task, measures in answers(waiting, mirror, budgets, options.indexes):
                with open(results, "a", encoding="utf-8") as kept:
                    kept.write(json.dumps({"id": task.id, "measures": measures}) + "\n")
                print(f"{repository} {task.id}", file=sys.stderr, flush=True)
        every = {task.id for tasks in by_repository.values() for task in tasks}
        found = {id: each for id, each in read_results(results).items() if id in every}
    if not found:
        raise SystemExit("No task was answered.")
    show_figures(found, budgets)
    if options.against:
        print_difference(found, read_results(options.against), budgets)


if __name__ == "__main__":
    main()
