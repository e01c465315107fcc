"""Stored events: once, without secrets, without the middle of long texts."""

import json
from sqlite3 import Connection
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctx.agents.known_hosts import HOSTS
from ctx.capture import event_store
from ctx.errors import ContentRefused
from ctx.hook_files import spool
from ctx.hosts.events import Event
from ctx.sqlite.connection import transaction
from tests import effort
from tests.memory import graphs

AT = 1_768_906_800_123
ID = f"{AT}-4242-9f3a1c77"
PAYLOAD = {
    "session_id": "5dd65eaa-e3b0-4b25-afae-79ee4238d2da",
    "cwd": "/work/app",
    "hook_event_name": "PostToolUse",
    "tool_name": "Bash",
    "tool_input": {"command": "make"},
    "tool_use_id": "toolu_01",
}
SECRET = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"


def payload_bytes(**changed: Any) -> bytes:
    return json.dumps({**PAYLOAD, **changed}).encode()


def read(data: bytes, kind: str = "post-tool-use") -> Event:
    return event_store.read(f"{ID}.{kind}", data, HOSTS)


def stored_row(connection: Connection, event: Event) -> dict[str, Any]:
    with transaction(connection):
        event_store.keep(connection, event)
    cursor = connection.execute("SELECT * FROM events")
    names = [column[0] for column in cursor.description]
    (row,) = cursor.fetchall()
    return dict(zip(names, row, strict=True))


def body(event: Event) -> Any:
    with graphs.graph() as graph:
        return json.loads(stored_row(graph.connection, event)["body"])


def test_every_column_is_filled() -> None:
    with graphs.graph() as graph:
        row = stored_row(graph.connection, read(payload_bytes()))
        assert json.loads(row.pop("body")) == PAYLOAD
        assert row == {
            "id": ID,
            "session": PAYLOAD["session_id"],
            "event": "PostToolUse",
            "at": "2026-01-20T11:00:00Z",
            "folder": "/work/app",
            "tool": "Bash",
            "tool_use": "toolu_01",
            "status": "new",
            "attempts": 0,
            "reason": None,
        }


def test_an_event_is_stored_once() -> None:
    with graphs.graph() as graph:
        first = stored_row(graph.connection, read(payload_bytes()))
        again = stored_row(graph.connection, read(payload_bytes(tool_name="Another")))
        assert again == first


@pytest.mark.parametrize("word", spool.EVENTS)
def test_each_kind_is_read_under_the_name_of_its_event(word: str) -> None:
    name = spool.EVENTS[word]
    assert read(payload_bytes(hook_event_name=name), word).name == name
    # Older clients did not always say which event it is.
    without = {key: value for key, value in PAYLOAD.items() if key != "hook_event_name"}
    assert read(json.dumps(without).encode(), word).name == name
    for other in {"PreToolUse", *spool.EVENTS.values()} - {name}:
        with pytest.raises(ContentRefused, match=f"a different event than {name}"):
            read(payload_bytes(hook_event_name=other), word)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "It is not JSON."),
        (b"{", "It is not JSON."),
        (b"\xff\xfe", "It is not JSON."),
        (b'{"session_id": "a"', "It is not JSON."),
        (b"[" * 100_000, "It is not JSON."),
        (b"[]", "ctx does not know this event."),
        (b"7", "ctx does not know this event."),
        (b"{}", "It names no session."),
        (payload_bytes(session_id=""), "It names no session."),
        (payload_bytes(session_id=7), "It names no session."),
        (payload_bytes(session_id="../x"), "It names no session."),
        (payload_bytes(session_id="\ud800"), "It names no session."),
    ],
)
def test_invalid_payloads_are_refused_with_a_reason(data: bytes, reason: str) -> None:
    with pytest.raises(ContentRefused) as refused:
        read(data)
    assert refused.value.message == reason


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ContentRefused, match="ctx does not know this event"):
        read(payload_bytes(), "notification")


def test_secrets_are_redacted() -> None:
    event = read(
        payload_bytes(
            tool_input={"command": f"curl -H 'Authorization: Bearer {SECRET}'"},
            tool_response={"password": "correct-horse-9", "list": [f"token={SECRET}"]},
            **{f"key {SECRET}": 1},
        )
    )
    with graphs.graph() as graph:
        row = stored_row(graph.connection, event)
        assert SECRET not in row["body"]
        assert "correct-horse-9" not in row["body"]
        found = json.loads(row["body"])
        assert found["tool_input"]["command"].startswith("curl -H 'Authorization: Bearer ")
        assert set(found["tool_response"]) == {"password", "list"}


def test_long_texts_lose_their_middle() -> None:
    long_text = "a" * 9_000 + "b" * 9_000
    found = body(read(payload_bytes(tool_response={"stdout": long_text, "short": "x" * 16_000})))
    assert found["tool_response"] == {
        "stdout": "a" * 8_000 + "\n… 2,000 characters left out …\n" + "b" * 8_000,
        "short": "x" * 16_000,
    }


def test_deep_nesting_is_cut() -> None:
    nested: Any = "inside"
    for _ in range(60):
        nested = [nested]
    text = json.dumps(body(read(payload_bytes(tool_input=nested))))
    assert "inside" not in text
    assert "\\u2026" in text


