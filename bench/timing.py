"""What a piece of work costs, and the table that says so.

The machines are shared, so the sides of a comparison are run alternately: a busy minute slows
them alike. A time is the median over the rounds. A ratio is the median of the rounds' ratios,
not the ratio of two medians, which on a disk that is busy half of the time may come from
different halves. CPU time is preferred; wall-clock time is for work that waits for the disk.
"""

import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import NamedTuple


class Cost(NamedTuple):
    """In seconds. The CPU time is that of the user and of the system together."""

    cpu: float
    wall: float


def of_call(work: Callable[[], object]) -> Cost:
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return Cost(time.process_time() - cpu, time.perf_counter() - wall)


def of_call_and_children(work: Callable[[], object]) -> Cost:
    """The CPU time of the processes that the work started and waited for counts too."""
    before = os.times()
    cost = of_call(work)
    after = os.times()
    children = after.children_user + after.children_system
    return Cost(cost.cpu + children - before.children_user - before.children_system, cost.wall)


def of_child(
    command: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    folder: str | None = None,
    reads: str = os.devnull,
) -> Cost:
    """A whole process, from before it starts until it is gone. What it prints goes nowhere."""
    with open(reads, "rb") as source:
        started = time.perf_counter()
        child = subprocess.Popen(
            command, env=environment, cwd=folder, stdin=source, stdout=subprocess.DEVNULL
        )
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.perf_counter() - started
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise subprocess.CalledProcessError(child.returncode, command)
    return Cost(usage.ru_utime + usage.ru_stime, wall)


class Rounds:
    """What each side of a comparison cost, round by round."""

    def __init__(self, costs: Mapping[str, Sequence[Cost]]) -> None:
        self._costs = costs

    def cpu(self, side: str) -> float:
        return median(cost.cpu for cost in self._costs[side])

    def wall(self, side: str) -> float:
        return median(cost.wall for cost in self._costs[side])

    def cpu_ratio(self, ours: str, other: str) -> float:
        pairs = zip(self._costs[ours], self._costs[other], strict=True)
        return median(our.cpu / their.cpu for our, their in pairs)

    def wall_ratio(self, ours: str, other: str) -> float:
        pairs = zip(self._costs[ours], self._costs[other], strict=True)
        return median(our.wall / their.wall for our, their in pairs)


def alternate(rounds: int, sides: Mapping[str, Callable[[], Cost]]) -> Rounds:
    """Each side once per round; every other round backwards, so that no side is always first."""
    costs: dict[str, list[Cost]] = {name: [] for name in sides}
    order = list(sides)
    for _ in range(rounds):
        for name in order:
            costs[name].append(sides[name]())
        order.reverse()
    return Rounds(costs)


class Figure(NamedTuple):
    """A line of the table. What does not apply is left empty."""

    name: str
    ours: str
    floor: str = ""
    baseline: str = ""
    ratio: str = ""
    limit: str = ""


def ms(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"


def times(ratio: float) -> str:
    return f"{ratio:.2f} ×"


def print_table(figures: Sequence[Figure]) -> None:
    lines = [Figure("", "ours", "floor", "baseline", "ratio", "limit"), *figures]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for name, *cells in lines:
        right = (cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))
        print("  ".join([name.ljust(widths[0]), *right]).rstrip())
