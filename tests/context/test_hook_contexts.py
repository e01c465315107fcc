"""The context that a hook gives at the start of a session. A failure means less context, never an
error."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ctx import clock, tokens
from ctx.context import contexts, layers
from ctx.context.layers import ContextRequest
from ctx.memory import event_log
from tests.capture.conversations import Client, context_of
from tests.conftest import Ctx
from tests.packs.session_store import message, session, step

DAY_MS = 86_400_000


@pytest.fixture
def client(repo: Path, surroundings: Path) -> Client:
    home = surroundings / ".ctx"
    home.mkdir(exist_ok=True)
    (home / "first-run").touch()
    return Client(home, repo)


@pytest.fixture
def populated(client: Client) -> Client:
    with client.memory() as memory:
        graph = memory.user
        session(graph, "s1", 0, completed="Implemented JWT auth service, added refresh endpoint")
        session(graph, "s2", 1, completed="Set up FastAPI project structure")
        message(graph, "s2", 1, "Every email address is unique, also in tests")
    return client


def test_a_damaged_missing_or_locked_store_is_no_error(populated: Client) -> None:
    store = Path(populated.home, "store.db")
    answer = populated.talk().start()
    assert answer["hookSpecificOutput"]["hookEventName"] == "SessionStart"
    assert set(answer) == {"hookSpecificOutput", "systemMessage"}
    given = context_of(answer)
    assert "## Recent Sessions" in given
    with closing(sqlite3.connect(store, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert context_of(populated.talk().start()) == given
        other.execute("ROLLBACK")
    for end in ("-wal", "-shm"):
        Path(f"{store}{end}").unlink(missing_ok=True)
    store.write_bytes(b"This is no database. " * 1_000)
    assert context_of(populated.talk().start()) == ""
    store.unlink()
    assert populated.talk().start() == {}


def test_a_context_is_logged_and_stays_within_the_configured_budget(populated: Client) -> None:
    count = tokens.estimate(context_of(populated.talk().start()))
    populated.apply()
    with populated.memory() as memory:
        (entry,) = event_log.since(memory.local, "", event_log.CONTEXT)
        [(kept, items)] = memory.local.execute("SELECT tokens, items FROM receipts").fetchall()
    assert entry.tokens_out == kept == count
    assert entry.duration_ms is not None
    assert entry.data == {
        "layers_included": ["words", "sessions"],
        "layers_skipped": [],
        "tokens": count,
        "budget": 2_000,
        "build_ms": entry.duration_ms,
        "source": "startup",
        "part": 1,
        "items": 3,
    }
    shown = ["words", "sessions", "sessions"]
    assert [each[4] for each in json.loads(items)] == shown
    for budget in (100, 500):
        Path(populated.home, "config.toml").write_text(f"[context]\nbudget = {budget}\n")
        given = context_of(populated.talk(f"s-{budget}").start())
        assert tokens.estimate(given) <= budget


def test_hook_and_worker_give_the_same_text(
    ctx: Ctx, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for words in (
        ["--type=decision", "--tag=tier:reference", "We use SQLite; 更新 and 😀."],
        ["--type=fact", "--tag=tier:pinned", "--tag=project:other", "Of another project."],
    ):
        assert ctx("add", *words).code == 0
    assert ctx("task", "start", "OAuth").code == 0
    conversation = client.talk()

    composed_by_the_hook = context_of(conversation.start())
    assert "We use SQLite; 更新 and 😀." in composed_by_the_hook
    assert "Of another project." not in composed_by_the_hook
    with client.memory() as memory:
        wanted = ContextRequest("app", "oauth", 2_000)
        composed = layers.context([memory.user.connection], wanted)
        key = contexts.key_of(memory.place, client.home, {})
        assert contexts.valid_context(memory.local, key) is None
    assert composed.text == composed_by_the_hook

    client.apply()
    with client.memory() as memory:
        assert contexts.valid_context(memory.local, key) == composed
    assert context_of(conversation.start("clear")) == composed_by_the_hook

    now = clock.now_ms()
    monkeypatch.setattr(clock, "now_ms", lambda: now + DAY_MS)
    assert context_of(client.talk("another").start()) == composed_by_the_hook
    with client.memory() as memory:
        assert layers.context([memory.user.connection], wanted) == composed


def test_hook_and_worker_give_the_same_text_after_sessions(
    populated: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also after a session did something that no record contains."""
    client = populated

    def context_text(name: str) -> str:
        return context_of(client.talk(name).start())

    composed = context_text("first")
    client.apply()
    with client.memory() as memory:
        key = contexts.key_of(memory.place, client.home, {})
        ready = contexts.valid_context(memory.local, key)
    assert ready is not None
    assert ready.text == composed == context_text("second")
    with client.memory() as memory:
        message(memory.user, "s1", 1, "Name the table orders everywhere")
        assert contexts.valid_context(memory.local, key) is None
    changed = context_text("third")
    assert "- [yesterday] Name the table orders everywhere" in changed
    client.apply()
    assert context_text("fourth") == changed
    now = clock.now_ms()
    monkeypatch.setattr(clock, "now_ms", lambda: now + DAY_MS)
    tomorrow = context_text("fifth")
    assert "- [2 days ago] Set up FastAPI" in tomorrow
    client.apply()
    assert context_text("sixth") == tomorrow


def test_a_compacted_or_resumed_session_gets_its_state_and_news(ctx: Ctx, client: Client) -> None:
    """After compaction it gets its own state; after a resume, the changes of others."""
    assert ctx("add", "--type=fact", "--tag=tier:pinned", "Pinned.").code == 0
    conversation = client.talk("mine")
    conversation.start()
    with client.memory() as memory:
        step(memory.user, "mine", "write", path="src/auth.py")
        session(memory.user, "mine", 0, completed="What I did")
    client.hook("pre-compact", conversation.payload("PreCompact"))
    with client.memory() as memory:
        memory.local.execute("DELETE FROM events WHERE status = 'step'")
    compacted = context_of(conversation.start("compact"))
    assert "## Where you were\n\n- In work: src/auth.py\n\n## Pinned" in compacted
    assert "What I did" not in compacted
    assert context_of(conversation.start("resume")) == ""
    with client.memory() as memory:
        session(memory.user, "theirs", 0, completed="What they did")
    resumed = context_of(conversation.start("resume"))
    assert resumed.partition(f"{layers.CHANGED}\n\n")[2] == (
        "## Recent Sessions\n- [today] What they did\n\n<!-- ctx:end -->\n"
    )
    assert context_of(conversation.start("resume")) == ""


def test_a_resumed_session_gets_no_news_about_itself(ctx: Ctx, client: Client) -> None:
    """The text that memory is empty is not repeated either."""
    assert ctx("status").code == 0
    conversation = client.talk("mine")
    assert contexts.EMPTY_MEMORY in context_of(conversation.start())
    with client.memory() as memory:
        session(memory.user, "mine", 0, completed="What I did")
    assert conversation.start("resume") == {}
    assert ctx("context", "--source=resume", "--session=mine").out.startswith("Nothing new since")
    assert ctx("add", "--type=fact", "--tag=tier:pinned", "Pinned.").code == 0
    resumed = context_of(conversation.start("resume")).partition("\n\n")[2]
    assert resumed.startswith(f"{layers.CHANGED}\n\n## Pinned")
