"""The worker's thread that syncs with the targets of `ctx sync`.

Nothing waits for it: an absent or slow target delays no round. It runs if a target is due, and ends
when all are done. If another process syncs, it leaves the work to that process. Without a target,
nothing of `ctx.sync` is loaded.
"""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from threading import Thread
from typing import TYPE_CHECKING

from ctx import clock
from ctx.errors import CtxError
from ctx.workspace import Environment, Memory

if TYPE_CHECKING:
    from ctx.sync.target_settings import SyncTarget


class SyncThread:
    def __init__(
        self,
        environment: Environment,
        open_memory: Callable[[], AbstractContextManager[Memory]],
        guard: Callable[[str], AbstractContextManager[None]],
        log: Callable[[str], None],
    ) -> None:
        self._environment = environment
        self._open_memory = open_memory
        self._guard = guard
        self._log = log
        self._thread: Thread | None = None
        self._reported: dict[str, str] = {}
        """The last problem of each target."""

    def wake(self) -> None:
        """After a round: sync if a target is due."""
        is_running = self._thread is not None and self._thread.is_alive()
        if is_running or not os.path.isdir(self._environment.user_store.sync):
            return
        self._thread = Thread(target=self._run, name="sync", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with self._guard("sync"):
            from ctx.sync import target_settings

            store = self._environment.user_store
            default = self._environment.user_config.text("sync.every")
            intervals = [
                (target, target_settings.seconds_of(target.every or default))
                for target in target_settings.targets(store)
            ]
            wanted = [(target, seconds) for target, seconds in intervals if seconds]
            if not wanted:
                return
            with target_settings.try_hold(store) as is_free, self._open_memory() as memory:
                for target, seconds in wanted if is_free else ():
                    if _is_due(memory, target, seconds):
                        self._sync(memory, target)

    def _sync(self, memory: Memory, target: "SyncTarget") -> None:
        from ctx.operations import sync

        with self._guard(f"sync with {target.name}"):
            store, connection = self._environment.user_store, memory.user.connection
            try:
                problem = sync.key_problem(target, sync.sync_target(store, connection, target))
            except CtxError as error:
                problem = error.message
            # Each problem is reported once; `ctx sync status` shows it too.
            if problem and self._reported.get(target.name) != problem:
                self._log(f"sync with {target.name}: {problem}")
            self._reported[target.name] = problem or ""


def _is_due(memory: Memory, target: "SyncTarget", seconds: int) -> bool:
    from ctx.memory import replicas

    state = replicas.target_state(memory.user.connection, target.replica)
    tried_ms = clock.parse_iso(state.tried_at) if state else None
    # A clock that was set back must not stop the sync.
    return tried_ms is None or not 0 <= clock.now_ms() - tried_ms < seconds * 1000
