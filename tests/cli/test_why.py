"""`ctx why`"""

from pathlib import Path

import pytest

from ctx import clock
from ctx.hook_files import spool
from tests.capture.conversations import SESSION, Client, context_of
from tests.cli.conftest import Add, ageless
from tests.conftest import Ctx


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
    ran = ctx("why")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == (
        "error E028: No receipts yet.\n"
        "  `ctx install` registers the hooks; `ctx doctor` checks them.\n"
    )
    listed = ctx("why", "--list")
    assert (listed.code, listed.out) == (0, "No receipts yet.\n")
    assert ctx("why", "--list", "--format=json").json == {"receipts": [], "more": 0}


@pytest.mark.parametrize("taken_in", [False, True])
def test_the_receipt_of_a_context(client: Client, ctx: Ctx, add: Add, taken_in: bool) -> None:
    pinned = add("--type=fact", "--tag=tier:pinned", "Deploys run\non Fridays")
    decision = add("--type=decision", "--tag=tier:reference", "We use SQLite. " + "word " * 30)
    gone = add("--type=fact", "--tag=tier:reference", "Soon gone")
    answer = client.talk().start()
    receipt = receipt_of(client)
    if taken_in:
        client.apply()
    assert ctx("delete", gone, "--yes").code == 0
    tokens = answer["systemMessage"].split(" nodes, ")[1].partition(" tokens")[0]
    assert answer["systemMessage"] == f"ctx: 3 nodes, {tokens} tokens; `ctx why` lists them"
    found = ctx("why", "--format=json").json
    costs = {item["label"]: item["tokens"] for item in found["items"]}
    assert found == {
        "receipt": receipt,
        "session": SESSION,
        "event": "SessionStart",
        "at": clock.iso(spool.made_ms(receipt)),
        "project": "app",
        "tokens": int(tokens),
        "frame": int(tokens) - sum(costs.values()),
        "items": [
            {
                "id": item["id"],
                "label": label,
                "tokens": costs[label],
                "updated_at": item["updated_at"],
                "content": content,
                "changed": content is None,
                "layer": "memory",
                "source": None if content is None else "user",
                "anchors": [],
            }
            for item, label, content in zip(
                found["items"],
                (f"fact:{pinned}", f"fact:{gone}", f"decision:{decision}"),
                ("Deploys run\non Fridays", None, ("We use SQLite. " + "word " * 30).strip()),
                strict=True,
            )
        ],
        "packed": None,
    }
    shown = ctx("why").out
    width = len(str(found["frame"]))
    long_text = ("We use SQLite. " + "word " * 30)[:59] + "…"
    assert shown == (
        f"SessionStart for app, {found['at']}: 3 nodes, {tokens} tokens\n"
        f"Session {SESSION}, receipt {receipt}\n"
        f"  fact:{pinned}      {costs[f'fact:{pinned}']:<{width}}  Deploys run on Fridays\n"
        f"  fact:{gone}      {costs[f'fact:{gone}']:<{width}}  (deleted since)\n"
        f"  decision:{decision}  {costs[f'decision:{decision}']:<{width}}  {long_text}\n"
        f"  frame                  {found['frame']}  (everything but the nodes)\n"
    )
    rows = [line.split() for line in shown.splitlines()[2:]]
    assert sum(int(row[1]) for row in rows) == int(tokens)
    for named in (receipt, receipt[:13], SESSION):
        assert ctx("why", named).out == shown
    listed = ctx("why", "--list").out
    assert ageless(listed) == (f"  {receipt}  0 s  SessionStart  3 nodes  {tokens} tokens  app\n")


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
    assert last == {"receipts": listed[:1], "more": 1}
    assert ctx("why", "--list", "--limit=1").out.endswith("  … and 1 more (--limit)\n")
    assert ctx("why").out.startswith("UserPromptSubmit for app, ")


def test_what_has_changed_since(
    client: Client, ctx: Ctx, add: Add, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = clock.now_ms()
    with monkeypatch.context() as earlier:
        earlier.setattr(clock, "now_ms", lambda: now - 3_600_000)
        node = add("--type=fact", "--tag=tier:reference", "As it was")
    client.talk().start()
    assert ctx("why").out.splitlines()[2].endswith("  As it was")
    assert ctx("update", node, "--content", "As it is").code == 0
    assert ctx("why").out.splitlines()[2].endswith("  As it is (changed since)")


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
        f"  frame  {found['tokens']}  (everything but the nodes)\n"
    )
    assert ageless(ctx("why", "--list").out) == (
        f"  {found['receipt']}  0 s  SessionStart  nothing relevant in memory"
        f"  {found['tokens']} tokens  app\n"
    )


def test_a_list_names_no_receipt(client: Client, ctx: Ctx) -> None:
    ran = ctx("why", "--list", "17689")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == ("error E011: --list takes no receipt.\n  `ctx why 17689` shows that one.\n")


def test_one_that_is_not_there(client: Client, ctx: Ctx) -> None:
    ran = ctx("why", "17689")
    assert ran.code == 1
    assert ran.err == (
        "error E028: There is no receipt '17689', and no session of that name.\n"
        "  `ctx why --list` lists recent receipts.\n"
    )
