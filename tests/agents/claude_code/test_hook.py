"""A hook stores an event, answers it, and has commands run."""

import json
import os
import re
import sqlite3
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctx.agents.claude_code.hooks import HOOKS, ClaudeHooks
from ctx.agents.host_setup import hook_commands
from ctx.agents.runtime import hook
from ctx.agents.runtime.hook import Hook
from ctx.agents.runtime.host_hooks import field
from ctx.capture import capture_off
from ctx.hook_files import hook_log, live, spool
from tests.agents.claude_code.hook_processes import (
    ENTRY,
    NOTHING,
    SAMPLES,
    SESSION,
    SILENT,
    WORDS,
    Hooks,
    Ran,
    additional,
    command,
    line,
)
from tests.conftest import Ctx, git

CTX = str(Path(sys.executable).with_name("ctx"))


@pytest.fixture
def hooks(surroundings: Path, folder: Path, ctx: Ctx) -> Iterator[Hooks]:
    """A user with one node in memory who has seen the notice about capture."""
    assert ctx("add", "--type=fact", "--tag=tier:pinned", "Money is in cents.").code == 0
    hooks = Hooks(surroundings / ".ctx", folder)
    (hooks.home / "first-run").touch()
    yield hooks
    hooks.close()


@pytest.fixture
def contents(ctx: Ctx) -> "Contents":
    return Contents(ctx)


class Contents:
    """The contents of memory, newest first."""

    def __init__(self, ctx: Ctx) -> None:
        self._ctx = ctx

    def __call__(self) -> list[str]:
        nodes: list[dict[str, Any]] = self._ctx("list", "--format", "json").json["nodes"]
        return [node["content"] for node in nodes]


# Events that are kept


@pytest.mark.parametrize("word", ["post-tool-use", "stop"])
def test_an_event_is_stored_unchanged(hooks: Hooks, word: str) -> None:
    said = SAMPLES.joinpath("PostToolUse.Edit.json").read_bytes()
    began = time.time_ns() // 1_000_000
    assert hooks.run(word, said) == SILENT
    (name,) = spool.pending_names(str(hooks.home))
    assert re.fullmatch(rf"\d{{13}}-\d+-[0-9a-f]{{8}}\.{word}", name)
    assert began <= spool.made_ms(name) <= time.time_ns() // 1_000_000
    path = hooks.home / "spool" / name
    assert path.read_bytes() == said
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert hooks.log() == []


def test_an_event_is_stored_without_known_tokens(hooks: Hooks) -> None:
    token = "ghp_" + "a1B2c3D4e5F6" * 3
    hooks.run("post-tool-use", hooks.event("post-tool-use", tool_input={"command": token}))
    (name,) = spool.pending_names(str(hooks.home))
    said = (hooks.home / "spool" / name).read_text()
    assert json.loads(said)["tool_input"]["command"] == "[redacted:github-token]"


def test_another_store_can_be_used(hooks: Hooks, ctx: Ctx, tmp_path: Path) -> None:
    """Some characters would end a path inside a URI."""
    store = str(tmp_path / "my home%20#1?mode=rw&é" / "other.db")
    assert ctx("add", "--type=fact", "--tag=tier:pinned", "There.", "--db", store).code == 0
    hooks.environment["CTX_DB"] = store
    given = additional(hooks.run("session-start", hooks.event("session-start")))
    assert "There." in given
    assert "Money" not in given


def test_many_events_are_processed_at_a_stop(hooks: Hooks) -> None:
    said = hooks.event("post-tool-use")
    for number in range(spool.MANY):
        spool.put(str(hooks.home), spool.new_id(number), "post-tool-use", said)
    assert hooks.run("stop", hooks.event("stop")) == SILENT
    hooks.settle()
    assert hooks.spooled() == []


# A Stop, and what an agent asks for in its answer


def entry(text: str, *, kind: str = "assistant", message_id: str = "msg_1") -> bytes:
    """An entry of a transcript."""
    content = [{"type": "text", "text": text}]
    message = {"id": message_id, "role": kind, "content": content}
    return line({"type": kind, "uuid": message_id, "message": message})


def remember(text: str) -> str:
    return f'<ctx:remember type="fact">{text}</ctx:remember>'


