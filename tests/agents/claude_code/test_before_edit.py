"""What an agent is given when it reads a file, or before it edits one."""

import json
import os
import sys
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctx import tokens
from ctx.agents import known_hosts
from ctx.capture.injected_text import without_injected
from ctx.hook_files import anchored_files
from tests.agents.claude_code.hook_processes import (
    NOTHING,
    SESSION,
    SILENT,
    Hooks,
    Ran,
    additional,
    command,
    line,
    sample,
)
from tests.conftest import Ctx

RULE = "Never log the token"


@pytest.fixture
def hooks(surroundings: Path, repo: Path, ctx: Ctx) -> Iterator[Hooks]:
    (repo / "src").mkdir()
    (repo / "src" / "auth.py").write_text("def refresh():\n    return 1\n")
    (repo / "src" / "other.py").write_text("x = 1\n")
    assert ctx("init").code == 0
    hooks = Hooks(surroundings / ".ctx", repo)
    yield hooks
    hooks.close()


def list_files(ctx: Ctx) -> None:
    """What the worker does after a change."""
    assert ctx("hook", "apply").code == 0


def edit(hooks: Hooks, path: str = "src/auth.py", session: str = SESSION, **changed: str) -> Ran:
    folder = str(hooks.folder)
    call = {"file_path": os.path.join(folder, path), "old_string": "a", "new_string": "b"}
    said = sample("PreToolUse.Edit", session_id=session, cwd=folder, tool_input={**call, **changed})
    return hooks.run("pre-edit", said)


def digests(home: Path) -> dict[str, str]:
    """Each file with the digest of its content, which a failed comparison can show."""
    return {
        str(path): blake2b(path.read_bytes(), digest_size=8).hexdigest()
        for path in home.rglob("*")
        if path.is_file()
    }


def begin(hooks: Hooks, ctx: Ctx, session: str) -> None:
    """A session here makes the worker look at this folder."""
    hooks.run("session-start", hooks.event("session-start", session_id=session))
    list_files(ctx)


def test_what_memory_says_about_a_file_is_given_once_for_each_session(
    hooks: Hooks, ctx: Ctx
) -> None:
    assert ctx("add", "decision", RULE, "--no-tier", "--mention", "src/auth.py").code == 0
    begin(hooks, ctx, "first")
    text = additional(edit(hooks))
    assert text == f"## Before you edit src/auth.py\n- [decision] {RULE}\n\n"
    assert text.strip()
    assert not without_injected(text).strip()
    assert edit(hooks) == SILENT
    assert edit(hooks, "src/other.py") == SILENT
    assert RULE in additional(edit(hooks, session="another"))
    assert hooks.log() == []


def test_a_read_gives_it_to_each_agent_of_a_session(hooks: Hooks, ctx: Ctx) -> None:
    assert ctx("add", "decision", RULE, "--no-tier", "--mention", "src/auth.py").code == 0
    begin(hooks, ctx, "first")
    folder = str(hooks.folder)
    call = {"file_path": os.path.join(folder, "src/auth.py")}
    said = {**json.loads(sample("PreToolUse.Read")), "cwd": folder, "tool_input": call}
    assert RULE in additional(hooks.run("pre-edit", line({"agent_id": "a1", **said})))
    assert RULE in additional(hooks.run("pre-edit", line(said)))
    assert edit(hooks) == SILENT


# The payload of a host after a file was read.
PLACE = {"session_id": SESSION, "cwd": "FOLDER"}
OF_GEMINI = {**PLACE, "tool_name": "read_file", "tool_input": {"file_path": "FILE"}}
READS = {
    "gemini": [OF_GEMINI],
    "qwen": [OF_GEMINI],
    "opencode": [
        {
            "session": SESSION,
            "folder": "FOLDER",
            "agent": "",
            "tool": "read",
            "args": {"filePath": "FILE"},
        }
    ],
    "copilot": [
        {
            "sessionId": SESSION,
            "cwd": "FOLDER",
            "toolName": "view",
            "toolArgs": {"path": "FOLDER/FILE"},
        }
    ],
    "codex": [
        {**PLACE, "tool_name": "Bash", "tool_input": {"command": shown}, "tool_response": "x = 1"}
        for shown in (
            "cat FILE",
            "sed -n '1,80p' FOLDER/FILE",
            'rg -n "def refresh" FILE',
            "nl -ba 'FILE' | sed -n 1,80p",
        )
    ],
}


@pytest.mark.parametrize(
    ("host", "payload"), [(host, payload) for host in READS for payload in READS[host]]
)
def test_a_read_in_another_host(host: str, payload: dict[str, Any], hooks: Hooks, ctx: Ctx) -> None:
    assert ctx("add", "decision", RULE, "--no-tier", "--mention", "src/auth.py").code == 0
    begin(hooks, ctx, "first")
    entry = Path(known_hosts.__file__).parent / host / "entry.py"

    def after_read(file: str) -> bytes:
        said = json.dumps(payload).replace("FOLDER", str(hooks.folder)).replace("FILE", file)
        words = [sys.executable, "-I", "-S", str(entry), "post-tool-use"]
        ran = hooks.run_command(words, said.encode())
        assert (ran.code, ran.err) == (0, b"")
        return ran.out

    assert after_read("src/other.py") == b""
    answer = json.loads(after_read("src/auth.py"))
    text = answer.get("hookSpecificOutput", answer)["additionalContext"]
    assert text == f"## Before you edit src/auth.py\n- [decision] {RULE}\n\n"
    assert after_read("src/auth.py") == b""


