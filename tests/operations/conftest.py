from collections.abc import Iterator
from pathlib import Path

import pytest

from ctx.operations import read_agent_commands
from ctx.workspace import Memory
from tests.capture.conversations import Client, Conversation
from tests.synthesis.test_session_writer import open_writable


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait for late entries of a transcript."""
    monkeypatch.setattr(read_agent_commands, "_LATE_S", 0.02)


@pytest.fixture
def memory(surroundings: Path, repo: Path) -> Iterator[Memory]:
    with open_writable(surroundings, repo) as memory:
        yield memory


@pytest.fixture
def client(repo: Path, surroundings: Path) -> Client:
    return Client(surroundings / ".ctx", repo)


@pytest.fixture
def talk(client: Client) -> Conversation:
    return client.talk()
