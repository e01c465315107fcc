"""`ctx why`"""

from pathlib import Path

import pytest

from ctx import clock, terms
from ctx.hook_files import spool
from tests.capture.conversations import SESSION, Client, context_of
from tests.cli.conftest import Add, ageless
from tests.conftest import Ctx
from tests.packs.session_store import command, message, session


@pytest.fixture
def client(repo: Path, surroundings: Path) -> Client:
    home = surroundings / ".ctx"
    home.mkdir(exist_ok=True)
    # The user was told before what is captured.
    (home / "first-run").touch()
    return Client(home, repo)


def receipt_of(client: Client) -> str:
    """The id of the last one that waits."""
    names = [name for name in spool.pending_names(client.home) if name.endswith(".receipt")]
    return spool.id_of(names[-1])


def test_nothing_yet(client: Client, ctx: Ctx) -> None:
    assert (ctx("why", "--list").code, ctx("why", "--list").out) == (0, "No receipts yet.\n")
    assert ctx("why", "--list", "--format=json").json == {"receipts": [], "more": 0, "verdicts": {}}
    for words, code, told in (
        ([], 1, "E028: No receipts yet.\n  `ctx install` registers the hooks; `ctx doctor` "),
        (["--list", "17689"], 2, "E011: --list takes no receipt.\n  `ctx why 17689` shows that "),
        (["17689"], 1, "E028: There is no receipt '17689', and no session of that name.\n"),
    ):
        ran = ctx("why", *words)
        assert (ran.code, ran.out) == (code, "")
        assert ran.err.startswith(f"error {told}")


