"""Real sessions in other hosts than Claude Code: what one remembers, the next one gets.

Only what a person typed becomes the user's: no task of a subagent, and no summary.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.conftest import git
from tests.e2e.claude_code.api import Reply, Tool
from tests.e2e.claude_code.client import CTX
from tests.e2e.delegated_work import PROMPT, SUMMARY, TASK, check_context, check_words
from tests.e2e.host_clients import npm_programs
from tests.e2e.host_clients.chat_api import (
    Answer,
    ChatRequest,
    ChatScript,
    Subagent,
    serving_chat,
)
from tests.e2e.host_clients.gemini_api import serving_gemini
from tests.e2e.host_clients.host_person import FACT, NOWHERE, REMEMBER, HostPerson
from tests.e2e.host_clients.responses_api import serving_responses

PRICE = "def price():\n    return 1\n"
SNAPSHOT = f"<state_snapshot>{SUMMARY}</state_snapshot>"
DECISION = "Prices are in cents"
EXTENSION = Path(__file__).parents[2] / "plugins" / "gemini-cli"


def calls(tool: str, /, says: str = "", **arguments: Any) -> Reply:
    return Reply((says,) if says else (), (Tool(tool, arguments),))


class Host(NamedTuple):
    name: str
    program: Callable[[], tuple[str, ...]]
    version: str
    words: Callable[[str, str], list[str]]
    """The arguments for a prompt, and for the session that it goes on with."""
    variables: dict[str, str]
    work: Sequence[Answer]
    """A failing `make price`, and what writes `shop.py`."""
    steps: Sequence[str]
    failure: str
    """What the model is told about the command."""
    recall: str
    """Our tool, as the host names it."""
    read: Sequence[Answer]
    """What shows `cart.py`."""
    delegates: Sequence[Answer]
    subagent: Sequence[Answer]
    on_the_side: str = "A title"
    compact: str = ""
    """What a person types for it; else the conversation is compacted when it is too large."""
    settings: tuple[str, str] = ("", "")
    serving: Callable[[ChatScript], AbstractContextManager[str]] = serving_chat
    is_imported: bool = False
    """Whether its sessions can be resumed here, and imported: nothing is stored twice."""


LS = {"command": "ls", "description": "List"}
CODEX_SETTINGS = """\
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
CODEX_OPTIONS = [
    # The user has reviewed the hooks.
    *("--json", "--dangerously-bypass-hook-trust", "--dangerously-bypass-approvals-and-sandbox"),
    # It waits for the MCP server, which on a busy machine takes longer than a scripted model.
    *("-c", "mcp_servers.ctx.required=true", "-c", "mcp_servers.ctx.startup_timeout_sec=120"),
    *("-c", 'model_providers.scripted.base_url="{api}"'),
]
PATCH = """\
*** Begin Patch
*** Add File: shop.py
+def price():
+    return 1
*** End Patch
"""
UPDATE = """\
*** Begin Patch
*** Update File: cart.py
@@
-total = 0
+total = 1
*** End Patch
"""


def _wait_for_agent(request: ChatRequest) -> Reply:
    agent = json.loads(request.results[-1])["agent_id"]
    return calls("multi_agent_v1.wait_agent", targets=[agent], timeout_ms=60_000)


CODEX = Host(
    "codex",
    npm_programs.codex,
    npm_programs.CODEX,
    lambda prompt, resume: [
        "exec", *(["resume", resume] if resume else []), *CODEX_OPTIONS, prompt
    ],
    {"MODEL_KEY": "none"},
    (calls("exec_command", "I look.", cmd="make price"), calls("apply_patch", text=PATCH)),
    ("write shop.py",),
    "code 2",
    "mcp__ctx.recall",
    (calls("exec_command", cmd="sed -n 1,80p cart.py"), calls("apply_patch", text=UPDATE)),
    (
        calls("multi_agent_v1.spawn_agent", message=TASK),
        _wait_for_agent,
        # The next request would be too large: the conversation is compacted first.
        calls("exec_command", cmd="ls")._replace(input_tokens=260_000),
        "Counted.",
    ),
    (calls("exec_command", cmd="ls"), "There are three."),
    on_the_side=SUMMARY,
    settings=(".codex/config.toml", CODEX_SETTINGS),
    serving=serving_responses,
    is_imported=True,
)  # fmt: skip

