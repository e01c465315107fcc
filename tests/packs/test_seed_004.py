"""The requirements of the fifth phase of claude-mem-lite, with the changes of our design.

A context consists of layers in an order of priority, within a budget. If something fails, a session
gets less or nothing, but never an error, and stdout is always JSON. Differences: nothing depends on
the worker (both ways give the same text), ages are in days, an empty text has no tokens, and an
empty memory is mentioned.
"""

import json
import re
import socket
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ctx import tokens
from ctx.config.schema import SETTINGS
from ctx.context import layers
from ctx.context.contexts import LAYERS
from ctx.context.layer_limits import LayerLimits
from ctx.context.layers import ContextRequest
from ctx.layout import UserStore
from ctx.memory import event_log
from ctx.memory.graph import Graph
from tests.capture.conversations import Client, context_of
from tests.memory import graphs
from tests.packs.session_store import change, learning, node, observation, session

HERE = ContextRequest("app", None, 2_000)
HEADINGS = (
    "## Recent Sessions",
    "## Recently Changed Code",
    "## Project Knowledge",
    "## Relevant Past Work",
)


def populate(graph: Graph) -> None:
    """The fixture of the seed, in our tables."""
    session(graph, "s1", 0, completed="Implemented JWT auth service, added refresh endpoint")
    session(graph, "s2", 1, completed="Set up FastAPI project structure, configured SQLAlchemy")
    session(graph, "s3", 2, completed="Initial project scaffold, Docker setup")
    change(graph, "s1", "auth/service.py", "authenticate(email, password) -> Token")
    change(graph, "s1", "auth/service.py", "refresh_token(token) -> Token", "new", line=50)
    learning(graph, "architecture", "FastAPI + SQLAlchemy ORM, Alembic migrations", 850)
    observation(graph, "s1", "feature", "Added JWT auth middleware", "Verifies every request.")
    observation(graph, "s2", "bugfix", "Fixed user registration", "Email is unique in the table.")


@pytest.fixture
def client(repo: Path, surroundings: Path) -> Client:
    home = surroundings / ".ctx"
    home.mkdir(exist_ok=True)
    (home / "first-run").touch()
    return Client(home, repo)


@pytest.fixture
def populated(client: Client) -> Client:
    with client.memory() as memory:
        populate(memory.user)
    return client


@pytest.fixture
def graph() -> Iterator[Graph]:
    with graphs.graph() as made:
        populate(made)
        yield made


# 4. Failures, and what a session gets all the same


def test_worker_not_running(populated: Client) -> None:
    given = context_of(populated.talk().start())
    assert all(heading in given for heading in HEADINGS)


def test_worker_running_but_slow(populated: Client) -> None:
    """A process listens on the socket of the worker and never answers; it is not asked."""
    without = context_of(populated.talk().start())
    with closing(socket.socket(socket.AF_UNIX)) as listening:
        listening.bind(UserStore(populated.home).worker_socket)
        listening.listen()
        assert context_of(populated.talk("another").start()) == without


def test_worker_running_but_context_errors(populated: Client) -> None:
    """The prepared context in the table is damaged."""
    without = context_of(populated.talk().start())
    populated.apply()
    with populated.memory() as memory:
        memory.local.execute("UPDATE contexts SET settings = 'of another version'")
    assert context_of(populated.talk("another").start()) == without


def test_database_does_not_exist(client: Client) -> None:
    assert client.talk().start() == {}


def test_database_corrupt(populated: Client) -> None:
    Path(populated.home, "store.db").write_bytes(b"This is no database. " * 1_000)
    for end in ("-wal", "-shm"):
        Path(populated.home, f"store.db{end}").unlink(missing_ok=True)
    assert context_of(populated.talk().start()) == ""


