"""The stored body of an event."""

import json

import pytest

from ctx.capture import event_store
from ctx.redaction import RedactedText, redact

TOKEN = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"


def test_the_keys_of_payloads_are_redacted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    scanned: list[str] = []

    def counted(text: str) -> RedactedText:
        scanned.append(text)
        return redact(text)

    monkeypatch.setattr(event_store, "redact", counted)
    monkeypatch.setattr(event_store, "_PLAIN_KEYS", set[str]())
    first = {"tool_input": {"command": "ls", "token": TOKEN}, "count": 1, TOKEN: 2}
    before = event_store.body(first)
    assert event_store.body(first) == before
    assert json.loads(before) == {
        "tool_input": {"command": "ls", "token": "[redacted:github-token]"},
        "count": 1,
        "[redacted:github-token]": 2,
    }
    assert "tool_input" in scanned[0]
    # The second time, only the values are read, and the key that has a secret.
    assert "tool_input" not in scanned[1]
    assert scanned[1].count("token=") == 1
    assert TOKEN in scanned[1].split("\n\0\n")