COPILOT_TASK = {"description": "Count", "agent_type": "general-purpose", "mode": "sync"}
COPILOT = Host(
    "copilot",
    npm_programs.copilot,
    npm_programs.COPILOT,
    lambda prompt, resume: [
        "--allow-all-tools", "--no-auto-update", "--output-format", "json",
        *([f"--resume={resume}"] if resume else []), "-p", prompt,
    ],
    {
        "COPILOT_OFFLINE": "true",
        "COPILOT_AUTO_UPDATE": "false",
        "COPILOT_PROVIDER_BASE_URL": "{api}",
        "COPILOT_PROVIDER_API_KEY": "none",
        "COPILOT_MODEL": "gpt-4.1",
    },
    (
        Reply(
            ("I look.",),
            (
                Tool("bash", {"command": "make price", "description": "Runs make"}),
                Tool("create", {"path": "{shop.py}", "file_text": PRICE}),
            ),
        ),
        Reply(
            (),
            (
                Tool("edit", {"path": "{shop.py}", "old_str": "return 1", "new_str": "return 2"}),
                Tool("view", {"path": "{missing.py}"}),
            ),
        ),
    ),
    ("write shop.py", "write shop.py"),
    "exit code 2",
    "ctx-recall",
    (calls("view", path="{cart.py}"),),
    (calls("task", prompt=TASK, name="count", **COPILOT_TASK), "Counted."),
    (
        # Its subagent has one too.
        calls("task", prompt=f"Inner: {TASK}", name="inner", **COPILOT_TASK),
        calls("bash", **LS),
        "There are three.",
        "They are three.",
    ),
    compact="/compact",
)  # fmt: skip

GEMINI_SETTINGS = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
}
GEMINI = Host(
    "gemini",
    npm_programs.gemini,
    npm_programs.GEMINI,
    lambda prompt, resume: [
        "--yolo", "-m", "gemini-2.5-flash", "--output-format", "json", "-p", prompt,
        *(["--resume", resume] if resume else []),
    ],
    {
        "GEMINI_API_KEY": "none",
        "GOOGLE_GEMINI_BASE_URL": "{api}",
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
    },
    (
        calls("run_shell_command", "I look.", command="make price"),
        Reply(
            (),
            (
                Tool("write_file", {"file_path": "shop.py", "content": PRICE}),
                Tool("read_file", {"file_path": "missing.py"}),
            ),
        ),
    ),
    ("write shop.py",),
    "2",
    "mcp_ctx_recall",
    (calls("read_file", file_path="cart.py"),),
    (calls("invoke_agent", agent_name="generalist", prompt=TASK), "Counted."),
    (
        calls("run_shell_command", command="ls"),
        calls("complete_task", result="There are three."),
    ),
    settings=(".gemini/settings.json", json.dumps(GEMINI_SETTINGS)),
    serving=serving_gemini,
    is_imported=True,
)  # fmt: skip

OPENCODE_SETTINGS = {
    "autoupdate": False,
    "share": "disabled",
    "model": "scripted/scripted",
    "small_model": "scripted/scripted",
    "provider": {
        "scripted": {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": "{env:MODEL_URL}", "apiKey": "none"},
            "models": {
                "scripted": {"name": "scripted", "limit": {"context": 200_000, "output": 8_000}}
            },
        }
    },
}
OPENCODE = Host(
    "opencode",
    npm_programs.opencode,
    npm_programs.OPENCODE,
    lambda prompt, _: ["run", "--format", "json", prompt],
    {
        "MODEL_URL": "{api}",
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        # At its start it installs a package for plugins; ours needs none.
        "npm_config_fetch_retries": "0",
        "npm_config_registry": NOWHERE,
    },
    (
        Reply(
            ("I look.",),
            (
                Tool("bash", {"command": "make price", "description": "Runs make"}),
                Tool("write", {"filePath": "{shop.py}", "content": PRICE}),
            ),
        ),
        Reply(
            (),
            (
                Tool(
                    "edit",
                    {"filePath": "{shop.py}", "oldString": "return 1", "newString": "return 2"},
                ),
                Tool("read", {"filePath": "{missing.py}"}),
            ),
        ),
    ),
    ("write shop.py", "write shop.py"),
    "File not found",
    "ctx_recall",
    (calls("read", filePath="{cart.py}"),),
    (
        calls("task", description="Count prices", prompt=TASK, subagent_type="general"),
        # The next request would be too large: the conversation is compacted first.
        calls("bash", **LS)._replace(input_tokens=198_000),
        "Counted.",
    ),
    (calls("bash", **LS), "There are three."),
    on_the_side=SUMMARY,
    settings=(".config/opencode/opencode.json", json.dumps(OPENCODE_SETTINGS)),
)