def test_the_receipt_is_shown_by_why(hooks: Hooks, ctx: Ctx) -> None:
    assert ctx("add", "decision", RULE, "--no-tier", "--mention", "src/auth.py").code == 0
    begin(hooks, ctx, "first")
    edit(hooks)
    list_files(ctx)
    shown = ctx("why", SESSION)
    assert RULE in shown.out
    assert "about the file that the agent read or edited" in shown.out


def test_only_rules_failures_and_decisions_are_given(hooks: Hooks, ctx: Ctx) -> None:
    for kind in ("feature", "statement", "discovery"):
        text = f"It has a {kind}"
        assert ctx("add", "observation", text, "--tag", f"kind:{kind}", "--no-tier").code == 0
        node = ctx("list", "--format", "json").json["nodes"][0]["id"]
        assert ctx("relate", node, "MENTIONS", "src/auth.py").code == 0
    begin(hooks, ctx, "first")
    assert edit(hooks) == SILENT
    assert ctx("add", "observation", "The lock was taken twice", "--tag", "kind:bugfix").code == 0
    node = ctx("list", "--format", "json").json["nodes"][0]["id"]
    assert ctx("relate", node, "MENTIONS", "src/auth.py").code == 0
    begin(hooks, ctx, "second")
    given = additional(edit(hooks))
    assert "The lock was taken twice" in given
    assert "It has a" not in given


def test_what_is_about_the_edited_function_comes_first(hooks: Hooks, ctx: Ctx) -> None:
    assert ctx("add", "decision", "Wait before a retry", "--mention", "auth.refresh").code == 0
    assert ctx("add", "decision", RULE, "--mention", "src/auth.py").code == 0
    assert ctx("code", "index").code == 0
    begin(hooks, ctx, "first")
    lines = additional(edit(hooks, old_string="def refresh():")).splitlines()
    assert [line.partition("] ")[2] for line in lines[1:3]] == ["Wait before a retry", RULE]


def test_what_the_session_got_at_its_start_is_not_repeated(hooks: Hooks, ctx: Ctx) -> None:
    assert ctx("add", "decision", RULE, "--mention", "src/auth.py").code == 0
    begin(hooks, ctx, SESSION)
    assert edit(hooks) == SILENT
    assert RULE in additional(edit(hooks, session="another"))


def test_it_costs_at_most_200_tokens(hooks: Hooks, ctx: Ctx) -> None:
    for number in range(12):
        text = f"Decision {number}: " + "the token stays in memory and is never written. " * 6
        assert ctx("add", "decision", text, "--no-tier", "--mention", "src/auth.py").code == 0
    begin(hooks, ctx, "first")
    assert 100 < tokens.estimate(additional(edit(hooks))) <= 200


def test_an_untrusted_project_store_gives_nothing(hooks: Hooks, ctx: Ctx) -> None:
    assert ctx("add", "decision", RULE, "--no-tier", "--mention", "src/auth.py").code == 0
    begin(hooks, ctx, "first")
    assert ctx("trust", "--revoke").code == 0
    assert edit(hooks) in (SILENT, NOTHING)


def test_most_edits_load_nothing_and_leave_nothing(hooks: Hooks, ctx: Ctx) -> None:
    assert ctx("add", "decision", RULE, "--no-tier", "--mention", "src/auth.py").code == 0
    begin(hooks, ctx, "first")
    # The start of a session may leave a background process that still writes.
    hooks.settle()
    before = digests(hooks.home)
    said = sample(
        "PreToolUse.Edit",
        session_id=SESSION,
        cwd=str(hooks.folder),
        tool_input={"file_path": str(hooks.folder / "src" / "other.py")},
    )
    interpreter, *rest = command("pre-edit")
    ran = hooks.run_command([interpreter, "-X", "importtime", *rest], said)
    loaded = {each.rpartition("|")[2].strip() for each in ran.err.decode().splitlines()}
    assert "ctx.hook_files.anchored_files" in loaded
    assert not {"json", "sqlite3", "ctx.agents.runtime.hook_answers"} & loaded
    hooks.settle()
    assert digests(hooks.home) == before


@pytest.mark.parametrize("path", ["", "relative.py", "/", "\0", "/nowhere/x.py", "x" * 5000])
def test_odd_paths_are_not_found(hooks: Hooks, ctx: Ctx, path: str) -> None:
    begin(hooks, ctx, "first")
    said = sample("PreToolUse.Write", session_id=SESSION, tool_input={"file_path": path})
    assert hooks.run("pre-edit", said) in (SILENT, NOTHING)


@given(st.dictionaries(st.text(min_size=1), st.lists(st.text(min_size=1), max_size=3), max_size=5))
def test_a_list_is_read_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, list[str]]
) -> None:
    home = str(tmp_path_factory.mktemp("home"))
    os.mkdir(f"{home}/{anchored_files.FOLDER}")
    fitting = {
        path: [item for item in items if not {"\n", "\t"} & set(item)]
        for path, items in files.items()
        if os.path.normpath(f"/top/{path}") == f"/top/{path}" and not {"\n", "\t", "\0"} & set(path)
    }
    with open(anchored_files.path_of(home, "/top"), "wb") as file:
        file.write(anchored_files.content(fitting))
    for path, items in fitting.items():
        assert anchored_files.find(home, f"/top/{path}") == (path, items)
    assert anchored_files.find(home, "/top/not there") is None or "not there" in fitting