class Conversation:
    """A transcript, and the Stops of its session."""

    def __init__(self, hooks: Hooks, path: Path) -> None:
        self._hooks = hooks
        self.path = path
        path.write_bytes(entry("Go on.", kind="user", message_id="u1"))

    def add(self, *entries: bytes) -> int:
        with self.path.open("ab") as file:
            file.writelines(entries)
        return self.path.stat().st_size

    def stop(self, **changed: Any) -> bytes:
        """The output of the hook; empty if it found no commands."""
        told = {"transcript_path": str(self.path), "last_assistant_message": "Done.", **changed}
        ran = self._hooks.run("stop", self._hooks.event("stop", **told))
        assert (ran.code, ran.err) == (0, b"")
        return ran.out

    @property
    def read_offset(self) -> str:
        return live.read(str(self._hooks.home), f"{SESSION}.stop")


@pytest.fixture
def conversation(hooks: Hooks, tmp_path: Path) -> Conversation:
    return Conversation(hooks, tmp_path / "transcript.jsonl")


def test_a_command_in_the_transcript_is_run_once(
    hooks: Hooks, conversation: Conversation, contents: Contents
) -> None:
    conversation.add(entry(remember("Deploys run on Fridays.")), entry("Done.", message_id="m2"))
    assert conversation.stop() == NOTHING.out
    assert contents() == ["Deploys run on Fridays.", "Money is in cents."]
    hooks.settle()
    # Nothing has come since, so it need not even be looked at.
    assert conversation.stop() == b""
    assert [kind for kind, _ in hooks.spooled()] == ["stop"]
    assert contents() == ["Deploys run on Fridays.", "Money is in cents."]


def test_only_entries_since_the_last_stop_are_read(
    hooks: Hooks, conversation: Conversation, contents: Contents
) -> None:
    start = conversation.add(entry(remember("One.")))
    # As after a Stop that has seen it.
    live.write(str(hooks.home), f"{SESSION}.stop", str(start))
    conversation.add(entry("Done.", message_id="m2"))
    assert conversation.stop() == b""
    assert contents() == ["Money is in cents."]
    end = conversation.add(entry(remember("Two."), message_id="m3"))
    assert conversation.stop(last_assistant_message=None) == NOTHING.out
    assert "Two." in contents()
    assert conversation.read_offset == str(end)


@pytest.mark.parametrize("seen", ["-1", "99999999", "²", "9" * 400])
def test_an_invalid_position_is_ignored(
    hooks: Hooks, conversation: Conversation, contents: Contents, seen: str
) -> None:
    """A transcript can be rewritten, and the file with the position can be damaged."""
    live.write(str(hooks.home), f"{SESSION}.stop", seen)
    size = conversation.add(entry(remember("One.")))
    assert conversation.stop(last_assistant_message=None) == NOTHING.out
    assert contents() == ["One.", "Money is in cents."]
    assert conversation.read_offset == str(size)


def test_commands_in_other_entries_are_not_run(hooks: Hooks, conversation: Conversation) -> None:
    conversation.add(
        entry(remember("A person."), kind="user", message_id="u2"),
        line({"type": "attachment", "attachment": {"content": [remember("We ourselves.")]}}),
    )
    size = conversation.add(entry("Done.", message_id="m2"))
    assert conversation.stop() == b""
    assert conversation.read_offset == str(size)
    assert [kind for kind, _ in hooks.spooled()] == ["stop"]


@pytest.mark.parametrize("written", ["<ctx:", "\\u003cctx:", "\\u003Cctx:"])
def test_a_command_in_the_payload_is_run(hooks: Hooks, contents: Contents, written: str) -> None:
    said = hooks.event("stop", last_assistant_message=remember("One."))
    said = said.replace(b"<ctx:", written.encode())
    assert hooks.run("stop", said) == NOTHING
    assert contents() == ["One.", "Money is in cents."]


def test_the_user_sees_how_many_commands_failed(hooks: Hooks, contents: Contents) -> None:
    text = f"{remember('One.')} <ctx:remember type='nonsense'>Two.</ctx:remember> <ctx:link/>"
    ran = hooks.run("stop", hooks.event("stop", last_assistant_message=text))
    assert json.loads(ran.out) == {
        "systemMessage": "ctx: 2 of 3 commands failed; the agent is told with your next prompt"
    }
    told = additional(hooks.run("prompt-submit", hooks.event("prompt-submit")))
    assert told.count("## A memory command failed") == 2
    assert contents() == ["One.", "Money is in cents."]


