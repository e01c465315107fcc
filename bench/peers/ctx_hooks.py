"""ctx in the place of a peer: its hooks as they are registered, its worker, and its store."""

import os
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from bench.peers import processes
from bench.peers.hook_events import make_project, number_of
from bench.peers.processes import Ran
from ctx.agents.claude_code import registration
from ctx.hook_files import spool
from ctx.layout import UserStore
from ctx.worker import process_lock, spawn

WORDS = {
    "SessionStart": "session-start",
    "UserPromptSubmit": "prompt-submit",
    "PostToolUse": "post-tool-use",
    "Stop": "stop",
}


class CtxHooks:
    label = "ctx"

    def __init__(self, home: Path) -> None:
        self.folder = make_project(home)
        self._store = UserStore(str(home / ".ctx"))
        self._environment = processes.environment(
            home, CTX_HOME=str(home / ".ctx"), CLAUDE_PROJECT_DIR=self.folder
        )

    def hook(self, event: str, fields: bytes) -> Ran:
        # As if no session had just started: two registrations for one start answer once.
        for claim in Path(self._store.home, "live").glob("*.start-*"):
            claim.unlink(missing_ok=True)
        command = [sys.executable, "-I", "-S", registration.ENTRY, WORDS[event]]
        return processes.run(command, fields, self._environment, Path(self.folder))

    def worker(self) -> int | None:
        if os.path.exists(f"{self._store.home}/{spawn.MARK}"):
            return None
        owner = process_lock.running_worker(self._store.worker_lock)
        return owner.pid if owner else None

    def settle(self) -> None:
        processes.wait_for("the end of all work", self._is_idle)

    def _is_idle(self) -> bool:
        new = self._rows("SELECT count(*) FROM events WHERE status = 'new'")
        return new == [0] and not spool.pending_names(self._store.home)

    def kept(self) -> set[int]:
        return set(map(number_of, self._rows("SELECT tool_use FROM events WHERE tool_use <> ''")))

    def remembered(self) -> set[int]:
        sql = "SELECT tool_use FROM events WHERE tool_use <> '' AND status = 'step'"
        return set(map(number_of, self._rows(sql)))

    def slow_down_model(self, seconds: float) -> None:
        """No model is used."""

    def _rows(self, sql: str) -> list[Any]:
        with suppress(sqlite3.OperationalError):
            path = f"file:{self._store.database}?mode=ro"
            with closing(sqlite3.connect(path, uri=True, timeout=10)) as connection:
                return [value for (value,) in connection.execute(sql)]
        return []


@contextmanager
def ctx_hooks() -> Iterator[CtxHooks]:
    with processes.temporary_home() as home:
        yield CtxHooks(home)
