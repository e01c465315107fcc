"""A host with payloads of its own goes the same way as Claude Code: one folder, one line."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ctx import clock
from ctx.agents.known_hosts import HOSTS
from ctx.capture import pipeline, reconcile, session_state, steps
from ctx.errors import ContentRefused
from ctx.hook_files import spool
from ctx.hosts.host_registry import Hosts
from ctx.ids import CLI_SESSION
from ctx.layout import UserStore
from ctx.operations import apply, backfill
from ctx.operations.backfill import Options
from ctx.workspace import Environment, Memory, open_memory
from tests.agents.scripted_host.adapter import NAME, Scripted

WITH_SCRIPTED = Hosts({NAME: Scripted})
CHAT = "chat-one"


class World:
    def __init__(self, memory: Memory, home: str, folder: Path, logs: Path) -> None:
        self.memory = memory
        self.home = home
        self.folder = folder
        self.log = logs / f"{CHAT}.log"

    def line(self, **told: Any) -> dict[str, Any]:
        return {"chat": CHAT, "dir": str(self.folder), "log": str(self.log), **told}

    def write(self, **told: Any) -> None:
        """A line of the transcript."""
        with self.log.open("a") as file:
            file.write(json.dumps({**self.line(**told), "ms": clock.now_ms() - 5}) + "\n")

    def report(self, kind: str, **told: Any) -> None:
        """What a hook of the host leaves in the spool."""
        name = spool.kind_for(NAME, kind)
        said = json.dumps(self.line(**told)).encode()
        spool.put(self.home, spool.new_id(clock.now_ms()), name, said)

    def steps(self) -> list[tuple[str, str]]:
        found = steps.of_session(self.memory.user.connection, CHAT)
        return [(each.kind, each.text or each.path) for each in found]


@pytest.fixture
def world(surroundings: Path, repo: Path) -> Iterator[World]:
    home = surroundings / ".ctx"
    logs = surroundings / "scripted" / "logs"
    logs.mkdir(parents=True)
    place = Environment(
        *(str(repo), UserStore(str(home)), {}, (), CLI_SESSION), load_hosts=lambda: WITH_SCRIPTED
    )
    with open_memory(place, writing=True) as memory:
        yield World(memory, str(home), repo, logs)


def test_capture(world: World) -> None:
    world.report("prompt-submit", by="user", words="Make it build.")
    world.report("post-tool-use", did="shell", ref="r1", what="make", came="no rule", code=2)
    edited = str(world.folder / "a.py")
    world.report("post-tool-use", did="edit", ref="r2", file=edited, old="a = 1\n", new="a = 2\n")
    done = apply.events(world.memory, world.home, 5.0)
    assert (done.events, done.refused) == (3, ())
    pipeline.take(world.memory, world.home)
    expected = [("prompt", "Make it build."), ("command", "make"), ("write", "a.py")]
    assert sorted(world.steps()) == sorted(expected)
    session = session_state.get(world.memory.user.connection, CHAT)
    assert (session.client, session.request) == (NAME, "Make it build.")


def test_transcripts(world: World) -> None:
    world.report("session-start")
    apply.events(world.memory, world.home, 5.0)
    pipeline.take(world.memory, world.home)
    world.write(by="user", words="What is wrong?")
    world.write(by="agent", words="The build has no rule.")
    assert reconcile.reconcile(world.memory, world.home, CHAT) == 2
    assert reconcile.reconcile(world.memory, world.home, CHAT) == 0
    pipeline.take(world.memory, world.home)
    assert ("say", "The build has no rule.") in world.steps()


def test_sessions_of_the_past(world: World) -> None:
    world.write(by="user", words="What is wrong?")
    wanted = Options(str(world.log.parent.parent), host=NAME)
    done = backfill.backfill(world.memory, wanted)
    assert [(each.session, each.what) for each in done.sessions] == [(CHAT, "What is wrong?")]


def test_commands(world: World) -> None:
    asked = "<ctx:remember type='fact' tags='tier:reference'>Builds run on Mondays.</ctx:remember>"
    world.write(by="agent", words=asked)
    world.report(f"{spool.STOP}.0-{world.log.stat().st_size}", by="agent", words=asked)
    (stop,) = apply.commands(world.memory, world.home, 5.0).stops
    assert (stop.session, stop.done, stop.failed) == (CHAT, 1, 0)
    rows = world.memory.user.connection.execute("SELECT content FROM nodes WHERE type = 'fact'")
    assert rows.fetchall() == [("Builds run on Mondays.",)]


def test_an_event_of_an_unknown_host_is_refused(world: World) -> None:
    with pytest.raises(ContentRefused):
        HOSTS.named(NAME)
    spool.put(world.home, spool.new_id(clock.now_ms()), "other:stop", b"{}")
    (refused,) = apply.events(world.memory, world.home, 5.0).refused
    assert refused.reason == "ctx has no adapter for other."
