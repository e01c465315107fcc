"""`ctx why --wrong` and `ctx why --useless`: what agents are given after a person's verdict."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from ctx import terms
from ctx.operations import visibility
from tests.capture.conversations import SESSION, Client, context_of
from tests.cli.conftest import Add
from tests.cli.test_delete import Terminal
from tests.conftest import Ctx
from tests.packs.session_store import command, learning, message, observation, session

FINAL = "The lock of the exporter was taken twice, because `refresh_all` calls itself."
MESSAGE = "Name the table orders everywhere"
RULE = "Never push the exporter yourself."


@pytest.fixture
def client(repo: Path, surroundings: Path) -> Client:
    home = surroundings / ".ctx"
    home.mkdir(exist_ok=True)
    (home / "first-run").touch()
    return Client(home, repo)


def say(client: Client, text: str, name: str = "earlier", kind: str = "final") -> None:
    """An excerpt of an earlier session."""
    with client.memory() as memory:
        memory.user.connection.execute(
            "INSERT INTO excerpts (session, project, step, part, at, kind, source, worth, text,"
            " terms) VALUES (?, 'app', ?, 0, '2026-11-01T00:00:00Z', ?, 'agent', 3000, ?, ?)",
            (name, text[:20], kind, text, terms.column(text)),
        )


@pytest.fixture
def filled(client: Client) -> Client:
    with client.memory() as memory:
        user = memory.user
        session(user, "earlier", 1)
        session(user, "before", 2)
        message(user, "earlier", 1, MESSAGE)
        command(user, "earlier", "make test", runs=4)
        observation(user, "earlier", "rule", RULE, said_by="user", lasting=True)
    say(client, FINAL)
    return client


def start(client: Client, name: str) -> str:
    """What a new session is given at its start."""
    return context_of(client.talk(name).start())


def ask(client: Client, name: str, prompt: str) -> str:
    """What a new session is given with its first prompt."""
    conversation = client.talk(name)
    conversation.start()
    return context_of(conversation.submit(prompt))


def items(ctx: Ctx, *words: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ctx("why", *words, "--format=json").json["items"]
    return found


def number_of(ctx: Ctx, text: str) -> str:
    """The number of an item, as `ctx why` shows it."""
    [line] = [line for line in ctx("why").out.splitlines() if line.endswith(f"  {text}")]
    return line.split()[0]


def test_a_wrong_node_is_given_to_nobody_and_the_right_text_is(
    client: Client, ctx: Ctx, add: Add
) -> None:
    wrong = add("--type=decision", "--tag=tier:pinned", "The API listens on port 8080.")
    add("--type=fact", "--tag=tier:reference", "The exporter runs as the user app.")
    assert "port 8080" in start(client, "one")
    right = "The API listens on port 9090."
    marked = ctx("why", "--wrong", "1", "--instead", right)
    assert marked.out.startswith("Marked as wrong: The API listens on port 8080.\nRight is ")
    assert "To undo: `ctx undo " in marked.err
    given = start(client, "two")
    assert right in given
    assert "8080" not in given
    assert "8080" not in ask(client, "three", "which port does the API listen on?")
    assert wrong not in ctx("recall", "port API listens").out
    assert "8080" not in ctx("query", "which port does the API listen on").out
    labels = ("--tag=verdict:wrong", "--include-superseded")
    assert "The API listens on port 8080." in ctx("list", *labels).out
    assert "verdict:wrong" in ctx("export").out
    again = ctx("why", "one", "--wrong", f"decision:{wrong}")
    assert again.out.startswith("Already marked as wrong: ")
    assert not again.err
    assert ctx("undo").code == 0
    given = start(client, "four")
    assert "8080" in given
    assert right not in given


def test_a_wrong_passage_is_withdrawn_wherever_it_is_said(filled: Client, ctx: Ctx) -> None:
    prompt = "why is the lock of the exporter taken twice in refresh_all?"
    say(filled, f"Done. {FINAL}", "before", "report")
    with filled.memory() as memory:
        observation(memory.user, "earlier", "discovery", FINAL)
    assert FINAL in ask(filled, "one", prompt)
    assert ctx("why", "--wrong", number_of(ctx, FINAL)).code == 0
    assert "calls itself" not in ask(filled, "two", prompt)
    labels = ctx("list", "--tag=verdict:wrong", "--format=json").json["nodes"]
    assert [each["content"] for each in labels] == [FINAL] * 2, "the passage and the observation"
    assert set(labels[0]["tags"]) == {"verdict:wrong", "tier:off-context", "project:app"}
    # The correction has nearly the same words.
    say(filled, FINAL.replace("twice", "once"), "later")
    assert "taken once" in ask(filled, "three", prompt)
    assert ctx("undo", items(ctx, "one")[0]["verdict"]["change"]).code == 0
    assert "taken twice" in ask(filled, "four", prompt)


def test_a_useless_passage_comes_only_if_the_prompt_names_its_subject(
    filled: Client, ctx: Ctx
) -> None:
    vague = "why is the lock of the importer so slow, and the exporter?"
    assert FINAL in ask(filled, "one", vague)
    assert ctx("why", "--useless", "1").code == 0
    assert FINAL not in ask(filled, "two", vague)
    assert FINAL in ask(filled, "three", "what does refresh_all do with the exporter?")


def test_messages_rules_and_commands_of_a_start(filled: Client, ctx: Ctx) -> None:
    given = start(filled, "one")
    for text in (MESSAGE, RULE, "make test"):
        assert text in given
    assert ctx("why", "--useless", number_of(ctx, MESSAGE)).code == 0
    assert ctx("why", "--useless", number_of(ctx, RULE)).code == 0
    assert ctx("why", "--wrong", "make test").code == 0
    given = start(filled, "two")
    for text in (MESSAGE, RULE, "make test"):
        assert text not in given
    shown = ctx("why", "one")
    assert shown.out.count("You marked this as useless. To undo: `ctx undo ") == 2
    assert shown.out.count("You marked this as wrong. ") == 1
    assert ctx("why", "one", "--format=json").json["verdicts"] == {"useless": 2, "wrong": 1}
    listed = ctx("why", "--list", "--format=json").json
    first = listed["receipts"][-1]["id"]
    assert listed["verdicts"][first] == {"useless": 2, "wrong": 1}
    assert " (2 useless, 1 wrong)  " in ctx("why", "--list").out
    for item in items(ctx, "one"):
        assert ctx("undo", item["verdict"]["change"]).code == 0
    again = start(filled, "three")
    for text in (MESSAGE, RULE, "make test"):
        assert text in again


def test_a_useless_node_is_given_with_a_prompt_about_it(client: Client, ctx: Ctx, add: Add) -> None:
    add("--type=fact", "--tag=tier:pinned", "The cache of `invoice_states` is filled at night.")
    assert "invoice_states" in start(client, "one")
    assert ctx("why", "--useless", "1").code == 0
    assert "invoice_states" not in start(client, "two")
    assert "invoice_states" not in ask(client, "three", "is the cache of the exporter filled?")
    assert "invoice_states" in ask(client, "four", "when is invoice_states filled?")
    assert ctx("why", "one", "--wrong", "1").code == 0
    assert "invoice_states" not in ask(client, "five", "when is invoice_states filled?")
    assert ctx("undo").code == 0
    assert ctx("why", "one", "--format=json").json["verdicts"] == {"useless": 1}


def test_what_is_wrong_can_be_shown_again_on_the_page(filled: Client, ctx: Ctx, add: Add) -> None:
    node = add("--type=fact", "--tag=tier:reference", "The API listens on port 8080.")
    start(filled, "one")
    for named in (f"fact:{node}", "make test"):
        assert ctx("why", "one", "--wrong", named).code == 0
    with filled.memory() as memory:
        for each in visibility.hidden(memory, 10).nodes:
            visibility.reveal(memory, each.id)
    again = start(filled, "two")
    assert "8080" in again
    assert "make test" in again
    assert ctx("why", "one", "--format=json").json["verdicts"] == {}


def test_a_wrong_learning_is_not_learned_again(client: Client, ctx: Ctx) -> None:
    with client.memory() as memory:
        learned = learning(memory.user, "preference", "Use tabs in the exporter", origin="human")
    assert "Use tabs" in start(client, "one")
    right = "Use spaces in the exporter"
    assert ctx("why", "--wrong", learned[:12], "--instead", right).code == 0
    given = start(client, "two")
    assert right in given
    assert "Use tabs" not in given
    assert ctx("show", learned, "--format=json").json["node"]["metadata"]["rejected"] is True
    assert ctx("undo").code == 0
    assert "Use tabs" in start(client, "three")


def test_errors_say_what_to_do(client: Client, ctx: Ctx, add: Add) -> None:
    add("--type=fact", "--tag=tier:reference", "The exporter runs as the user app.")
    start(client, SESSION)
    receipt = ctx("why", "--format=json").json["receipt"]
    for words, code, told in (
        (["--wrong", "7"], 1, f"The receipt has no item '7'.\n  `ctx why {receipt}` shows"),
        (["--wrong", ""], 1, "The receipt has no item ''."),
        (["--instead", "x"], 2, "--instead belongs to --wrong."),
        (["--useless", "1", "--instead", "x"], 2, "--instead belongs to --wrong."),
        (["--useless", "1", "--wrong", "1"], 2, "--list, --wrong and --useless cannot be used"),
        (["nobody", "--wrong", "1"], 1, "There is no receipt 'nobody'"),
    ):
        ran = ctx("why", *words)
        assert (ran.code, ran.out) == (code, ""), words
        assert told in ran.err, words
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLAUDE_CODE_SESSION_ID", SESSION)
        refused = ctx("why", "--wrong", "1")
    assert refused.code == 2
    assert "Only a person can mark something as wrong or useless." in refused.err
    # In a pipe nobody is asked.
    assert json.loads(ctx("why", "--wrong", "1", "--format=json").out)["instead"] is None


def test_on_a_terminal_it_asks_for_the_right_text(
    client: Client, ctx: Ctx, add: Add, monkeypatch: pytest.MonkeyPatch
) -> None:
    add("--type=fact", "--tag=tier:reference", "The API listens on port 8080.")
    start(client, "one")
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdin", Terminal("The API listens on port 9090.\n"))
        patch.setattr(sys, "stdout", Terminal())
        asked = ctx("why", "--wrong", "1")
    assert asked.code == 0
    assert "The API listens on port 8080." in asked.err
    assert "What is right instead? (Enter for nothing)" in asked.err
    assert "port 9090" in start(client, "two")
    [item] = items(ctx, "one")
    assert ctx("show", item["verdict"]["instead"]).code == 0
    again = ctx("why", "one", "--wrong", "1", "--instead", "It listens on port 7070.")
    assert again.code == 2
    assert "`ctx edit " in again.err


def test_a_node_of_a_pack_has_a_number_too(client: Client, ctx: Ctx, add: Add) -> None:
    add("--type=fact", "The exporter writes to the folder `out`.")
    add("--type=decision", "The exporter runs every night.")
    assert ctx("query", "exporter").code == 0
    shown = ctx("why", "cli").out
    first = shown.partition("\n1  ")[2].partition("\n")[0]
    assert "\n2  " in shown
    marked = ctx("why", "cli", "--wrong", "1", "--format=json").json
    assert marked["text"] in first
    assert marked["text"] not in ctx("query", "exporter").out


def test_a_deleted_session_takes_the_text_of_a_verdict_with_it(filled: Client, ctx: Ctx) -> None:
    assert FINAL in ask(filled, "one", "why is the lock of the exporter taken twice?")
    assert ctx("why", "--wrong", "1").code == 0
    assert FINAL in ctx("list", "--tag=verdict:wrong").out
    assert ctx("sessions", "delete", "earlier", "--yes").code == 0
    assert FINAL not in ctx("list", "--tag=verdict:wrong").out
