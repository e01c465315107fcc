"""Hints from memory for a prompt: few, short, and in time."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctx import clock, terms, tokens
from ctx.capture.injected_text import without_injected
from ctx.memory import event_log, receipts
from ctx.memory.changes import changing
from ctx.memory.receipts import Receipt, ReceiptItem
from ctx.operations.prompt_hints import MOST_TOKENS, NOTHING, PromptHints, prompt_hints
from ctx.sqlite.connection import transaction
from ctx.workspace import Memory
from tests.capture.conversations import Client, context_of
from tests.memory import graphs
from tests.packs.session_store import node, observation

FIX = "Fixed test_refresh_twice in auth/service.py: the lock was taken twice"
WHY = "Session.refresh held the lock while it called itself; it hands the lock on now."


@pytest.fixture
def memory(client: Client) -> Iterator[Memory]:
    with client.memory() as memory:
        yield memory


@pytest.fixture
def fix_id(memory: Memory) -> str:
    """Add observations of sessions, and return the id of the fix."""
    graph = memory.user
    observation(graph, "s1", "discovery", "The queue is bounded by the number of workers")
    observation(graph, "s1", "feature", "Added `Client.retry` to net/client.py", "With a backoff.")
    node(graph, "decision", "We use PostgreSQL for the billing ledger", ["project:app"])
    node(graph, "decision", "Billing ledgers lie in MongoDB", ["project:other"])
    for number in range(20):
        node(graph, "fact", f"Fact number {number} about deployments and servers", ["project:app"])
    return observation(graph, "s1", "bugfix", FIX, WHY, files=["auth/service.py"])


def hints_for(
    memory: Memory, prompt: str, session: str = "now", seconds: float = 5.0
) -> PromptHints:
    folder = memory.environment.folder
    return prompt_hints(memory, folder, session, prompt, clock.monotonic() + seconds)


@pytest.mark.parametrize(
    "prompt",
    [
        "test_refresh_twice fails again, please look at it",
        "Why does auth/service.py need a lock at all?",
        "E       AssertionError in test_refresh_twice\nauth/service.py:14: AssertionError",
    ],
)
def test_an_earlier_fix_is_shown_for_a_named_test_or_file(
    memory: Memory, fix_id: str, prompt: str
) -> None:
    given = hints_for(memory, prompt)
    assert given.text == (
        f"""<!-- ctx: 1 node, {given.tokens} tokens -->

Related memory (ctx); this has failed before:

- [observation:{fix_id[:12]}] {FIX} {WHY}