def test_the_receipt_of_a_context(
    client: Client, ctx: Ctx, add: Add, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = clock.now_ms()
    with monkeypatch.context() as earlier:
        earlier.setattr(clock, "now_ms", lambda: now - 3_600_000)
        pinned = add("--type=fact", "--tag=tier:pinned", "Deploys run\non Fridays")
        text = ("We use SQLite. " + "word " * 30).strip()
        decision = add("--type=decision", "--tag=tier:reference", text)
        gone = add("--type=fact", "--tag=tier:reference", "Soon gone")
    answer = client.talk().start()
    receipt = receipt_of(client)
    assert ctx("delete", gone, "--yes").code == 0
    tokens = answer["systemMessage"].split(" nodes, ")[1].partition(" tokens")[0]
    assert answer["systemMessage"] == f"ctx: 3 nodes, {tokens} tokens; `ctx why` lists them"
    found = ctx("why", "--format=json").json
    assert (found["receipt"], found["session"]) == (receipt, SESSION)
    assert (found["event"], found["project"]) == ("SessionStart", "app")
    assert found["at"] == clock.iso(spool.made_ms(receipt))
    assert found["tokens"] == int(tokens)
    costs = [item["tokens"] for item in found["items"]]
    assert found["frame"] == int(tokens) - sum(costs)
    labels = (f"fact:{pinned}", f"fact:{gone}", f"decision:{decision}")
    contents = ("Deploys run\non Fridays", None, text)
    assert [
        (item["label"], item["content"], item["changed"], item["source"]) for item in found["items"]
    ] == [
        (label, content, content is None, None if content is None else "user")
        for label, content in zip(labels, contents, strict=True)
    ]
    shown = ctx("why").out
    lines = shown.splitlines()
    assert lines[0] == f"SessionStart for app, {found['at']}: 3 nodes, {tokens} tokens"
    assert lines[1] == f"Session {SESSION}, receipt {receipt}"
    said = "user, {} tokens: {}"
    assert lines[2:] == [
        "",
        "1  Deploys run on Fridays",
        f"   {labels[0]}, {said.format(costs[0], 'pinned')}",
        "2  (deleted since)",
        f"   {labels[1]}, {costs[1]} tokens: in the view `default`",
        f"3  {text[:77]}…",
        f"   {labels[2]}, {said.format(costs[2], '`tier:reference`, in the view `default`')}",
        f"Headings and instructions: {found['frame']} tokens",
    ]
    for named in (receipt, receipt[:13], SESSION):
        assert ctx("why", named).out == shown
    listed = ctx("why", "--list").out
    assert ageless(listed) == (f"  {receipt}  0 s  SessionStart  3 nodes  {tokens} tokens  app\n")
    client.apply()
    assert ctx("why").out == shown
    assert ctx("update", pinned, "--content", "As it is").code == 0
    assert ctx("why").out.splitlines()[3] == "1  As it is (changed since)"


def test_all_that_is_not_a_node_has_its_text_and_a_reason(
    client: Client, ctx: Ctx, add: Add
) -> None:
    rule = "Never push the exporter yourself, I review every change first."
    with client.memory() as memory:
        user = memory.user
        session(user, "earlier", 1)
        message(user, "earlier", 1, "Name the table orders everywhere")
        command(user, "earlier", "make test", runs=4)
        user.connection.execute(
            "INSERT INTO excerpts (session, project, step, part, at, kind, source, worth, text,"
            " terms) VALUES ('earlier', 'app', 's', 0, '2026-11-01T00:00:00Z', 'final',"
            " 'agent', 3000, ?, ?)",
            (rule, terms.column(rule)),
        )
    conversation = client.talk()
    conversation.start()
    start = ctx("why").out
    assert ": 1 passage of a session and 1 command, " in start
    assert "\n1  Name the table orders everywhere\n   passage of a session, user, " in start
    assert "\n2  make test\n   command, " in start
    assert rule in context_of(conversation.submit("never change the exporter, please"))
    assert "final of an earlier session, matches the prompt" in ctx("why").out
    # From now on, the prompt is stored too.
    assert ctx("hook", "apply").code == 0
    given = ctx("why", "--format=json").json
    assert given["counts"] == {"passage of a session": 1}
    assert [(each["content"], each["source"], each["reason"]) for each in given["items"]] == [
        (
            rule,
            "agent",
            "final of an earlier session, shares `never`, `change`, `exporter` with the prompt",
        )
    ]
    assert ctx("query", "exporter", "--quiet").code == 0
    assert ctx("why", "--format=json").json == given, "a person's own pack is no session's"
    assert ctx("why", "cli").out.startswith("pack for app, ")
    add("--type=fact", "The exporter runs as the user app")
    conversation.answer('<ctx:recall query="exporter"/>')
    client.apply()
    assert "runs as the user" in context_of(conversation.submit())
    [recalled] = ctx("why", "--format=json").json["items"]
    assert recalled["reason"] == "the agent asked for it"


def test_what_was_recalled(client: Client, ctx: Ctx, add: Add) -> None:
    """Each answer that gives nodes has a receipt of its own."""
    node = add("--type=fact", "--tag=tier:reference", "Refresh tokens live an hour")
    conversation = client.talk()
    conversation.start()
    conversation.answer('<ctx:recall query="tokens"/> <ctx:status/>')
    client.apply()
    assert "Refresh tokens live an hour" in context_of(conversation.submit())
    conversation.submit()
    listed = ctx("why", "--list", "--format=json").json["receipts"]
    assert [each["event"] for each in listed] == ["UserPromptSubmit", "SessionStart"]
    assert [[item["label"] for item in each["items"]] for each in listed] == [[f"fact:{node}"]] * 2
    last = ctx("why", "--list", "--limit=1", "--format=json").json
    assert last == {"receipts": listed[:1], "more": 1, "verdicts": {}}
    assert ctx("why", "--list", "--limit=1").out.endswith("  … and 1 more (--limit)\n")
    assert ctx("why").out.startswith("UserPromptSubmit for app, ")


def test_a_memory_that_was_empty(client: Client, ctx: Ctx) -> None:
    """The first session of all is given something, if no node."""
    with client.memory():
        pass
    answer = client.talk().start()
    assert answer["systemMessage"] == "ctx: memory is empty here"
    found = ctx("why", "--format=json").json
    assert (found["items"], found["frame"]) == ([], found["tokens"])
    assert ctx("why").out == (
        f"SessionStart for app, {found['at']}: nothing relevant in memory,"
        f" {found['tokens']} tokens\n"
        f"Session {SESSION}, receipt {found['receipt']}\n"
        "\n"
        f"Headings and instructions: {found['tokens']} tokens\n"
    )
    assert ageless(ctx("why", "--list").out) == (
        f"  {found['receipt']}  0 s  SessionStart  nothing relevant in memory"
        f"  {found['tokens']} tokens  app\n"
    )
