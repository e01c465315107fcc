"""What the worker does from its start to its end.

It takes the lock, opens the wake pipe and drains the spool. Then it loads the rest and serves, with
a round after each wake-up, until no session needs it. Before it exits, it closes the pipe and
checks the spool once more, so that no wake-up is lost.
"""

import os
import signal
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

import ctx
from ctx import disk
from ctx.layout import UserStore
from ctx.worker import process_lock, spawn
from ctx.worker.event_loop import WakePipe
from ctx.worker.worker import ExitReason, OpenMemory, Worker, WorkerLimits, end_children
from ctx.workspace import Environment

if TYPE_CHECKING:
    from ctx.page.doctor_runs import Doctor

_EXITING_S = 3.0
"""How long to wait for a worker that is exiting."""


def run(
    environment: Environment,
    open_memory: OpenMemory,
    limits: WorkerLimits,
    variables: Mapping[str, str],
    wait_s: float = _EXITING_S,
    doctor: "Doctor | None" = None,
) -> ExitReason | None:
    """Run the worker until there is a reason to exit; None if one is already running.

    `variables` is the whole environment, for a backend that needs a key or starts a program.
    `doctor` is for the page.
    """
    store = environment.user_store
    # Until the event loop handles them.
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signal_number, _exit)
    with process_lock.hold(store.worker_lock, wait_s) as is_ours:
        if is_ours:
            wake_pipe = WakePipe(store.worker_wake)
        # From now on, hooks see a running worker.
        disk.discard(os.path.join(store.home, spawn.MARK))
        if not is_ours:
            return None
        worker = Worker(environment, open_memory, limits, variables)
        worker.log(f"started, version {ctx.__version__}")
        try:
            worker.drain()
            # These modules are slow to load.
            from ctx.worker import event_loop

            reason = event_loop.serve(worker, wake_pipe, doctor)
        finally:
            wake_pipe.close()
            worker.stop_asking()
            end_children()
        if worker.has_work() and reason not in ("stopped", "removed"):
            worker.drain()
        worker.log(f"gone: {reason}")
        is_needed = worker.has_work() or worker.idle_left_s > 0
    # A worker that nothing needs is not restarted.
    return "idle" if reason in ("large", "replaced") and not is_needed else reason


def detach() -> None:
    """Detach from the process that started this one."""
    os.closerange(3, 256)
    os.umask(0o077)
    os.chdir(os.sep)
    os.nice(5)


def restart(store: UserStore) -> None:
    """Restart in the same process, with fresh memory and the installed code."""
    # If ctx was uninstalled, there is nothing to run.
    if os.path.exists(sys.executable) and os.path.exists(ctx.__file__):
        words = ("worker", "run", "--detached")
        os.execv(sys.executable, spawn.command(store.home, words))


def _exit(_number: int, _frame: object) -> None:
    """Exit; the open transaction is rolled back, and the next worker repeats the work."""
    raise SystemExit(0)
