"""Concurrent hooks: commands run once, and results are returned once."""

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ctx.hook_files import spool
from tests.agents.claude_code.hook_processes import Hooks, Ran, line
from tests.capture.conversations import Client, Conversation, context_of
from tests.conftest import Ctx

APPLIERS = 4
SESSIONS = 4
STOPS = 20
TURNS = 2
PROMPTS = 3
LATER_PROMPTS = 30
SECONDS = 600


@pytest.fixture
def client(repo: Path, surroundings: Path, ctx: Ctx) -> Client:
    assert ctx("status").code == 0
    return Client(surroundings / ".ctx", repo)


@pytest.fixture
def hooks(client: Client, repo: Path) -> Iterator[Hooks]:
    running = Hooks(Path(client.home), repo)
    yield running
    running.close()


def remember(content: str) -> str:
    return f'<ctx:remember type="fact" tags="tier:reference">{content}</ctx:remember>'


def remembered(client: Client) -> Counter[str]:
    """The remembered contents with their counts."""
    with client.memory() as memory:
        rows = memory.user.connection.execute(
            "SELECT json_extract(body, '$.content') FROM records WHERE kind = 'node.put'"
        ).fetchall()
    return Counter(content for (content,) in rows if content is not None)


def test_eight_processes_process_the_spool_at_once(client: Client, ctx: Ctx) -> None:
    conversations = [client.talk(f"session-{number}") for number in range(SESSIONS)]
    for number in range(STOPS):
        conversation = conversations[number % SESSIONS]
        conversation.answer(f"{remember(f'Fact {number}.')} <ctx:status/>")
        if number % 5 == 0:
            # Some fire twice.
            conversation.stop()
    events = {spool.id_of(name) for name in spool.pending_names(client.home)}
    assert len(events) == STOPS + STOPS // 5
    words = [sys.executable, "-m", "ctx", "hook", "apply", "--format=json"]
    running = [
        subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(APPLIERS)
    ]
    stops = []
    for process in running:
        out, err = process.communicate(timeout=SECONDS)
        assert (process.returncode, err) == (0, "")
        stops += json.loads(out)["stops"]
    assert sorted(stop["event"] for stop in stops) == sorted(events), "each by one of them"
    assert sum(stop["done"] for stop in stops) == 2 * STOPS
    assert sum(stop["repeated"] for stop in stops) == 2 * (STOPS // 5)
    assert sum(stop["failed"] for stop in stops) == 0
    assert remembered(client) == {f"Fact {number}.": 1 for number in range(STOPS)}
    assert client.waiting() == []
    assert spool.failed_names(client.home) == []
    with client.memory() as memory:
        kept = memory.local.execute("SELECT id FROM events").fetchall()
    # Of the same, said twice at once, one is kept.
    assert len(kept) == STOPS
    assert {event_id for (event_id,) in kept} <= events
    assert ctx("store", "check").code == 0


def recalled(ran: Ran) -> list[str]:
    """The queries whose results are in an answer."""
    assert (ran.code, ran.err) == (0, b"")
    return re.findall(r"^Query: `(\S+)`$", context_of(json.loads(ran.out or b"{}")), re.MULTILINE)


def talk(hooks: Hooks, conversation: Conversation) -> list[list[str]]:
    """Run a few turns, each with several concurrent prompts, and return their results."""
    given: list[list[str]] = []
    prompt = line(conversation.payload("UserPromptSubmit", prompt="Go on."))
    for turn in range(TURNS):
        name = f"{conversation.session}-{turn}"
        conversation.prompt()
        conversation.reply(f'{remember(name)} <ctx:recall query="{name}"/>')
        assert hooks.run("stop", line(conversation.stop_payload())).code == 0
        with ThreadPoolExecutor(PROMPTS) as prompts:
            ran = prompts.map(lambda _: hooks.run("prompt-submit", prompt), range(PROMPTS))
            given += map(recalled, ran)
    return given


def test_concurrent_sessions_get_their_own_results(client: Client, hooks: Hooks, ctx: Ctx) -> None:
    conversations = [client.talk(f"session{number}") for number in range(SESSIONS)]
    with ThreadPoolExecutor(SESSIONS) as talking:
        given = list(talking.map(lambda each: talk(hooks, each), conversations))
    hooks.settle()
    expected = [
        [f"{conversation.session}-{turn}" for turn in range(TURNS)]
        for conversation in conversations
    ]
    for conversation, own, found in zip(conversations, expected, given, strict=True):
        prompt = line(conversation.payload("UserPromptSubmit", prompt="Go on."))
        names = [name for names in found for name in names]
        # What was not done in time is given with a later prompt, on a busy machine not the next.
        for _ in range(LATER_PROMPTS):
            if sorted(names) != own:
                names += recalled(hooks.run("prompt-submit", prompt))
        assert sorted(names) == own
        assert recalled(hooks.run("prompt-submit", prompt)) == []
    assert remembered(client) == {name: 1 for names in expected for name in names}
    assert ctx("hook", "apply").code == 0
    assert client.waiting() == []
    assert ctx("store", "check").code == 0
