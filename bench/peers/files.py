"""Files for a task: aider's repository map beside ctx, grep and BM25.

Tasks, checkouts, baselines and measures are those of `python -m bench localisation`. aider gets the
source files that the baselines get, and the text of the task as a message, without files in the
chat. Its order of files is that of the map before it is cut to a number of tokens. The CPU time of
ctx is for refreshing its index and ranking; that of aider is for its tags and ranking. Both keep
what they read of one task for the next.
"""

import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from statistics import median
from typing import NamedTuple

from bench import baselines, localisation, paired, report, timing
from bench.checkouts import Checkout, mirror_of
from bench.localisation import MEASURES, METHODS, OURS, STRICT, Answer, Run, Task
from bench.peers import processes
from bench.peers.driven import Driven, driven
from bench.peers.installs import AIDER
from bench.timing import Cost


class Compared(NamedTuple):
    answer: Answer
    ours: Cost
    theirs: Cost


def answers(tasks: Sequence[Task], mirrors: str, aider: Driven) -> Iterator[Compared]:
    """The tasks of one repository, in the order of their commits."""
    mirror = mirror_of(mirrors, tasks[0].repository)
    if mirror is None:
        print(f"There is no {tasks[0].repository} in {mirrors}.", file=sys.stderr)
        return
    run = Run(mirrors, frozenset(), with_packs=False)
    ranker = baselines.Ranker(task.text for task in tasks)
    with tempfile.TemporaryDirectory(prefix="ctx-bench-") as space:
        checkout = Checkout(mirror, f"{space}/tree")
        for task in sorted(tasks, key=lambda each: (checkout.committed_at(each.parent), each.id)):
            checkout.move_to(task.parent)
            ours = timing.of_call_and_children(partial(_rank_with_ctx, task, checkout, space, run))
            with localisation.opened(task, checkout, space, run) as code:
                answer = localisation.answer(task, checkout, code, ranker, run)
            sources = list(filter(baselines.is_source, checkout.files()))
            theirs = aider.ask(root=checkout.root, files=sources, text=task.text)
            answer.places[AIDER.label] = [
                theirs.found.index(path) if path in theirs.found else None for path in task.gold
            ]
            yield Compared(answer, ours, theirs.cost)


def _rank_with_ctx(task: Task, checkout: Checkout, space: str, run: Run) -> None:
    with localisation.opened(task, checkout, space, run) as code:
        localisation.ranked(code, task.text, run.without)


def compare(tasks: Sequence[Task], mirrors: str, command: str) -> None:
    groups: defaultdict[str, list[Task]] = defaultdict(list)
    for task in {task.id: task for task in tasks}.values():
        groups[task.repository].append(task)
    found: list[Compared] = []
    for repository, group in groups.items():
        # Its cache has absolute paths.
        with (
            processes.temporary_home() as home,
            driven(AIDER, "aider_driver.py", home, {}) as aider,
        ):
            for each in answers(group, mirrors, aider):
                found.append(each)
                print(f"{repository}, {len(found)} of {len(tasks)}", file=sys.stderr, flush=True)
    if found:
        show_figures(found, command)


def show_figures(found: Sequence[Compared], command: str) -> None:
    those = [each.answer for each in found]
    took = {
        OURS: median(each.ours.cpu for each in found),
        AIDER.label: median(each.theirs.cpu for each in found),
    }
    rows = []
    for method in (*METHODS, AIDER.label):
        row = ["ctx" if method == OURS else method]
        for measure in MEASURES:
            found_by = localisation.values(those, method, measure)
            around = paired.interval(found_by)
            between = f" ({100 * around.low:.1f} to {100 * around.high:.1f})"
            row.append(f"{100 * around.mean:.1f}{between if measure is STRICT else ''}")
        rows.append([*row, f"{took[method]:.1f} s" if method in took else ""])
    names = [measure.name for measure in MEASURES]
    columns = [f"{len(those)} development tasks", *names, "CPU for a task, median"]
    report.show_table(report.Table("peers-files", columns, rows), command)
    ours, theirs = (localisation.values(those, each, STRICT) for each in (OURS, AIDER.label))
    apart = paired.differing(ours, theirs)
    print(f"  ctx and aider, Acc@5: {apart.won} won, {apart.lost} lost, p = {apart.p:.2g}")
