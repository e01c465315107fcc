"""Known tokens are removed before the spool has them, as processing the event would do."""

import json
from typing import Any

import pytest

from ctx.agents.copilot.tools import call_id
from ctx.agents.gemini.tools import ToolResult, tool_use
from ctx.hook_files import known_tokens
from ctx.redaction import redact, secret_formats
from tests import secrets_generator

TOKEN = "ghp_" + "a1B2c3D4e5F6" * 3
MARK = "[redacted:github-token]"


def written(value: Any) -> Any:
    return json.loads(known_tokens.redact(json.dumps(value).encode()))


def test_the_result_of_processing_is_the_same() -> None:
    removed = set()
    for sample in secrets_generator.samples(seed=7, per_kind=15):
        text = written({"said": sample.text})["said"]
        if text != sample.text:
            removed.add(sample.kind)
            assert redact(text).text == redact(sample.text).text
    assert removed > {"openssh private key", "pgp private key block", "gitlab-routable", "openai"}
    assert len(removed) > 25


def test_prefixes_and_rules_are_those_of_the_formats() -> None:
    formats = list(secret_formats.read_formats())
    for rule, prefixes, *_ in known_tokens.TOKENS:
        for prefix in prefixes.split():
            assert any(each.rule == rule and each.literal in prefix for each in formats), prefix


@pytest.mark.parametrize("before", ["", "x=", "\n", "\\n", "\\", "é", "%3D", '"'])
def test_the_json_stays_valid(before: str) -> None:
    for token, mark in ((TOKEN, MARK), ("npm_" + TOKEN[4:], "[redacted:npm-token]")):
        assert written([f"{before}{token}\n", 1]) == [f"{before}{mark}\n", 1]
    assert known_tokens.redact(b'"\\u003d%b"' % TOKEN.encode()) == b'"\\u003d%b"' % MARK.encode()
    # The first letter belongs to an escape.
    line_end = b'{"a": "\\npm_%b"}' % TOKEN[4:].encode()
    assert known_tokens.redact(line_end) == line_end


def test_what_is_no_token_stays() -> None:
    for text in (
        "task-" + "a1B2c3D4" * 5,
        "ghp_" + "x" * 36,
        f"{TOKEN[:20]} and {TOKEN}é{TOKEN}"[:24],
        f"-----BEGIN PRIVATE KEY-----{TOKEN[4:]}-----END PRIVATE KEY",
        f"f('-----BEGIN PRIVATE KEY-----', {TOKEN[4:]}()) '-----END PRIVATE KEY-----'",
    ):
        assert written(text) == text
    large = json.dumps([TOKEN, "x" * (1 << 20)]).encode()
    assert known_tokens.redact(large) == large


def test_a_secret_beside_a_removed_key_id_is_found() -> None:
    pair = "AKIA" + "Q3EGRM2KHT7VBZ5N" + " wJa1rXUt9FEMIK7MDENGbPxRfiCYq2zLkTe8sVn4"
    assert redact(written(pair)).text == "[redacted:aws-access-key] [redacted:aws-secret-key]"


def test_a_call_has_the_same_id_in_hook_and_transcript() -> None:
    def ids(said: Any) -> tuple[str, str]:
        result = ToolResult("", said["text"] * 40)
        return tool_use("write_file", said, result), call_id(1, "create", said)

    said = {"text": f"x = '{TOKEN}'\n"}
    assert ids(said) == ids(written(said))