def test_an_answer_can_be_passed_on_the_command_line(hooks: Hooks, contents: Contents) -> None:
    assert hooks.run("stop", b"", "--response", remember("One.")) == NOTHING
    assert hooks.run("stop", b"nonsense", "--response", remember("Two.")) == NOTHING
    ran = hooks.run("stop", hooks.event("stop"), "--response", "<ctx:recall/>")
    assert json.loads(ran.out) == {
        "systemMessage": "ctx: 1 command failed; the agent is told with your next prompt"
    }
    assert contents() == ["Two.", "One.", "Money is in cents."]
    pin = '<ctx:remember type="fact" tier="pinned">Three.</ctx:remember>'
    assert json.loads(hooks.run("stop", b"", "--response", pin).out) == {
        "systemMessage": "ctx: the agent made a proposal; `ctx review` lets you decide"
    }


# A session from its start to its end


def test_a_session_start_returns_the_context(hooks: Hooks) -> None:
    hooks.environment["CLAUDE_PID"] = "4242"
    ran = hooks.run("session-start", hooks.event("session-start"))
    printed = json.loads(ran.out)
    text = additional(ran)
    assert re.search(r"^- \[fact:[0-9A-Z]{12}\] Money is in cents\.$", text, re.MULTILINE)
    (tokens,) = re.findall(r"1 node, (\d+) tokens", text)
    assert printed == {
        "hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": text},
        "systemMessage": f"ctx: 1 node, {tokens} tokens; `ctx why` lists them",
    }
    assert live.read(str(hooks.home), SESSION) == f"4242\n{hooks.folder}\n"
    hooks.settle()
    # The second time it is ready, and the same.
    assert hooks.run("session-start", hooks.event("session-start", source="clear")) == ran
    assert hooks.log() == []


def test_results_are_returned_once_and_to_their_session(hooks: Hooks) -> None:
    asked = "<ctx:recall query='money'/>"
    assert hooks.run("stop", hooks.event("stop", last_assistant_message=asked)) == NOTHING
    assert hooks.run("prompt-submit", hooks.event("prompt-submit", session_id="other")) == NOTHING
    ran = hooks.run("prompt-submit", hooks.event("prompt-submit"))
    assert json.loads(ran.out).keys() == {"hookSpecificOutput"}
    assert "Money is in cents." in additional(ran)
    assert hooks.run("prompt-submit", hooks.event("prompt-submit")) == NOTHING


# Whether it runs at all


def test_hooks_can_be_switched_off(surroundings: Path, folder: Path) -> None:
    hooks = Hooks(surroundings / ".ctx", folder, CTX_OFF="1")
    for word in WORDS:
        assert hooks.run(word, hooks.event(word)) == SILENT
    assert hooks.run("stop", b"nonsense") == SILENT
    assert not hooks.home.exists()
    hooks.environment["CTX_OFF"] = "0"
    hooks.run("post-tool-use", hooks.event("post-tool-use"))
    assert [kind for kind, _ in hooks.spooled()] == ["post-tool-use"]
    assert hooks.home.stat().st_mode & 0o777 == 0o700
    hooks.close()


def test_the_time_without_hooks_is_recorded(hooks: Hooks, tmp_path: Path) -> None:
    transcript = tmp_path / "t.jsonl"
    transcript.write_text('{"type":"assistant","text":"<ctx:remember>it</ctx:remember>"}\n')
    told = {"session_id": "quiet", "transcript_path": str(transcript)}
    hooks.environment["CTX_OFF"] = "1"
    for word in ("session-start", "prompt-submit", "stop", "session-end"):
        assert hooks.run(word, hooks.event(word, **told)) == SILENT
    assert hooks.spooled() == []
    now_ms = time.time_ns() // 1_000_000
    home = str(hooks.home)
    assert capture_off.was_off(home, "quiet", now_ms + 60_000)
    assert not capture_off.was_off(home, "other", now_ms)
    hooks.environment["CTX_OFF"] = "0"
    hooks.run("session-start", hooks.event("session-start", **told))
    assert capture_off.was_off(home, "quiet", now_ms)
    assert not capture_off.was_off(home, "quiet", now_ms + 60_000)
    # What the agent asked for then is not done now.
    assert hooks.run("stop", hooks.event("stop", **told)) == SILENT
    assert hooks.log() == []


def test_an_unknown_or_missing_hook_is_logged(hooks: Hooks) -> None:
    for number, word in enumerate(("", "Stop", "../../x", "é\n\udc80"), 1):
        assert hooks.run(word, hooks.event("stop")) == NOTHING
        assert len(hooks.log()) == number
    assert hooks.run_command([sys.executable, "-I", "-S", str(ENTRY)], b"{}") == NOTHING
    assert (len(hooks.log()), hooks.spooled()) == (5, [])


