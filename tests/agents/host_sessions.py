"""A host whose hooks run in this process, for tests of its adapter."""

import json
from pathlib import Path
from typing import Any

from ctx.agents import known_hosts
from ctx.agents.known_hosts import HOSTS
from ctx.agents.runtime import hook
from ctx.agents.runtime.hook import Hook
from ctx.capture import pipeline, reconcile, steps
from ctx.ids import CLI_SESSION
from ctx.layout import UserStore
from ctx.operations import apply
from ctx.operations.apply import ApplyResult
from ctx.workspace import Environment, Memory
from tests.capture.conversations import nothing_started

REMEMBER = "<ctx:remember type='fact' tags='tier:reference'>Builds run on Mondays.</ctx:remember>"


def environment_in(home: Path, folder: Path) -> Environment:
    store = UserStore(str(home / ".ctx"))
    return Environment(str(folder), store, {}, (), CLI_SESSION, load_hosts=lambda: HOSTS)


class HostSession:
    """One session of a host."""

    def __init__(self, host: str, session: str, memory: Memory) -> None:
        self.host = host
        self.session = session
        self.memory = memory
        self.home = memory.environment.user_store.home

    def hook(self, word: str, payload: dict[str, Any]) -> bytes:
        variables = {"CTX_HOME": self.home, "CTX_WORKER_AUTOSTART": "0"}
        hooks = known_hosts.hooks_of(self.host)
        assert hooks is not None
        running = Hook(word, [], variables, hooks)
        data = json.dumps(payload).encode()
        with nothing_started():
            return hook.answer(running, lambda: data)

    def apply(self) -> ApplyResult:
        """What `ctx hook apply` does."""
        apply.commands(self.memory, self.home, 5.0)
        done = apply.events(self.memory, self.home, 5.0)
        pipeline.take(self.memory, self.home)
        return done

    def reconcile(self) -> int:
        """How many events only the transcript has."""
        news = reconcile.reconcile(self.memory, self.home, self.session)
        pipeline.take(self.memory, self.home)
        return news

    def steps(self) -> list[tuple[str, str]]:
        found = steps.of_session(self.memory.local, self.session)
        return sorted((each.kind, each.text or each.path) for each in found)

    def facts(self) -> list[str]:
        sql = "SELECT content FROM nodes WHERE type = 'fact'"
        return [text for (text,) in self.memory.local.execute(sql)]