<!-- ctx:end -->
"""
    )
    assert given.tokens == tokens.estimate(given.text) <= MOST_TOKENS
    assert [item.id for item in given.items] == [fix_id]
    assert without_injected(given.text).strip() == ""
    # Not as injected text, in the same session, or after the time limit.
    assert hints_for(memory, f"{given.text}\nGo on.") == NOTHING
    assert hints_for(memory, prompt, "s1") == NOTHING
    assert hints_for(memory, prompt, seconds=-1) == NOTHING


@pytest.mark.parametrize(
    "prompt",
    [
        "Go on.",
        "yes please",
        "/compact keep the plan",
        "Write a haiku about the sea",
        "Rename the variable in this function and run the linter",
        "What is the weather like on Mars in the summer?",
        "please refresh the page and tell me what you see there",
        "",
        "   ",
        "🙂",
        "?" * 100_000,
    ],
)
def test_most_prompts_get_nothing(memory: Memory, fix_id: str, prompt: str) -> None:
    assert hints_for(memory, prompt) == NOTHING


def test_a_node_is_found_by_most_of_its_words(memory: Memory, fix_id: str) -> None:
    given = hints_for(memory, "Which database does the billing ledger use?")
    assert "PostgreSQL" in given.text
    assert "MongoDB" not in given.text
    assert "Related memory (ctx):" in given.text
    said = "We use PostgreSQL for the billing ledger, and invoices go there too"
    assert hints_for(memory, said) == NOTHING, "it repeats the prompt"


def test_a_node_is_shown_once_in_a_session(client: Client, memory: Memory, fix_id: str) -> None:
    prompt = "test_refresh_twice fails again"
    with changing(memory.user, "tag", graphs.WHO) as change:
        change.tag(memory.graph.find(fix_id), "tier:reference")
    assert FIX in hints_for(memory, prompt, "now").text
    # At its start, as the hook remembers it, and as the receipt that waits says.
    assert FIX in context_of(client.talk("now").start())
    assert hints_for(memory, prompt, "now") == NOTHING
    client.apply()
    (Path(client.home) / "live" / "now.receipt").unlink()
    assert hints_for(memory, prompt, "now") == NOTHING
    assert FIX in hints_for(memory, prompt, "another").text


def test_decisions_about_a_named_file_are_shown(memory: Memory, fix_id: str) -> None:
    """With any other words in the prompt and in the node."""
    graph = memory.user
    anchor = node(graph, "file", "net/wire.py", path="net/wire.py")
    decided = observation(graph, "s1", "decision", "Frames have a checksum", files=["net/wire.py"])
    noted = observation(graph, "s1", "feature", "Framing in one place", files=["net/wire.py"])
    with changing(graph, "link", graphs.WHO) as change:
        for each in (decided, noted):
            change.link(each, anchor, "MENTIONS", {})
    given = hints_for(memory, "Rewrite net/wire.py with async functions")
    assert [item.id for item in given.items] == [decided]
    with changing(graph, "tag", graphs.WHO) as change:
        change.tag(decided, "project:other")
        change.untag(decided, "project:app")
    assert hints_for(memory, "Rewrite net/wire.py with async functions") == NOTHING


def test_hints_stay_within_the_budget(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(9):
        title = f"Fixed parse_header in http/parser.py, attempt {number}"
        observation(memory.user, "s1", "bugfix", title, f"word{number} " * 400)
    given = hints_for(memory, "parse_header in http/parser.py breaks on empty lines")
    assert 1 < len(given.items) <= 4
    assert given.tokens == tokens.estimate(given.text) <= MOST_TOKENS
    # What fits exactly is shown.
    exactly = 40 + sum(each.tokens for each in given.items)
    monkeypatch.setattr("ctx.operations.prompt_hints.MOST_TOKENS", exactly)
    assert hints_for(memory, "parse_header in http/parser.py breaks on empty lines") == given


def test_the_summary_of_a_session_is_left_out(memory: Memory, fix_id: str) -> None:
    tags = ["project:app", "session:s1"]
    text = f"**Completed:** {FIX}, and a lot of other work"
    node(memory.user, "summary", text, tags)
    prompt = "test_refresh_twice fails again"
    assert [item.id for item in hints_for(memory, prompt).items] == [fix_id]
    with changing(memory.user, "delete", graphs.WHO) as change:
        change.delete_node(memory.graph.find(fix_id))
    assert hints_for(memory, prompt) == NOTHING
    node(memory.user, "summary", text, ["project:app"])
    assert "a lot of other work" in hints_for(memory, prompt).text


def test_a_fix_in_a_file_is_not_shown_for_unrelated_prompts(memory: Memory, fix_id: str) -> None:
    graph = memory.user
    anchor = node(graph, "file", "auth/service.py", path="auth/service.py")
    with changing(graph, "link", graphs.WHO) as change:
        change.link(memory.graph.find(fix_id), anchor, "MENTIONS", {})
    assert hints_for(memory, "Translate the greetings of auth/service.py to French") == NOTHING
    assert hints_for(memory, "Look at auth/service.py").items[0].id == fix_id


def test_who_said_it_is_no_news(memory: Memory) -> None:
    rule = "SQL queries for orders have parameters, never strings put together"
    decided = observation(memory.user, "s8", "decision", rule, "Said by the user.")
    given = hints_for(memory, "Add SQL queries for orders by country")
    assert [item.id for item in given.items] == [decided]
    assert hints_for(memory, f"{rule}!", "other") == NOTHING


SAID = (
    "Only the authorized origins matter for `redirect_uri`: the popup of the oauth consent answers"
    " by a callback."
)


def say(memory: Memory, text: str) -> None:
    connection = memory.local
    at = clock.iso(clock.now_ms())
    with transaction(connection):
        connection.execute(
            "INSERT INTO excerpts (session, project, step, part, at, kind, source, worth, text,"
            " terms) VALUES ('s1', 'app', ?, 0, ?, 'report', 'agent', 1000, ?, ?)",
            (text[:20], at, text, terms.column(text)),
        )


def test_passages_that_share_several_rare_words(memory: Memory) -> None:
    say(memory, SAID)
    for number in range(200):
        say(memory, f"Chapter {number}: the oauth of a callback is described, as always.")
    rare = "The consent of the popup refuses my redirect_uri, which origins are authorized?"
    given = hints_for(memory, rare)
    assert given.text == f"## From earlier sessions\n\nThe agent, today:\n- {SAID}\n"
    assert [item.layer for item in given.items] == ["said"]
    assert hints_for(memory, "The oauth of the callback is refused, as always") == NOTHING
    assert hints_for(memory, "https://example.org/redirect_uri/popup/consent/origins") == NOTHING
    assert hints_for(memory, SAID) == NOTHING, "nothing that the prompt itself says"


def ask(memory: Memory, text: str) -> None:
    """A prompt of the session that was captured."""
    step = json.dumps({"kind": "prompt", "text": text})
    with transaction(memory.local):
        memory.local.execute(
            "INSERT INTO events (id, session, at, event, status, body)"
            " VALUES (?, 'now', ?, 'UserPromptSubmit', 'step', ?)",
            (text[:20], clock.iso(clock.now_ms()), step),
        )


def test_a_prompt_on_a_new_subject_is_answered_like_a_first_one(memory: Memory) -> None:
    for text in (
        "Invoices round half to even, because the tax office checks the last cent.",
        "Invoices of one month share a sequence of numbers without gaps.",
    ):
        say(memory, text)
    prompt = "Next: give each invoice of a month the numbers of a sequence, and round its cents."
    usual = hints_for(memory, prompt)
    assert "sequence of numbers" in usual.text, "strong evidence is enough for any prompt"
    assert "half to even" not in usual.text
    ask(memory, "The login page flickers when the session cookie expires. Please mend it.")
    given = hints_for(memory, prompt)
    assert "sequence of numbers" in given.text
    assert "half to even" in given.text
    ask(memory, "The invoices of a month have no sequence of numbers, and cents are lost.")
    assert hints_for(memory, prompt) == usual


def test_a_passage_is_given_once(client: Client, memory: Memory) -> None:
    say(memory, SAID)
    prompt = "The consent of the popup refuses my redirect_uri, which origins are authorized?"
    given = hints_for(memory, prompt)
    items = tuple(ReceiptItem(*each[:4], each.layer) for each in given.items)
    at = clock.iso(clock.now_ms())
    with transaction(memory.local):
        receipt = Receipt("r1", "now", "UserPromptSubmit", at, "app", 9, items)
        receipts.keep(memory.local, receipt)
    assert hints_for(memory, prompt) == NOTHING
    assert hints_for(memory, prompt, "another") == given


def test_hints_are_logged_once(client: Client, fix_id: str) -> None:
    conversation = client.talk("now")
    conversation.start()
    conversation.answer('<ctx:recall query="billing ledger"/>')
    client.apply()
    given = context_of(conversation.submit())
    assert "PostgreSQL" in given
    client.apply()
    client.apply()
    with client.memory() as memory:
        (entry,) = event_log.since(memory.local, "", event_log.RELEVANT)
    assert (entry.session, entry.tokens_out) == ("now", tokens.estimate(given))
    assert entry.data["items"] >= 1