@pytest.mark.parametrize("name", ["cwd", "tool_name", "tool_use_id", "anything"])
def test_a_lone_surrogate_is_replaced(name: str) -> None:
    """JSON can contain characters that the database cannot store."""
    data = json.dumps({**PAYLOAD, name: "a\ud83d"}).encode()
    found = body(read(data))
    assert found[name] == "a?"


@pytest.mark.parametrize("name", ["cwd", "tool_name", "tool_use_id"])
def test_a_field_of_the_wrong_type_is_ignored(name: str) -> None:
    with graphs.graph() as graph:
        row = stored_row(graph.connection, read(payload_bytes(**{name: {"a": 1}})))
        columns = {"cwd": "folder", "tool_name": "tool", "tool_use_id": "tool_use"}
        assert row[columns[name]] == ("" if name == "cwd" else None)
        assert json.loads(row["body"])[name] == {"a": 1}


def test_nan_and_infinity_are_not_written() -> None:
    """Python reads and writes `NaN`; other JSON parsers reject it."""
    data = payload_bytes()[:-1] + b', "cost": NaN, "most": -Infinity}'
    with graphs.graph() as graph:
        text = stored_row(graph.connection, read(data))["body"]
        json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


def test_each_use_of_a_tool_is_one_event() -> None:
    """Also if a second hook or the transcript reports it again."""
    with graphs.graph() as graph:
        first = stored_row(graph.connection, read(payload_bytes()))
        other = read(payload_bytes(tool_response={"stdout": "more"}))._replace(
            id=f"{AT + 90_000}-t-0011aabb"
        )
        assert stored_row(graph.connection, other) == first
        with transaction(graph.connection):
            assert not event_store.keep(graph.connection, other)
            assert event_store.keep(graph.connection, other._replace(session="another"))
            assert event_store.keep(graph.connection, other._replace(id="x", tool_use="toolu_02"))


@pytest.mark.parametrize("later_ms", [-2_900, 0, 2_900])
def test_the_same_payload_within_seconds_is_one_event(later_ms: int) -> None:
    without = {key: value for key, value in PAYLOAD.items() if key != "tool_use_id"}
    data = json.dumps({**without, "prompt": "Go on."}).encode()
    with graphs.graph() as graph:
        first = stored_row(graph.connection, read(data))
        again = read(data)._replace(id=f"{AT + later_ms}-77-00000000")
        assert stored_row(graph.connection, again) == first
        with transaction(graph.connection):
            assert event_store.keep(
                graph.connection, again._replace(id=f"{AT + 3_100}-77-00000000")
            )


def test_the_content_of_a_read_file_is_not_stored() -> None:
    file = {"filePath": "/a.py", "content": "the text", "numLines": 1, "base64": "AAAA"}
    for response in ({"type": "text", "file": file}, "the text", ["the text"], None):
        found = body(
            read(payload_bytes(tool_name="Read", tool_response=response, tool_output="the text"))
        )
        assert "the text" not in json.dumps(found)
        assert "AAAA" not in json.dumps(found)


def test_a_written_file_is_stored_before_and_after() -> None:
    before, after = "a\n" * 40_000, "a\n" * 39_999 + "b\n"
    given = {"file_path": "/a.txt", "content": after}
    response = {"type": "update", "originalFile": before, "content": after, "structuredPatch": [1]}
    found = body(read(payload_bytes(tool_name="Write", tool_input=given, tool_response=response)))
    assert found["tool_input"] == {"file_path": "/a.txt"}
    written = {"before": before, "after": after, "whole": True}
    assert found["tool_response"] == {"written": written}


def test_secrets_in_written_files_are_redacted() -> None:
    given = {"file_path": "/a.py", "old_string": "x = 1", "new_string": f"x = '{SECRET}'"}
    response = {"originalFile": f"x = 1\ntoken = '{SECRET}'\n", "structuredPatch": [SECRET]}
    found = json.dumps(
        body(read(payload_bytes(tool_name="Edit", tool_input=given, tool_response=response)))
    )
    assert SECRET not in found
    given = {"file_path": "/app/.env", "content": "PIN=1234 and more"}
    assert "1234" not in json.dumps(body(read(payload_bytes(tool_name="Write", tool_input=given))))


PLACES = st.recursive(
    st.sampled_from(
        ("plain", "a\0b", f"{SECRET}", "<private>hidden</private>", "x <private>hidden", None, 7)
    )
    | st.text(alphabet=st.characters(codec=None), max_size=30),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=12,
)


@settings(max_examples=effort.times(60), deadline=None, derandomize=True)
@given(st.dictionaries(st.text(max_size=12), PLACES, max_size=5))
def test_a_secret_is_redacted_wherever_it_is(more: dict[str, Any]) -> None:
    found = body(read(json.dumps({**more, **PAYLOAD}).encode()))
    assert {name: found[name] for name in PAYLOAD} == PAYLOAD
    assert SECRET not in json.dumps(found)
    assert "hidden" not in json.dumps(found)


def test_the_name_of_a_tool_is_stored_without_secrets() -> None:
    with graphs.graph() as graph:
        event = read(payload_bytes(tool_name=f"mcp__{SECRET}__search"))
        row = stored_row(graph.connection, event)
    assert row["tool"] == "mcp__[redacted:github-token]__search"
    assert SECRET not in row["body"]
