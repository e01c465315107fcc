"""What the worker does from its start to its end.

It takes the lock, hangs up the bell, empties the spool; then it loads the rest and serves, with a
round after each ring, until there is nobody left to work for. Before it goes it takes the bell
down and looks into the spool once more, so that no hook has rung for nothing.
"""

import os
import signal
import sys
from collections.abc import Mapping

import ctx
from ctx import disk
from ctx.layout import UserStore
from ctx.worker import lock, starting
from ctx.worker.bell import Bell
from ctx.worker.worker import Limits, Opened, Reason, Worker, end_children
from ctx.workspace import Environment

_GOING_S = 3.0
"""How long one that is just going is waited for."""


def run(
    environment: Environment,
    opened: Opened,
    limits: Limits,
    variables: Mapping[str, str],
    patience_s: float = _GOING_S,
) -> Reason | None:
    """Be the worker until there is a reason to go; None where there is one already.

    One that is just going is waited for. `variables` is the whole environment, for a model that
    needs a key or is a program.
    """
    store = environment.user_store
    # Until the loop listens to them itself.
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, _leave)
    with lock.held(store.worker_lock, patience_s) as is_ours:
        if is_ours:
            bell = Bell(store.worker_wake)
        # From now on hooks see that there is one.
        disk.discard(os.path.join(store.home, starting.MARK))
        if not is_ours:
            return None
        worker = Worker(environment, opened, limits, variables)
        worker.log(f"started, version {ctx.__version__}")
        try:
            worker.drain()
            # Only now what takes time to load.
            from ctx.worker import serving

            reason = serving.serve(worker, bell)
        finally:
            bell.close()
            worker.leave()
            end_children()
        if worker.has_work() and reason not in ("stopped", "removed"):
            worker.drain()
        worker.log(f"gone: {reason}")
        is_needed = worker.has_work() or worker.idle_left_s > 0
    # Nobody takes the place of one that nobody needs.
    return "idle" if reason in ("large", "replaced") and not is_needed else reason


def detach() -> None:
    """Let go of everything that belongs to whoever has started this process."""
    os.closerange(3, 256)
    os.umask(0o077)
    os.chdir(os.sep)
    os.nice(5)


def become_anew(store: UserStore) -> None:
    """Go on as a fresh worker in the same process: its memory is given back, its code is new."""
    # Where ctx was removed, there is nothing to go on as.
    if os.path.exists(sys.executable) and os.path.exists(ctx.__file__):
        words = ("worker", "run", "--detached")
        os.execv(sys.executable, starting.command(store.home, words))


def _leave(_number: int, _frame: object) -> None:
    """What is open is undone, and done again by the next one."""
    raise SystemExit(0)
