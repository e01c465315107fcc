"""Receipts: the nodes that an agent got, and why."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ctx import clock
from ctx.errors import AmbiguousId, ReceiptNotFound
from ctx.hook_files import spool
from ctx.memory.changes import changing
from ctx.memory.receipts import Receipt, ReceiptItem
from ctx.operations import add
from ctx.operations.why import ReceiptDetails, ReceiptList, ReceiptNode, last, why
from ctx.workspace import Memory
from tests.capture.conversations import SESSION, Client
from tests.memory import graphs

AT = 1_768_906_800_123
WHEN = "2026-01-20T11:00:00Z"


@pytest.fixture
def client(repo: Path, surroundings: Path, monkeypatch: pytest.MonkeyPatch) -> Client:
    # Receipts are kept for so long; these are as old as they say.
    monkeypatch.setattr(clock, "now_ms", lambda: AT + 60_000)
    return Client(surroundings / ".ctx", repo)


def write_receipt(client: Client, number: int, **changed: Any) -> str:
    """Write a receipt as a hook does, and return its id."""
    told = {"session": SESSION, "event": "SessionStart", "project": "app", "tokens": 9, "items": []}
    receipt_id = f"{AT + number}-7-{number:08x}"
    data = json.dumps({**told, **changed}).encode()
    spool.put(client.home, receipt_id, spool.RECEIPT, data)
    return receipt_id


def ids(found: ReceiptList) -> list[str]:
    return [receipt.id for receipt in found.receipts]


def test_without_receipts_there_is_an_error_with_a_hint(client: Client) -> None:
    with client.memory() as memory:
        assert last(memory, 20) == ReceiptList(())
        with pytest.raises(ReceiptNotFound) as refused:
            why(memory, None)
        assert refused.value.message == "No receipts yet."
        assert "`ctx install`" in str(refused.value.hint)
        with pytest.raises(ReceiptNotFound, match="no receipt 'nobody', and no session"):
            why(memory, "nobody")


def nodes_of(memory: Memory) -> list[list[Any]]:
    """Nodes as a hook records them in a receipt."""
    contents = ("Stays.", "Is changed.", "Is deleted.")
    nodes = [add.add(memory, add.Options(content, "fact")).node for content in contents]
    return [[node.id, f"fact:{node.id[:12]}", node.updated_at, 7, "digest"] for node in nodes]


def given(
    item: Sequence[Any], content: str | None, changed: bool, source: str | None
) -> ReceiptNode:
    node, label, updated, *_ = item
    reason = "in the view `default`"
    return ReceiptNode(node, label, 7, updated, content, changed, source=source, reason=reason)


@pytest.mark.parametrize("taken_in", [False, True])
def test_nodes_are_shown_as_they_were_and_as_they_are(
    client: Client, taken_in: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with client.memory() as memory:
        items = nodes_of(memory)
    receipt_id = write_receipt(client, 1, items=items, tokens=123)
    if taken_in:
        client.apply()
        assert client.waiting() == []
    monkeypatch.setattr(clock, "now_ms", lambda: AT + 3_600_000)
    one, two, three = items
    with client.memory() as memory:
        with changing(memory.user, "test", graphs.WHO) as change:
            change.update_node(two[0], content="Was changed.")
            change.delete_node(three[0])
            change.tag(one[0], "word:any")
        assert why(memory, None) == ReceiptDetails(
            receipt_id,
            SESSION,
            "SessionStart",
            WHEN,
            "app",
            123,
            123 - 3 * 7,
            (
                given(one, "Stays.", False, "user"),
                given(two, "Was changed.", True, "user"),
                given(three, None, True, None),
            ),
            counts={"node": 3},
        )
        kept = tuple(ReceiptItem(*item[:4]) for item in items)
        receipt = Receipt(receipt_id, SESSION, "SessionStart", WHEN, "app", 123, kept)
        assert last(memory, 20) == ReceiptList((receipt,))


@pytest.mark.parametrize(
    ("event", "layer", "reason"),
    [
        ("UserPromptSubmit", "hint", "matches the prompt"),
        ("UserPromptSubmit", "recalled", "the agent asked for it"),
        # Of an older version, which did not store the difference.
        ("UserPromptSubmit", "memory", "it matches the prompt, or the agent asked for it"),
        ("PreToolUse", "before_edit", "about the file that the agent read or edited"),
        ("recall", "memory", "the agent asked for it"),
    ],
)
def test_the_reason_is_that_of_the_moment(
    client: Client, event: str, layer: str, reason: str
) -> None:
    with client.memory() as memory:
        node = nodes_of(memory)[0]
    write_receipt(client, 1, event=event, items=[[*node, layer]])
    with client.memory() as memory:
        assert [each.reason for each in why(memory, None).items] == [reason]


@pytest.mark.parametrize("taken_in", [0, 2, 4])
def test_a_receipt_is_found_by_id_and_by_session(client: Client, taken_in: int) -> None:
    """Both in the store and in the spool."""
    made = []
    for number, session in enumerate(["a-session", "b-session", "a-session", "b-session"]):
        if number == taken_in:
            client.apply()
        made.append(write_receipt(client, number, session=session))
    if taken_in == 4:
        client.apply()
    with client.memory() as memory:
        for receipt_id in made:
            assert why(memory, receipt_id).receipt == receipt_id
            assert why(memory, receipt_id[:13]).receipt == receipt_id
        assert why(memory, "a-session").receipt == made[2]
        assert why(memory, "b-session").receipt == made[3]
        assert why(memory, None).receipt == made[3]
        assert ids(last(memory, 20)) == made[::-1]
        assert ids(last(memory, 3)) == made[:0:-1]
        assert ids(last(memory, 0)) == made[::-1]
        assert [last(memory, limit).more for limit in (20, 3, 1, 0)] == [0, 1, 3, 0]
        assert why(memory, "a-se").receipt == made[2]
        with pytest.raises(ReceiptNotFound):
            why(memory, "a-s")
        with pytest.raises(AmbiguousId) as refused:
            why(memory, str(AT)[:10])
        assert refused.value.message == f"Several receipts begin with {str(AT)[:10]}."
        assert refused.value.detail == "\n".join(
            f"  {receipt_id}  {WHEN}  SessionStart" for receipt_id in made[::-1]
        )


def test_the_last_receipt_of_this_project_is_preferred(client: Client, tmp_path: Path) -> None:
    elsewhere = write_receipt(client, 2, project="other")
    with client.memory() as memory:
        # There are none of this project.
        assert why(memory, None).receipt == elsewhere
        assert ids(last(memory, 20)) == [elsewhere]
    here = write_receipt(client, 1)
    nowhere = write_receipt(client, 3, project=None)
    for _ in range(2):
        client.folder = tmp_path / "app"
        with client.memory() as memory:
            assert memory.project == "app"
            assert why(memory, None).receipt == here
            assert ids(last(memory, 20)) == [here]
            assert why(memory, elsewhere).project == "other"
        client.folder = tmp_path
        with client.memory() as memory:
            assert memory.project is None
            assert why(memory, None).receipt == nowhere
            assert ids(last(memory, 20)) == [nowhere, elsewhere, here]
        client.apply()


def test_an_invalid_receipt_does_not_hide_the_others(client: Client) -> None:
    good = write_receipt(client, 1)
    spool.put(client.home, f"{AT + 2}-7-a", spool.RECEIPT, b"{")
    spool.put(client.home, f"{AT + 3}-7-a", spool.RECEIPT, b"[]")
    write_receipt(client, 4, items=7)
    with client.memory() as memory:
        assert why(memory, None).receipt == good
    assert client.apply().receipts == 1
    with client.memory() as memory:
        assert ids(last(memory, 20)) == [good]
