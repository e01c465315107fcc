"""Measure the cost of a piece of work.

The machines are shared, so the sides of a comparison alternate: a busy minute slows them equally. A
time is the median over the rounds. A ratio is the median of the rounds' ratios, not the ratio of
two medians, which may come from different minutes of a busy disk. CPU time is preferred; wall-clock
time is for work that waits for the disk.
"""

import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import NamedTuple


class Cost(NamedTuple):
    """Times in seconds. CPU time is user plus system."""

    cpu: float
    wall: float


def of_call(work: Callable[[], object]) -> Cost:
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return Cost(time.process_time() - cpu, time.perf_counter() - wall)


def of_call_and_children(work: Callable[[], object]) -> Cost:
    """CPU time includes child processes that the call waited for."""
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
    """A whole process, from start to exit. Its output is discarded."""
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
    """The cost of each side of a comparison, round by round."""

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
    """Each side once per round; every other round in reverse, so that no side is always first."""
    costs: dict[str, list[Cost]] = {name: [] for name in sides}
    order = list(sides)
    for _ in range(rounds):
        for name in order:
            costs[name].append(sides[name]())
        order.reverse()
    return Rounds(costs)


class Figure(NamedTuple):
    """A line of the table. Cells that do not apply are empty."""

    name: str
    ours: str
    floor: str = ""
    baseline: str = ""
    ratio: str = ""
    limit: str = ""


def ms(seconds: float) -> str:
    return f"{seconds * 1000:,.1f} ms"


def more(seconds: float) -> str:
    """How much longer than something else."""
    return f"{seconds * 1000:+,.1f} ms"


def times(ratio: float) -> str:
    return f"{ratio:.2f} ×"