QWEN_SETTINGS = {
    "security": {"auth": {"selectedType": "openai"}},
    "general": {"enableAutoUpdate": False},
    "privacy": {"usageStatisticsEnabled": False},
}
QWEN = Host(
    "qwen",
    npm_programs.qwen,
    npm_programs.QWEN,
    lambda prompt, resume: [
        "--yolo", "--output-format", "json", *(["--resume", resume] if resume else []), prompt
    ],
    {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": "{api}", "OPENAI_MODEL": "scripted"},
    (
        Reply(
            ("I look.",),
            (
                Tool(
                    "run_shell_command",
                    {"command": "make price", "description": "Runs make", "is_background": False},
                ),
                Tool("write_file", {"file_path": "{shop.py}", "content": PRICE}),
            ),
        ),
    ),
    ("write shop.py",),
    "Exit Code: 2",
    "mcp__ctx__recall",
    (calls("read_file", file_path="{cart.py}"),),
    (
        calls("agent", description="Count", prompt=TASK, subagent_type="general-purpose"),
        "Counting goes on.",
        # It is told when the subagent has ended.
        "Counted.",
    ),
    (calls("run_shell_command", **LS, is_background=False), "There are three."),
    compact="/compress",
    settings=(".qwen/settings.json", json.dumps(QWEN_SETTINGS)),
)  # fmt: skip


class User(NamedTuple):
    """A user of a host with ctx."""

    host: Host
    person: HostPerson

    def say(
        self, prompt: str, *replies: Answer, resume: str = "", **more: Any
    ) -> list[ChatRequest]:
        words = self.host.words(prompt, resume)
        replies = tuple(map(self._in_project, replies))
        host = self.host
        return self.person.play(words, host.variables, *replies, serving=host.serving, **more)

    def _in_project(self, reply: Answer) -> Answer:
        """With whole paths: `{shop.py}` is that of a file."""
        if not isinstance(reply, Reply):
            return reply
        project = self.person.project

        def filled(value: Any) -> Any:
            is_path = isinstance(value, str) and value[0] == "{" and value[-1] == "}"
            return str(project / value[1:-1]) if is_path else value

        tools = [
            Tool(tool.name, {name: filled(each) for name, each in tool.input.items()})
            for tool in reply.tools
        ]
        return reply._replace(tools=tuple(tools))


@pytest.fixture(params=[CODEX, COPILOT, GEMINI, OPENCODE, QWEN], ids=lambda host: host.name)
def user(request: pytest.FixtureRequest, surroundings: Path, tmp_path: Path) -> Iterator[User]:
    """The test fails if a hook logs an error."""
    host: Host = request.param
    program = host.program()
    project = tmp_path / "shop"
    project.mkdir()
    git("init", "-q", "-b", "main", cwd=project)
    person = HostPerson(surroundings, project, program, host.version)
    person.adds("Releases have names.")
    name, settings = host.settings
    if name:
        (surroundings / name).parent.mkdir(parents=True)
        (surroundings / name).write_text(settings)
    person.ctx("install", "--host", host.name)
    yield User(host, person)
    person.leaves()
    assert person.complaints() == []


def test_what_one_session_remembers_is_given_to_the_next(user: User) -> None:
    host, person = user
    (person.project / "cart.py").write_text("total = 0\n")
    person.ctx("add", "decision", DECISION, "--no-tier", "--mention", "cart.py")
    # Some show their model `<` as an entity, which it takes for the form of a command.
    is_escaped = host in (GEMINI, QWEN)
    command = escape(REMEMBER, quote=False) if is_escaped else REMEMBER
    first = user.say("Add the price, please.", *host.work, f"Done. {command}")
    assert "Releases have names." in first[0].text
    assert ("&lt;ctx:remember" in first[0].text) == is_escaped
    assert host.failure in "\n".join(first[-1].results)
    (session,) = person.sessions(1)
    assert session["host"] == host.name
    steps = [" ".join(step) for step in person.steps(session["id"])]
    expected = ["command make price", "prompt Add the price, please.", *host.steps]
    assert [step for step in steps if not step.startswith("say ")] == expected
    assert {"say Done.", "say I look."} <= set(steps)
    if host.is_imported:
        replay = person.ctx("sessions", "replay", session["id"])["steps"]
        (command,) = [step for step in replay if step["kind"] == "command"]
        assert (command["ok"], command["exit_code"]) == (False, 2)
        # A resumed conversation has its first prompt and its context, and gets only what is new.
        resumed = user.say("Go on.", "On it.", resume=session["id"])
        assert resumed[0].text.count("Releases have names.") == 1
        assert FACT in resumed[0].text
    recall = calls(host.recall, query="deploys Fridays")
    second = user.say("When do deploys happen?", recall, *host.read, "On Fridays.")
    assert FACT in second[0].text
    # Some list the tools of servers in a text, or let the model search for them.
    assert {host.recall, "tool_search"} & {*second[0].tools} or host.recall in second[0].text
    assert FACT in second[1].results[0]
    assert "Added `price`" in second[0].text
    # What memory knows about a file comes when it is read, and once.
    assert DECISION not in second[1].text
    assert f"## Before you edit cart.py\n- [decision] {DECISION}" in second[2].text
    assert second[-1].text.count(DECISION) == 1
    newest, *_ = person.sessions(2)
    # A call of our own tools is no step.
    of_tools = [step for step in person.steps(newest["id"]) if step[0] not in ("say", "prompt")]
    assert [step for step in of_tools if "cart.py" not in step[1]] == []
    if host.is_imported:
        done = person.ctx("import", "--from", host.name)
        assert (done["sessions"], done["steps"]) == ([], 0)


def test_only_the_persons_words_become_the_users(user: User) -> None:
    host, person = user
    subagent = Subagent(TASK, host.subagent)
    user.say(PROMPT, *host.delegates, subagent=subagent, on_the_side=host.on_the_side)
    session = check_words(person)
    if host is GEMINI:
        # The conversation is compressed before its next request: it has two prompts, and is large.
        large = calls("list_directory", dir_path=".")._replace(input_tokens=985_000)
        asked = user.say("Go on.", large, "On it.", resume=session, on_the_side=SNAPSHOT)
        assert SUMMARY in asked[-1].text
        assert PROMPT not in asked[-1].text
    elif host.compact:
        user.say(host.compact, SNAPSHOT if host is QWEN else SUMMARY, resume=session)
        user.say("Go on.", "On it.", resume=session)
    check_words(person)
    steps = person.ctx("sessions", "replay", session)["steps"]
    if host not in (GEMINI, QWEN):
        assert ("recap", SUMMARY) in [(step["kind"], step["text"]) for step in steps]
    commands = [step for step in steps if step["kind"] == "command"]
    assert [(step["text"], bool(step["agent"])) for step in commands] == [("ls", True)]
    if host is QWEN:
        assert ("mark", "compacted") in [(step["kind"], step["text"]) for step in steps]
    check_context(user.say("Hello.", "Hello.")[0].text)
    if host is CODEX:
        # The transcripts of subagents are no sessions, neither here nor in an import.
        assert person.ctx("import", "--from", "codex")["sessions"] == []
    assert len(person.sessions(2)) == 2


@pytest.mark.parametrize("user", [COPILOT], indirect=True, ids=["copilot"])
def test_a_turn_that_is_compacted_has_its_context(user: User) -> None:
    def work(request: ChatRequest) -> Reply:
        # The model is asked for the summary while it works.
        is_summary = "create a detailed summary" in request.text
        return Reply((SUMMARY,), ()) if is_summary else calls("bash", **LS)

    large = calls("bash", **LS)._replace(input_tokens=61_000)
    asked = user.say(PROMPT, large, work, work, "Done.")
    assert SUMMARY in asked[-1].text
    assert asked[-1].text.count("Releases have names.") == 1


@pytest.mark.parametrize("user", [GEMINI], indirect=True, ids=["gemini"])
def test_the_extension_of_this_repository_does_what_an_installation_does(user: User) -> None:
    host, person = user
    person.ctx("uninstall", "--host", "gemini")
    person.puts_on_path("ctx", [CTX])
    install = ["extensions", "install", str(EXTENSION), "--consent", "--skip-settings"]
    person.play(install, host.variables, serving=host.serving)
    [request, *_] = user.say("What do we name?", "Releases.")
    assert "Releases have names." in request.text
    (session,) = person.sessions(1)
    assert session["host"] == "gemini"
    assert ("say", "Releases.") in person.steps(session["id"])
