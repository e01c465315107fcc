"""Hooks of claude-mem and of ctx, with the same events and a running worker.

The events are those of `python -m bench hooks`, each `PostToolUse` with an id and a command of its
own. A hook runs as it is registered, as a whole process; where two are registered for an event,
both run. *Worker* is the CPU time of the worker for each `PostToolUse` event, from the hook until
nothing is left to do.

*Cold* is `SessionStart` without memory and without a worker, because none was started yet or the
last one was killed, and the time until the worker runs that it starts.

Afterwards twice as many `PostToolUse` events are sent, and the worker is killed with every second
one, at a random moment from the start of the hook until a second after it usually ends. The model
of claude-mem takes a second then, which is quick for a model. *Kept* are the events that are stored
at the end. *In memory* are those that search or the start text can show: observations of
claude-mem, steps of ctx.
"""

import json
import random
import time
from collections.abc import Callable, Mapping
from functools import partial
from statistics import median
from threading import Timer
from typing import NamedTuple, Protocol

from bench import report
from bench.peers import processes
from bench.peers.claude_mem import claude_mem
from bench.peers.ctx_hooks import ctx_hooks
from bench.peers.hook_events import NAMES, fields
from bench.peers.processes import Ran
from bench.timing import Cost, ms

COLD = 3
ONE_KILLED_OF = 2
SEED = 11
MODEL_S = 1.0
RESTART_S = 10


class HookTool(Protocol):
    """A memory that lives from the hooks of an agent, with a worker behind them."""

    label: str
    folder: str
    """The project in which the agent works."""

    def hook(self, event: str, fields: bytes) -> Ran:
        """Run all hooks that are registered for an event; the output is that of the last."""

    def worker(self) -> int | None:
        """The process id of the worker, if one runs and is ready."""

    def settle(self) -> None:
        """Wait until all events were processed, with a worker."""

    def kept(self) -> set[int]:
        """The numbers of the tool uses that are stored."""

    def remembered(self) -> set[int]:
        """The numbers of the tool uses that can be found or shown."""

    def slow_down_model(self, seconds: float) -> None:
        """Let each answer of the model take so long; does nothing without a model."""


class Measured(NamedTuple):
    label: str
    cold: Cost
    cold_until_worker: float
    hooks: Mapping[str, Cost]
    worker_cpu: float
    worker_mb: float
    sent: int
    kills: int
    kept: int
    remembered: int
    start_text: str


def measured(tool: HookTool, rounds: int) -> Measured:
    cold, until_worker = cold_starts(tool)
    # The prompt comes first: it opens the session.
    send(tool, "UserPromptSubmit")
    tool.settle()
    pid = processes.wait_for("a worker", tool.worker)
    before = processes.cpu_seconds(pid)
    uses = [send(tool, "PostToolUse", number).cost for number in range(rounds)]
    tool.settle()
    worker_cpu = (processes.cpu_seconds(pid) - before) / rounds
    hooks = {"PostToolUse": middle(uses)}
    for event in ("UserPromptSubmit", "Stop", "SessionStart"):
        hooks[event] = middle([send(tool, event).cost for _ in range(rounds)])
    tool.settle()
    worker_mb = processes.resident_mb([pid])
    sent, kills = lose(tool, rounds, hooks["PostToolUse"].wall)
    numbers = set(range(sent))
    return Measured(
        tool.label, cold, until_worker, hooks, worker_cpu, worker_mb, sent, kills,
        len(tool.kept() & numbers), len(tool.remembered() & numbers),
        start_text(send(tool, "SessionStart").out),
    )  # fmt: skip


def send(tool: HookTool, event: str, number: int = 0) -> Ran:
    return tool.hook(event, fields(tool.folder, event, number))


def cold_starts(tool: HookTool) -> tuple[Cost, float]:
    """Each starts a worker that is then killed; the last one is left running."""
    costs, waits = [], []
    for number in range(COLD):
        if number and (old := tool.worker()):
            processes.end(old)
            processes.wait_for("the end of the worker", lambda: not tool.worker())
        began = time.perf_counter()
        costs.append(send(tool, "SessionStart").cost)
        processes.wait_for("a worker", tool.worker)
        waits.append(time.perf_counter() - began)
    return middle(costs), median(waits)


def lose(tool: HookTool, first: int, hook_s: float) -> tuple[int, int]:
    """Send twice as many events and kill workers; the number of all events, and of kills."""
    rng = random.Random(SEED)
    kills = 0
    tool.slow_down_model(MODEL_S)
    for number in range(first, 3 * first):
        timer = None
        if number % ONE_KILLED_OF == 0 and (pid := worker_soon(tool)):
            timer = Timer(rng.uniform(0, hook_s + MODEL_S), processes.end, [pid])
            timer.start()
            kills += 1
        send(tool, "PostToolUse", number)
        if timer:
            timer.join()
    tool.slow_down_model(0)
    while not tool.worker():
        # Neither tool starts a worker twice within seconds.
        time.sleep(6)
        send(tool, "SessionStart")
    tool.settle()
    return 3 * first, kills


def worker_soon(tool: HookTool) -> int | None:
    """The worker that the hooks have started again, if they have."""
    deadline = time.monotonic() + RESTART_S
    while not (pid := tool.worker()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return pid


def middle(costs: list[Cost]) -> Cost:
    return Cost(median(each.cpu for each in costs), median(each.wall for each in costs))


def start_text(answer: bytes) -> str:
    """The text that the agent gets at the start of a session."""
    if not answer.strip():
        return ""
    said = json.loads(answer.splitlines()[-1])
    text: str = said.get("hookSpecificOutput", {}).get("additionalContext", "")
    return text


def show_figures(tools: list[Measured], command: str) -> None:
    rows: list[tuple[str, Callable[[Measured], str]]] = [
        (f"{event}, CPU; wall", partial(hook_cost, event)) for event in NAMES
    ]
    rows += [
        ("SessionStart without a worker, CPU; wall", lambda each: cost(each.cold)),
        ("until the worker runs, wall", lambda each: f"{each.cold_until_worker:.2f} s"),
        ("worker, CPU for each PostToolUse", lambda each: ms(each.worker_cpu)),
        ("worker, resident memory", lambda each: f"{each.worker_mb:.0f} MB"),
        ("how often the worker is killed", lambda each: str(each.kills)),
        ("tool uses stored", lambda each: f"{each.kept} of {each.sent}"),
        ("tool uses in memory at the end", lambda each: f"{each.remembered} of {each.sent}"),
        ("text at the next start, characters", lambda each: f"{len(each.start_text):,}"),
    ]
    for each in tools:
        print(f"\n-- start text of {each.label}\n{each.start_text}")
    columns = ["measure", *(each.label for each in tools)]
    cells = [[name, *map(cell, tools)] for name, cell in rows]
    report.show_table(report.Table("peers-hooks", columns, cells), command)


def hook_cost(event: str, each: Measured) -> str:
    return cost(each.hooks[event])


def cost(each: Cost) -> str:
    return f"{ms(each.cpu)}; {ms(each.wall)}"


def compare(rounds: int) -> None:
    found = []
    for opened in (ctx_hooks, claude_mem):
        with opened() as tool:
            found.append(measured(tool, rounds))
    show_figures(found, f"python -m bench peers hooks --rounds {rounds}")