def test_database_locked(populated: Client) -> None:
    with closing(sqlite3.connect(Path(populated.home, "store.db"), isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert "## Recent Sessions" in context_of(populated.talk().start())
        other.execute("ROLLBACK")


def test_vectors_unavailable(graph: Graph) -> None:
    """Vectors are never used: past work is found by the files and words of the last session."""
    text = layers.context([graph.connection], HERE).text
    assert "- [feature] Added JWT auth middleware: Verifies every request." in text
    assert "- [bugfix] Fixed user registration: Email is unique in the table." in text


@pytest.mark.parametrize(
    ("table", "heading"),
    [("sessions", "## Recent Sessions"), ("symbol_changes", "## Recently Changed Code")],
)
def test_layer_build_raises_exception(graph: Graph, table: str, heading: str) -> None:
    graph.connection.execute(f"DROP TABLE {table}")
    made = layers.context([graph.connection], HERE)
    assert heading not in made.text
    assert "## Project Knowledge" in made.text
    assert made.skipped


def test_context_exceeds_budget(graph: Graph) -> None:
    """Layers are shortened before one is left out."""
    for number in range(40):
        node(graph, "fact", f"Fact {number} " + "word " * 40, ["tier:reference"])
    for budget in (2_000, 1_000, 600):
        roomy = LayerLimits(code=250, sessions=300, learnings=150)
        made = layers.context([graph.connection], HERE._replace(budget=budget, limits=roomy))
        assert made.tokens <= budget
        assert all(heading in made.text for heading in HEADINGS)


def test_output_dropped_by_the_client(populated: Client) -> None:
    """After `/clear`, the context is sent again."""
    conversation = populated.talk()
    given = context_of(conversation.start())
    assert given
    assert context_of(conversation.start("clear")) == given


# 5.3 Key test cases


class TestTokenEstimator:
    def test_empty_string(self) -> None:
        assert tokens.estimate("") == 0

    def test_english_prose(self) -> None:
        assert 8 <= tokens.estimate("The quick brown fox jumps over the lazy dog.") <= 18

    def test_code(self) -> None:
        assert tokens.estimate("def authenticate(self, email: str, password: str) -> Token:") > 5

    def test_budget_math(self) -> None:
        # What the layers do not need goes to memory, or is not used at all.
        caps = LayerLimits()[: len(LAYERS)]
        assert SETTINGS["context.budget"].default == 2_000
        assert sum(caps) + LayerLimits().frame <= 2_000
        assert sum(caps[1:]) <= 800


class TestContextBuilder:
    def test_full_build(self, graph: Graph) -> None:
        made = layers.context([graph.connection], HERE)
        assert made.tokens <= 2_000
        assert {each.layer for each in made.items} >= {"sessions", "code", "learnings", "past_work"}
        assert "## Recent Sessions" in made.text

    def test_budget_enforcement(self, graph: Graph) -> None:
        made = layers.context([graph.connection], HERE._replace(budget=100))
        assert made.tokens <= 100
        assert made.skipped

    def test_empty_db(self) -> None:
        with graphs.graph() as graph:
            made = layers.context([graph.connection], HERE)
        assert made.items == ()
        assert layers.EMPTY in made.text

    def test_layer_exception_isolated(self, graph: Graph) -> None:
        graph.connection.execute("DROP TABLE symbol_changes")
        made = layers.context([graph.connection], HERE)
        assert "sessions" in {each.layer for each in made.items}


class TestContextHook:
    def test_worker_path(self, populated: Client) -> None:
        """The prepared context is used, byte for byte the same as a composed one."""
        composed = context_of(populated.talk().start())
        populated.apply()
        with populated.memory() as memory:
            rows = memory.local.execute("SELECT text FROM contexts").fetchall()
        assert rows == [(composed,)]
        assert context_of(populated.talk("another").start()) == composed

    def test_sqlite_fallback(self, populated: Client) -> None:
        given = context_of(populated.talk().start())
        assert "- [today] Implemented JWT auth service, added refresh endpoint\n" in given

    def test_stdout_json_format(self, populated: Client) -> None:
        answer = populated.talk().start()
        assert answer["hookSpecificOutput"]["hookEventName"] == "SessionStart"
        assert set(answer) == {"hookSpecificOutput", "systemMessage"}


# 8. Acceptance


def test_the_context_has_sessions_changes_learnings_and_observations(populated: Client) -> None:
    with populated.memory() as memory:
        made = layers.context(memory.graph.connections, HERE)
    assert made.text.partition(f"{layers.PREFACE}\n\n")[2] == (
        """## Relevant Past Work
- [bugfix] Fixed user registration: Email is unique in the table.
- [feature] Added JWT auth middleware: Verifies every request.

## Recently Changed Code
auth/service.py:
  authenticate(email, password) -> Token  [MODIFIED]
  refresh_token(token) -> Token  [NEW]

## Recent Sessions
- [today] Implemented JWT auth service, added refresh endpoint
- [yesterday] Set up FastAPI project structure, configured SQLAlchemy
- [2 days ago] Initial project scaffold, Docker setup

## Project Knowledge
- Architecture: FastAPI + SQLAlchemy ORM, Alembic migrations

---
For details: `ctx recall WORDS`.

<!-- ctx:end -->
"""
    )


def test_the_context_has_no_tables_ids_times_or_folders(graph: Graph) -> None:
    """Only headings and short items."""
    text = layers.context([graph.connection], HERE).text
    told = text.partition(f"{layers.PREFACE}\n\n")[2]
    assert "|" not in told
    assert "/app" not in told
    assert not re.search(r"\d{4}-\d\d-\d\d|\b[0-9A-Z]{12,26}\b|[0-9a-f]{8}-", told)
    assert told.isascii()


def test_each_injection_is_logged_with_tokens_and_time(populated: Client) -> None:
    answer = populated.talk().start()
    count = tokens.estimate(context_of(answer))
    populated.apply()
    # Whoever is interrupted takes it in again.
    with populated.memory() as memory:
        (entry,) = event_log.since(memory.local, "", event_log.CONTEXT)
        kept = memory.local.execute("SELECT tokens, items FROM receipts").fetchall()
    assert entry.tokens_out == count
    assert entry.duration_ms is not None
    assert entry.data == {
        "layers_included": ["past_work", "code", "sessions", "learnings"],
        "layers_skipped": [],
        "tokens": count,
        "budget": 2_000,
        "build_ms": entry.duration_ms,
        "source": "startup",
        "part": 1,
        "items": 7,
    }
    assert [row[0] for row in kept] == [count]
    assert [each[4] for each in json.loads(kept[0][1])] == [
        *["past_work"] * 2,
        "code",
        *["sessions"] * 3,
        "learnings",
    ]


def test_the_context_stays_within_the_configured_budget(populated: Client) -> None:
    for budget in (100, 500, 3_000):
        Path(populated.home, "config.toml").write_text(f"[context]\nbudget = {budget}\n")
        given = context_of(populated.talk(f"s-{budget}").start())
        assert tokens.estimate(given) <= budget


def test_concurrent_requests_are_answered(populated: Client) -> None:
    given: list[str] = []

    def ask() -> None:
        with closing(sqlite3.connect(Path(populated.home, "store.db"))) as connection:
            given.append(layers.context([connection], HERE).text)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(given) == 4
    assert len(set(given)) == 1
