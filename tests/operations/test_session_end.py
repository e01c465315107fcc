"""At the end of a session, its staged nodes become a commit of the project."""

import os
from pathlib import Path

import pytest

from ctx.layout import project_at
from ctx.objects import commits
from ctx.objects.repository import Repository
from ctx.operations import compact
from tests.capture.conversations import SESSION, Client, Conversation
from tests.conftest import Ctx, git

OTHER = "0b7c1f6e-2f0f-4a52-9e8e-1d1f1c1f0a11"


@pytest.fixture
def client(repo: Path, surroundings: Path, ctx: Ctx) -> Client:
    """A client in a trusted project that was initialised here."""
    assert ctx("init").code == 0
    git("add", "-A")
    git("commit", "-q", "-m", "Begin")
    return Client(surroundings / ".ctx", repo)


def remember(content: str) -> str:
    return f'<ctx:remember type="fact">{content}</ctx:remember>'


def repository(client: Client) -> Repository:
    return Repository(project_at(str(client.folder)))


def session_commits(client: Client) -> list[tuple[str, str]]:
    """The commits, newest first: session and message."""
    store = repository(client)
    walked = commits.walk(store.objects, [head.id for head in store.current()])
    found = [commit for _, commit in walked if commit and commit.parents]
    return [(commit.session_id, commit.message) for commit in found]


def chains(client: Client) -> list[str]:
    return [name for name in repository(client).refs.names() if name.startswith("work/")]


@pytest.mark.parametrize("reason", ["other", "resume"])
def test_a_session_becomes_a_commit(client: Client, reason: str) -> None:
    empty = client.talk(OTHER)
    empty.start()
    empty.answer("Nothing to remember.")
    empty.end()
    conversation = client.talk()
    conversation.start()
    conversation.answer(remember("Deploys run on Mondays."))
    client.apply()
    assert chains(client) == [f"work/{SESSION}"]
    assert session_commits(client) == []
    # The last answer and the end are taken in together.
    conversation.answer(remember("Never on Fridays."))
    conversation.end(reason)
    client.apply()
    assert chains(client) == []
    assert session_commits(client) == [(SESSION, "Keep 2 nodes")]


def test_a_resumed_session_continues_its_chain(client: Client) -> None:
    conversation = client.talk()
    conversation.start()
    conversation.answer(remember("One."))
    conversation.end("resume")
    client.apply()
    conversation.start("resume")
    conversation.answer(remember("Two."))
    client.apply()
    assert chains(client) == [f"work/{SESSION}"]
    conversation.end()
    client.apply()
    assert session_commits(client) == [(SESSION, "Keep 1 node")] * 2


def test_other_sessions_stay_staged(client: Client, ctx: Ctx) -> None:
    talks: list[Conversation] = []
    for session in (SESSION, OTHER):
        talks.append(client.talk(session))
        talks[-1].start()
        talks[-1].answer(remember(f"In {session}."))
    assert ctx("add", "--type=fact", "By hand").code == 0
    talks[0].end()
    client.apply()
    assert chains(client) == [f"work/{OTHER}", "work/cli"]
    assert session_commits(client) == [(SESSION, "Keep 1 node")]


def test_an_interrupted_commit_is_repeated(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    conversation = client.talk()
    conversation.start()
    conversation.answer(remember("One."))
    conversation.end()

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(compact, "compact", killed)
        with pytest.raises(KeyboardInterrupt):
            client.apply()
    assert chains(client) == [f"work/{SESSION}"]
    client.talk(OTHER).start()
    client.apply()
    assert session_commits(client) == [(SESSION, "Keep 1 node")]


def test_a_session_with_a_running_client_is_not_committed(client: Client) -> None:
    conversation = client.talk()
    client.process = str(os.getpid())
    conversation.start()
    conversation.answer(remember("One."))
    conversation.end()
    conversation.start("resume")
    client.apply()
    assert chains(client) == [f"work/{SESSION}"]


def test_a_large_chain_is_compacted_during_the_session(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compact, "_MOST_TOKENS", 100)
    conversation = client.talk()
    conversation.start()
    conversation.answer(remember("word " * 200))
    client.apply()
    assert chains(client) == []
    assert session_commits(client) == [(SESSION, "Keep 1 node")]
