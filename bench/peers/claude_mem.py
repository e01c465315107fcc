"""claude-mem: the hooks of its plugin as they are registered, its worker, and its database."""

import json
import socket
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from bench.peers import processes
from bench.peers.hook_events import make_project, number_of
from bench.peers.installs import CLAUDE_MEM
from bench.peers.loopback import serving
from bench.peers.processes import Ran
from bench.peers.scripted_model import ScriptedModel
from bench.timing import Cost

QUIET_S = 3.0
"""Nothing is left to do if no model request came and no row was added for so long."""


class ClaudeMem:
    label = CLAUDE_MEM.label

    def __init__(self, home: Path, model: ScriptedModel, address: str) -> None:
        self.folder = make_project(home)
        self._home = home
        self._model = model
        self._data = home / ".claude-mem"
        self._data.mkdir()
        # The vector database would be downloaded.
        settings = {
            "CLAUDE_MEM_PROVIDER": "openrouter",
            "CLAUDE_MEM_OPENROUTER_API_KEY": "none",
            "CLAUDE_MEM_OPENROUTER_BASE_URL": address,
            "CLAUDE_MEM_OPENROUTER_MODEL": "scripted",
            "CLAUDE_MEM_CHROMA_ENABLED": "false",
            "CLAUDE_MEM_WORKER_PORT": str(_free_port()),
        }
        (self._data / "settings.json").write_text(json.dumps(settings))
        # Where the agent installs it; the hooks look for the worker there.
        marketplaces = home / ".claude" / "plugins" / "marketplaces"
        marketplaces.mkdir(parents=True)
        (marketplaces / "thedotmack").symlink_to(CLAUDE_MEM.folder / "package")
        plugin = marketplaces / "thedotmack" / "plugin"
        self._hooks = json.loads((plugin / "hooks" / "hooks.json").read_text())["hooks"]
        self._environment = processes.environment(
            home, CLAUDE_MEM.bin, CLAUDE_PLUGIN_ROOT=str(plugin), CLAUDE_PROJECT_DIR=self.folder,
            CLAUDE_MEM_TELEMETRY="0",
        )  # fmt: skip

    def hook(self, event: str, fields: bytes) -> Ran:
        cpu = wall = 0.0
        code, out = 0, b""
        for group in self._hooks[event]:
            for each in group["hooks"]:
                command = ["bash", "-c", each["command"]]
                ran = processes.run(command, fields, self._environment, Path(self.folder))
                cpu, wall = cpu + ran.cost.cpu, wall + ran.cost.wall
                code, out = code or ran.code, ran.out
        return Ran(Cost(cpu, wall), code, out)

    def worker(self) -> int | None:
        try:
            pid: int = json.loads((self._data / "worker.pid").read_text())["pid"]
        except (OSError, ValueError):
            return None
        return pid if pid in processes.running(self._home) else None

    def settle(self) -> None:
        seen, since = self._size(), time.monotonic()

        def is_idle() -> bool:
            nonlocal seen, since
            if (size := self._size()) != seen:
                seen, since = size, time.monotonic()
            return time.monotonic() - since > QUIET_S + self._model.delay_s

        processes.wait_for("the end of all work", is_idle)

    def kept(self) -> set[int]:
        return set(map(number_of, self._rows("SELECT tool_use_id FROM tool_uses")))

    def remembered(self) -> set[int]:
        return set(map(number_of, self._rows("SELECT title FROM observations")))

    def slow_down_model(self, seconds: float) -> None:
        self._model.delay_s = seconds

    def _size(self) -> tuple[int, ...]:
        tables = ("tool_uses", "observations", "session_summaries", "user_prompts")
        counts = (self._rows(f"SELECT count(*) FROM {table}") for table in tables)
        return (self._model.requests, *(rows[0] for rows in counts if rows))

    def _rows(self, sql: str) -> list[Any]:
        with suppress(sqlite3.OperationalError):
            path = f"file:{self._data}/claude-mem.db?mode=ro"
            with closing(sqlite3.connect(path, uri=True, timeout=10)) as connection:
                return [value for (value,) in connection.execute(sql)]
        return []


@contextmanager
def claude_mem() -> Iterator[ClaudeMem]:
    model = ScriptedModel()
    with serving(model.answer) as address, processes.temporary_home() as home:
        yield ClaudeMem(home, model, address)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port