def test_the_registered_command_line_works(hooks: Hooks) -> None:
    def line(interpreter: str, entry: str) -> list[str]:
        word = "post-tool-use"
        registered = hook_commands.command_line(word, HOOKS, interpreter=interpreter, entry=entry)
        return ["sh", "-c", registered]

    event = hooks.event("post-tool-use")
    assert hooks.run_command(line(sys.executable, str(ENTRY)), event) == SILENT
    assert hooks.run_command(line("/no/python", str(ENTRY)), b"").code == 0
    assert hooks.run_command(line(sys.executable, "/no/x.py"), b"").code == 0
    assert [kind for kind, _ in hooks.spooled()] == ["post-tool-use"]


def test_the_command_line_of_a_project_does_the_same(hooks: Hooks) -> None:
    for word in WORDS:
        as_registered = hooks.run(word, hooks.event(word))
        hooks.settle()
        again = hooks.event(word, session_id="another")
        assert hooks.run_command([CTX, "hook", word], again) == as_registered, word
        hooks.settle()
    assert hooks.log() == []


# Where hooks are registered twice, as by a person and by a project: the client runs both


def run_twice(hooks: Hooks, word: str, said: bytes) -> list[Ran]:
    with ThreadPoolExecutor(2) as pool:
        lines = ([CTX, "hook", word], command(word))
        return list(pool.map(lambda words: hooks.run_command(words, said), lines))


def test_of_two_concurrent_hooks_one_answers(hooks: Hooks, ctx: Ctx) -> None:
    for number in range(3):
        said = hooks.event("session-start", session_id=f"session-{number}")
        silent, answered = sorted(run_twice(hooks, "session-start", said))
        assert silent == SILENT
        assert "Money is in cents." in additional(answered)
    hooks.settle()
    assert hooks.log() == []
    assert hooks.run_command([CTX, "hook", "apply"], b"").code == 0
    with closing(sqlite3.connect(hooks.home / "store.db")) as connection:
        for table in ("events", "receipts"):
            rows = connection.execute(f"SELECT session FROM {table} ORDER BY 1").fetchall()
            assert rows == [(f"session-{number}",) for number in range(3)], table


def test_a_second_later_a_start_is_answered_again(hooks: Hooks) -> None:
    said = hooks.event("session-start")
    first = hooks.run("session-start", said)
    assert "Money is in cents." in additional(first)
    assert hooks.run("session-start", said) == SILENT
    (claim,) = (hooks.home / "live").glob(f"{SESSION}.start-*")
    patience = int(hooks.environment["CTX_PATIENCE"])
    claim.write_text(f"{int(time.time() * 1000) - 1_100 * patience:020d}")
    assert hooks.run("session-start", said) == first
    # What another process says is another start too.
    hooks.environment["CLAUDE_PID"] = "4242"
    assert hooks.run("session-start", said) == first
    # And so is another part of the same one. Any number is accepted.
    for number in ("2", "99", "100", "0", "x"):
        ran = hooks.run("session-start", said, "--part", number)
        assert (ran == NOTHING) == (number in ("2", "99"))


def test_a_duplicate_event_is_stored_once(hooks: Hooks) -> None:
    for word in WORDS:
        run_twice(hooks, word, hooks.event(word))
        hooks.settle()
    assert hooks.log() == []
    assert hooks.run_command([CTX, "hook", "apply"], b"").code == 0
    with closing(sqlite3.connect(hooks.home / "store.db")) as connection:
        rows = connection.execute("SELECT event FROM events ORDER BY id").fetchall()
    assert [event for (event,) in rows] == [spool.EVENTS[word] for word in WORDS]


def test_commands_that_two_hooks_find_are_run_once(hooks: Hooks, contents: Contents) -> None:
    said = hooks.event("stop", last_assistant_message=f"{remember('One.')} <ctx:nonsense/>")
    told = run_twice(hooks, "stop", said)
    hooks.settle()
    assert contents() == ["One.", "Money is in cents."]
    assert [ran.code for ran in told] == [0, 0]
    given = additional(hooks.run("prompt-submit", hooks.event("prompt-submit")))
    assert given.count("## A memory command failed") == 1


# A person types it


