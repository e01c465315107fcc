"""The files that a patch of Codex is about to change."""

import json

import pytest

from ctx.agents.codex.hooks import CodexHooks


@pytest.mark.parametrize(
    ("patch", "files"),
    [
        ("*** Update File: a.txt\n@@\n-a\n+b", ["/p/a.txt"]),
        ("*** Update File: /q/a.txt\n@@", ["/q/a.txt"]),
        ("*** Update File: a b.txt\n*** Add File: c.txt\n+x", ["/p/a b.txt"]),
        ("*** Update File: a\n@@\n*** Update File: src/b\n@@", ["/p/a", "/p/src/b"]),
        ("echo hello", []),
        ("*** Update File: ", []),
    ],
)
def test_the_files_of_a_patch(patch: str, files: list[str]) -> None:
    payload = {"session_id": "s", "cwd": "/p", "tool_input": {"command": f"{patch}\n"}}
    assert CodexHooks().edited_files(json.dumps(payload).encode()) == files
