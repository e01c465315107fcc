"""Events as they are kept: once, without secrets, without the middle of long texts."""

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
SAID = {
    "session_id": "5dd65eaa-e3b0-4b25-afae-79ee4238d2da",
    "cwd": "/work/app",
    "hook_event_name": "PostToolUse",
    "tool_name": "Bash",
    "tool_input": {"command": "make"},
    "tool_use_id": "toolu_01",
}
SECRET = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"


def said(**changed: Any) -> bytes:
    return json.dumps({**SAID, **changed}).encode()


def read(data: bytes, kind: str = "post-tool-use") -> Event:
    return event_store.read(f"{ID}.{kind}", data, HOSTS)


def kept(connection: Connection, event: Event) -> dict[str, Any]:
    with transaction(connection):
        event_store.keep(connection, event)
    cursor = connection.execute("SELECT * FROM events")
    names = [column[0] for column in cursor.description]
    (row,) = cursor.fetchall()
    return dict(zip(names, row, strict=True))


def body(event: Event) -> Any:
    with graphs.graph() as graph:
        return json.loads(kept(graph.connection, event)["body"])


def test_the_whole_row() -> None:
    with graphs.graph() as graph:
        row = kept(graph.connection, read(said()))
        assert json.loads(row.pop("body")) == SAID
        assert row == {
            "id": ID,
            "session": SAID["session_id"],
            "event": "PostToolUse",
            "at": "2026-01-20T11:00:00Z",
            "folder": "/work/app",
            "tool": "Bash",
            "tool_use": "toolu_01",
            "status": "new",
            "attempts": 0,
            "reason": None,
        }


def test_to_keep_it_twice_is_harmless() -> None:
    with graphs.graph() as graph:
        first = kept(graph.connection, read(said()))
        again = kept(graph.connection, read(said(tool_name="Another")))
        assert again == first


@pytest.mark.parametrize("word", spool.EVENTS)
def test_each_kind_is_read_under_its_own_name(word: str) -> None:
    name = spool.EVENTS[word]
    assert read(said(hook_event_name=name), word).name == name
    # Older clients did not always say which event it is.
    without = {key: value for key, value in SAID.items() if key != "hook_event_name"}
    assert read(json.dumps(without).encode(), word).name == name
    for other in {"PreToolUse", *spool.EVENTS.values()} - {name}:
        with pytest.raises(ContentRefused, match=f"a different event than {name}"):
            read(said(hook_event_name=other), word)


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
        (said(session_id=""), "It names no session."),
        (said(session_id=7), "It names no session."),
        (said(session_id="../x"), "It names no session."),
        (said(session_id="\ud800"), "It names no session."),
    ],
)
def test_what_is_no_event_is_refused_with_a_reason(data: bytes, reason: str) -> None:
    with pytest.raises(ContentRefused) as refused:
        read(data)
    assert refused.value.message == reason


def test_a_kind_that_nobody_knows() -> None:
    with pytest.raises(ContentRefused, match="ctx does not know this event"):
        read(said(), "notification")


def test_secrets_are_not_kept() -> None:
    event = read(
        said(
            tool_input={"command": f"curl -H 'Authorization: Bearer {SECRET}'"},
            tool_response={"password": "correct-horse-9", "list": [f"token={SECRET}"]},
            **{f"key {SECRET}": 1},
        )
    )
    with graphs.graph() as graph:
        row = kept(graph.connection, event)
        assert SECRET not in row["body"]
        assert "correct-horse-9" not in row["body"]
        found = json.loads(row["body"])
        assert found["tool_input"]["command"].startswith("curl -H 'Authorization: Bearer ")
        assert set(found["tool_response"]) == {"password", "list"}


def test_of_a_long_text_the_ends_are_kept() -> None:
    long_text = "a" * 9_000 + "b" * 9_000
    found = body(read(said(tool_response={"stdout": long_text, "short": "x" * 16_000})))
    assert found["tool_response"] == {
        "stdout": "a" * 8_000 + "\n… 2,000 characters left out …\n" + "b" * 8_000,
        "short": "x" * 16_000,
    }


def test_what_is_nested_too_deeply_is_cut() -> None:
    nested: Any = "inside"
    for _ in range(60):
        nested = [nested]
    text = json.dumps(body(read(said(tool_input=nested))))
    assert "inside" not in text
    assert "\\u2026" in text


@pytest.mark.parametrize("name", ["cwd", "tool_name", "tool_use_id", "anything"])
def test_half_a_character_does_not_stop_it(name: str) -> None:
    """JSON can say what no database can hold."""
    data = json.dumps({**SAID, name: "a\ud83d"}).encode()
    found = body(read(data))
    assert found[name] == "a?"