def test_options_can_have_an_equals_sign(hooks: Hooks, contents: Contents) -> None:
    # Without input, as in `sleep 3 | ctx hook stop --response TEXT`.
    read, write = os.pipe()
    line_by_hand = [CTX, "hook", "stop", f"--response={remember('a = b')}"]
    with hooks.started(line_by_hand, stdin=read) as process:
        assert process.communicate(timeout=300) == (b"{}\n", b"")
    os.close(read)
    os.close(write)
    assert contents() == ["a = b", "Money is in cents."]
    said = hooks.event("session-start")
    for words in (["--part=2"], ["--part", "3"]):
        assert hooks.run_command([CTX, "hook", "session-start", *words], said) == NOTHING
    given = hooks.run_command([CTX, "hook", "session-start", "--part=1"], said)
    assert "Money is in cents." in additional(given)


def test_store_and_folder_options_apply_to_a_hook(hooks: Hooks, ctx: Ctx, tmp_path: Path) -> None:
    store, project = tmp_path / "other.db", tmp_path / "shop"
    project.mkdir()
    git("init", "-q", cwd=project)
    add = ("add", "--type=fact", "--tag=tier:pinned")
    assert ctx(*add, "There.", "--db", str(store)).code == 0
    assert ctx(*add, "--tag=project:shop", "In the shop.").code == 0

    def context_with(words: list[str], number: int) -> str:
        said = hooks.event("session-start", cwd=None, time=number)
        return additional(hooks.run_command([CTX, *words, "hook", "session-start"], said))

    assert "There." in context_with(["--db", str(store)], 1)
    here = context_with([], 2)
    assert "Money is in cents." in here
    assert "In the shop." not in here
    assert "In the shop." in context_with(["-C", str(project)], 3)
    response = ["hook", "stop", "--response", remember("Also there.")]
    assert hooks.run_command([CTX, "--db", str(store), *response], b"") == NOTHING
    hooks.settle()
    nodes = ctx("list", "--format", "json", "--db", str(store)).json["nodes"]
    assert [node["content"] for node in nodes] == ["Also there.", "There."]


# The log


def test_the_log_does_not_contain_payloads(hooks: Hooks) -> None:
    secret = "hunter2hunter2hunter2"
    for word in WORDS:
        hooks.run(word, f'"{secret}"'.encode())
        hooks.run(word, line({"session_id": f"{secret}/", "cwd": f"/{secret}\0", "x": secret}))
        hooks.run(word, hooks.event(word, cwd=f"/{secret}\0", transcript_path=f"/{secret}\0"))
    assert len(hooks.log()) >= len(WORDS)
    assert secret not in (hooks.home / "hook.log").read_text()


def test_the_size_of_the_log_is_limited(hooks: Hooks) -> None:
    path = hooks.home / hook_log.NAME
    path.write_text("x" * 300_000 + "\n")
    for _ in range(3):
        hooks.run("stop", b"nonsense")
    assert path.stat().st_size < 1000
    assert sorted(each.name for each in hooks.home.glob("hook.log*")) == ["hook.log", "hook.log.1"]
    assert path.stat().st_mode & 0o777 == 0o600


# What is found in an event without parsing it

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)


@given(texts, texts, st.dictionaries(texts, texts))
def test_a_field_is_read_from_the_payload(session: str, path: str, more: dict[str, str]) -> None:
    told = {"session_id": session, "transcript_path": path, "more": more}
    for said in (line(told), json.dumps(told, indent=2).encode(), json.dumps(told).encode()):
        assert field(said, "session_id") == session
        assert field(said, "transcript_path") == path
        assert field(said, "nothing") == ""


@given(st.binary(max_size=300))
def test_a_field_is_read_from_any_bytes(rest: bytes) -> None:
    for before in (b"", b'{"session_id"', b'{"session_id":"', b'{"session_id":"\\'):
        for after in (b"", b'"', b'"}'):
            assert isinstance(field(before + rest + after, "session_id"), str)


def test_a_payload_that_is_too_large_is_not_stored(surroundings: Path) -> None:
    environment = {"CTX_HOME": str(surroundings / ".ctx"), "CTX_WORKER_AUTOSTART": "0"}
    running = Hook("post-tool-use", [], environment, ClaudeHooks())
    assert hook.answer(running, lambda: b"x" * (64 * 1024 * 1024 + 1)) == NOTHING.out
    (told,) = (surroundings / ".ctx" / "hook.log").read_text().splitlines()
    assert told.endswith("post-tool-use the input of the hook is too large (67,108,865 bytes)")
