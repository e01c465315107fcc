"""Real sessions in Codex: what one remembers, the next one gets."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import git
from tests.e2e.claude_code.api import Reply, Tool
from tests.e2e.delegated_work import (
    PROMPT,
    SUMMARY,
    TASK,
    calling,
    check_context,
    check_words,
    delegated,
)
from tests.e2e.host_clients import npm_programs
from tests.e2e.host_clients.chat_api import Answer, ChatRequest
from tests.e2e.host_clients.host_person import FACT, REMEMBER, HostPerson
from tests.e2e.host_clients.responses_api import serving_responses

SETTINGS = """\
model = "gpt-5.5"
model_provider = "scripted"
check_for_update_on_startup = false

[model_providers.scripted]
name = "scripted"
base_url = "http://127.0.0.1:9/v1"
wire_api = "responses"
env_key = "MODEL_KEY"

[analytics]
enabled = false
"""
PATCH = """\
*** Begin Patch
*** Add File: shop.py
+def price():
+    return 1
*** Add File: stock.py
+def stock():
+    return 2
*** End Patch
"""
UPDATE = """\
*** Begin Patch
*** Update File: shop.py
@@
-    return 1
+    return 3
*** End Patch
"""
DECISION = "Prices are in cents"


@pytest.fixture
def person(surroundings: Path, tmp_path: Path) -> Iterator[HostPerson]:
    """A user of Codex with ctx. The test fails if a hook logs an error."""
    program = npm_programs.codex()
    project = tmp_path / "shop"
    project.mkdir()
    git("init", "-q", "-b", "main", cwd=project)
    someone = HostPerson(surroundings, project, program, npm_programs.CODEX)
    someone.adds("Releases have names.")
    (surroundings / ".codex").mkdir()
    (surroundings / ".codex" / "config.toml").write_text(SETTINGS)
    someone.ctx("install", "--host", "codex")
    yield someone
    someone.leaves()
    assert someone.complaints() == []


def say(
    person: HostPerson, prompt: str, *replies: Answer, resume: str = "", **more: Any
) -> list[ChatRequest]:
    words = ["exec", *(["resume", resume] if resume else []), "--json"]
    # The user has reviewed the hooks.
    words += ["--dangerously-bypass-hook-trust", "--dangerously-bypass-approvals-and-sandbox"]
    # It waits for the MCP server, which on a busy machine takes longer than a scripted model.
    words += [
        "-c",
        "mcp_servers.ctx.required=true",
        "-c",
        "mcp_servers.ctx.startup_timeout_sec=120",
    ]
    words += ["-c", 'model_providers.scripted.base_url="{api}"', prompt]
    return person.play(words, {"MODEL_KEY": "none"}, *replies, serving=serving_responses, **more)


def test_what_one_session_remembers_is_given_to_the_next(person: HostPerson) -> None:
    first = say(
        person,
        "Add the price, please.",
        Reply(("I look.",), (Tool("exec_command", {"cmd": "make price"}),)),
        Reply((), (Tool("apply_patch", {"text": PATCH}),)),
        f"Done. {REMEMBER}",
    )
    assert "Releases have names." in first[0].text
    (session,) = person.sessions(1)
    assert session["host"] == "codex"
    assert person.steps(session["id"]) == [
        ("command", "make price"),
        ("prompt", "Add the price, please."),
        ("say", "Done."),
        ("say", "I look."),
        ("write", "shop.py"),
        ("write", "stock.py"),
    ]
    (command,) = [
        step
        for step in person.ctx("sessions", "replay", session["id"])["steps"]
        if step["kind"] == "command"
    ]
    assert (command["ok"], command["exit_code"]) == (False, 2)
    # A resumed conversation still has its context, and gets only what is new.
    resumed = say(person, "Go on.", "On it.", resume=session["id"])
    assert resumed[0].text.count("Releases have names.") == 1
    assert FACT in resumed[0].text
    person.ctx("add", "decision", DECISION, "--no-tier", "--mention", "shop.py")
    say(person, "Hello.", "Hello.")
    second = say(
        person,
        "When do deploys happen?",
        Reply((), (Tool("mcp__ctx.recall", {"query": "deploys"}),)),
        Reply((), (Tool("apply_patch", {"text": UPDATE}),)),
        "On Fridays.",
    )
    # What memory knows about a file comes with the patch of it, and not before.
    assert DECISION not in second[1].text
    assert f"## Before you edit shop.py\n- [decision] {DECISION}" in second[2].text
    assert FACT in second[0].text
    assert "Added `price`" in second[0].text
    assert "tool_search" in second[0].tools
    assert FACT in second[1].results[0]
    newest, *_ = person.sessions(3)
    # A call of our own tools is no step.
    assert person.steps(newest["id"]) == [
        ("prompt", "When do deploys happen?"),
        ("say", "On Fridays."),
        ("write", "shop.py"),
    ]
    # Everything is known already.
    done = person.ctx("import", "--from", "codex")
    assert (done["sessions"], done["steps"]) == ([], 0)


def _wait_for_agent(request: ChatRequest) -> Reply:
    agent = json.loads(request.results[-1])["agent_id"]
    return calling("multi_agent_v1.wait_agent", targets=[agent], timeout_ms=60_000)


def test_only_the_persons_words_become_the_users(person: HostPerson) -> None:
    look = calling("exec_command", cmd="ls")
    say(
        person,
        PROMPT,
        calling("multi_agent_v1.spawn_agent", message=TASK),
        _wait_for_agent,
        # The next request would be too large: the conversation is compacted first.
        look._replace(input_tokens=260_000),
        "Counted.",
        subagent=delegated(look, "There are three."),
        on_the_side=SUMMARY,
    )
    session = check_words(person)
    steps = person.ctx("sessions", "replay", session)["steps"]
    assert ("recap", SUMMARY) in [(step["kind"], step["text"]) for step in steps]
    assert [step["text"] for step in steps if step["agent"] and step["kind"] == "command"] == ["ls"]
    check_context(say(person, "Hello.", "Hello.")[0].text)
    # The transcripts of subagents are no sessions, neither here nor in an import.
    assert person.ctx("import", "--from", "codex")["sessions"] == []
    assert len(person.sessions(2)) == 2
