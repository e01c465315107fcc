"""A host with other payloads works like Claude Code: it needs one folder."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ctx import clock
from ctx.agents.known_hosts import HOSTS
from ctx.agents.runtime import hook
from ctx.agents.runtime.hook import Hook
from ctx.capture import pipeline, reconcile, session_state, steps
from ctx.errors import ContentRefused
from ctx.hook_files import spool
from ctx.hosts.host_registry import Hosts
from ctx.ids import CLI_SESSION
from ctx.layout import UserStore
from ctx.memory import receipts
from ctx.operations import apply, backfill
from ctx.operations.apply import ApplyResult
from ctx.operations.backfill import Options
from ctx.workspace import Environment, Memory, open_memory
from tests.agents.scripted_host.adapter import Scripted
from tests.agents.scripted_host.hooks import HOOKS, NAME
from tests.capture.conversations import nothing_started

WITH_SCRIPTED = Hosts({NAME: Scripted})
CHAT = "chat-one"
REMEMBER = "<ctx:remember type='fact' tags='tier:reference'>Builds run on Mondays.</ctx:remember>"


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

    def hook(self, word: str, *options: str, **told: Any) -> tuple[str, str]:
        """Run a hook of the host and return its answers to the agent and to the user."""
        variables = {"CTX_HOME": self.home, "CTX_WORKER_AUTOSTART": "0"}
        running = Hook(word, list(options), variables, HOOKS)
        payload = json.dumps(self.line(**told)).encode()
        with nothing_started():
            printed = hook.answer(running, lambda: payload)
        text, message = map(json.loads, printed.splitlines()) if printed else ("", "")
        return text, message

    def apply(self) -> ApplyResult:
        """What `ctx hook apply` does."""
        apply.commands(self.memory, self.home, 5.0)
        done = apply.events(self.memory, self.home, 5.0)
        pipeline.take(self.memory, self.home)
        return done

    def steps(self) -> list[tuple[str, str]]:
        found = steps.of_session(self.memory.local, CHAT)
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


def test_hooks_and_transcripts_are_read(world: World) -> None:
    world.write(by="user", words="Make it build.")
    wanted = Options(str(world.log.parent.parent), host=NAME)
    done = backfill.backfill(world.memory, wanted)
    assert [(each.session, each.what) for each in done.sessions] == [(CHAT, "Make it build.")]
    world.hook("session-start", began="startup")
    world.hook("post-tool-use", did="shell", ref="r1", what="make", came="no rule", code=2)
    edited = str(world.folder / "a.py")
    world.hook("post-tool-use", did="edit", ref="r2", file=edited, old="a = 1\n", new="a = 2\n")
    applied = world.apply()
    assert (applied.events, applied.refused) == (3, ())
    world.write(by="agent", words="The build has no rule.")
    assert reconcile.reconcile(world.memory, world.home, CHAT) == 1
    assert reconcile.reconcile(world.memory, world.home, CHAT) == 0
    pipeline.take(world.memory, world.home)
    assert sorted(step for step in world.steps() if step[0] != "mark") == [
        ("command", "make"),
        ("prompt", "Make it build."),
        ("say", "The build has no rule."),
        ("write", "a.py"),
    ]
    session = session_state.get(world.memory.local, CHAT)
    assert (session.client, session.request) == (NAME, "Make it build.")


def test_only_commands_of_the_agent_are_run(world: World) -> None:
    world.write(by="user", words="Explain this command:")
    world.write(by="user", words=REMEMBER)
    world.hook("stop", by="agent", words="Done.")
    assert apply.commands(world.memory, world.home, 5.0).stops == ()
    world.write(by="agent", words=REMEMBER.replace("Mondays", "Fridays"))
    world.hook("stop", by="agent", words="Done.")
    (stop,) = apply.commands(world.memory, world.home, 5.0).stops
    assert (stop.session, stop.done, stop.failed) == (CHAT, 1, 0)
    rows = world.memory.user.connection.execute("SELECT content FROM nodes WHERE type = 'fact'")
    assert rows.fetchall() == [("Builds run on Fridays.",)]


def test_a_session_gets_the_context_and_its_results(world: World) -> None:
    world.hook("stop", "--response", REMEMBER)
    world.apply()
    text, message = world.hook("session-start", began="startup")
    assert "Builds run on Mondays." in text
    assert "`ctx why` lists them" in message
    assert world.apply().receipts == 1
    (receipt,) = receipts.of_session(world.memory.local, CHAT)
    assert len(receipt.items) == 1
    # It is still in the conversation.
    assert world.hook("session-start", began="resume")[0] == ""
    # An answer is as large as the host allows.
    for number in range(4):
        content = f"Builds run on Mondays. {'They take long. ' * 100}{number}"
        fact = f"<ctx:remember type='fact' tags='tier:reference'>{content}</ctx:remember>"
        world.hook("stop", "--response", fact)
    world.hook("stop", "--response", "<ctx:recall query='Mondays'/>")
    world.apply()
    text, _ = world.hook("prompt-submit", by="user", words="Go on.")
    assert 3_000 < len(text) <= HOOKS.largest_answer
    assert "did not fit here" in text
    assert world.hook("prompt-submit", by="user", words="Go on.") == ("", "")


def test_an_event_of_an_unknown_host_is_refused(world: World) -> None:
    with pytest.raises(ContentRefused):
        HOSTS.named(NAME)
    spool.put(world.home, spool.new_id(clock.now_ms()), "other:stop", b"{}")
    (refused,) = apply.events(world.memory, world.home, 5.0).refused
    assert refused.reason == "ctx has no adapter for other."