@pytest.mark.parametrize("name", ["cwd", "tool_name", "tool_use_id"])
def test_a_field_of_another_kind_counts_as_none(name: str) -> None:
    with graphs.graph() as graph:
        row = kept(graph.connection, read(said(**{name: {"a": 1}})))
        columns = {"cwd": "folder", "tool_name": "tool", "tool_use_id": "tool_use"}
        assert row[columns[name]] == ("" if name == "cwd" else None)
        assert json.loads(row["body"])[name] == {"a": 1}


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(alphabet=st.characters(codec=None), max_size=30),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=12,
)


@settings(max_examples=effort.times(60), deadline=None, derandomize=True)
@given(st.dictionaries(st.text(max_size=12), JSON, max_size=5))
def test_whatever_a_client_says_can_be_kept(more: dict[str, Any]) -> None:
    event = read(json.dumps({**more, **SAID}).encode())
    found = body(event)
    assert {name: found[name] for name in SAID} == SAID


def test_numbers_that_are_none_are_not_written() -> None:
    """Python reads and writes `NaN`, and no other reader of JSON does."""
    data = said()[:-1] + b', "cost": NaN, "most": -Infinity}'
    with graphs.graph() as graph:
        text = kept(graph.connection, read(data))["body"]
        json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


def test_each_use_of_a_tool_is_one_event() -> None:
    """Whoever reports it: a second hook, or later the transcript."""
    with graphs.graph() as graph:
        first = kept(graph.connection, read(said()))
        other = read(said(tool_response={"stdout": "more"}))._replace(
            id=f"{AT + 90_000}-t-0011aabb"
        )
        assert kept(graph.connection, other) == first
        with transaction(graph.connection):
            assert not event_store.keep(graph.connection, other)
            assert event_store.keep(graph.connection, other._replace(session="another"))
            assert event_store.keep(graph.connection, other._replace(id="x", tool_use="toolu_02"))


@pytest.mark.parametrize("later_ms", [-2_900, 0, 2_900])
def test_what_is_said_twice_at_once_is_one_event(later_ms: int) -> None:
    without = {key: value for key, value in SAID.items() if key != "tool_use_id"}
    data = json.dumps({**without, "prompt": "Go on."}).encode()
    with graphs.graph() as graph:
        first = kept(graph.connection, read(data))
        again = read(data)._replace(id=f"{AT + later_ms}-77-00000000")
        assert kept(graph.connection, again) == first
        with transaction(graph.connection):
            assert event_store.keep(
                graph.connection, again._replace(id=f"{AT + 3_100}-77-00000000")
            )


def test_of_a_file_that_is_read_nothing_is_kept() -> None:
    file = {"filePath": "/a.py", "content": "the text", "numLines": 1, "base64": "AAAA"}
    for response in ({"type": "text", "file": file}, "the text", ["the text"], None):
        found = body(read(said(tool_name="Read", tool_response=response, tool_output="the text")))
        assert "the text" not in json.dumps(found)
        assert "AAAA" not in json.dumps(found)


def test_a_file_that_is_written_is_kept_whole() -> None:
    before, after = "a\n" * 40_000, "a\n" * 39_999 + "b\n"
    given = {"file_path": "/a.txt", "content": after}
    response = {"type": "update", "originalFile": before, "content": after, "structuredPatch": [1]}
    found = body(read(said(tool_name="Write", tool_input=given, tool_response=response)))
    assert found["tool_input"] == {"file_path": "/a.txt"}
    written = {"before": before, "after": after, "whole": True}
    assert found["tool_response"] == {"written": written}


def test_secrets_in_files_that_are_written() -> None:
    given = {"file_path": "/a.py", "old_string": "x = 1", "new_string": f"x = '{SECRET}'"}
    response = {"originalFile": f"x = 1\ntoken = '{SECRET}'\n", "structuredPatch": [SECRET]}
    found = json.dumps(body(read(said(tool_name="Edit", tool_input=given, tool_response=response))))
    assert SECRET not in found
    given = {"file_path": "/app/.env", "content": "PIN=1234 and more"}
    assert "1234" not in json.dumps(body(read(said(tool_name="Write", tool_input=given))))


PLACES = st.recursive(
    st.sampled_from(
        ("plain", "a\0b", f"{SECRET}", "<private>hidden</private>", "x <private>hidden")
    ),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=12,
)


@settings(max_examples=effort.times(60), deadline=None, derandomize=True)
@given(st.dictionaries(st.text(max_size=12), PLACES, max_size=5))
def test_wherever_a_secret_stands_it_is_not_kept(more: dict[str, Any]) -> None:
    found = json.dumps(body(read(json.dumps({**more, **SAID}).encode())))
    assert SECRET not in found
    assert "hidden" not in found
