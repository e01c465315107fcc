"""What `ctx install` does to a client: hooks, the plugin, the MCP server and permissions."""

import json
import re
from pathlib import Path

import pytest

from tests.e2e.claude_code.api import Reply, Script, Tool, serving
from tests.e2e.claude_code.client import CTX, Person
from tests.e2e.claude_code.conftest import ANY_CLIENT

KNOWN = '<ctx:remember type="fact" tags="tier:reference">Known.</ctx:remember>'


def test_install_and_uninstall_restore_the_settings(newcomer: Person) -> None:
    settings = newcomer.home / ".claude" / "settings.json"
    settings.parent.mkdir()
    own = '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}}\n'
    settings.write_text(own)
    seen = newcomer.ctx("install")["clients"]
    assert [client["version"] for client in seen] == [newcomer.client.version]
    installed = settings.read_text()
    newcomer.ctx("install")
    assert settings.read_text() == installed

    first = newcomer.say("Remember.", KNOWN)
    assert "\n- ctx: " in first.request.injected, "the skill"
    assert [*newcomer.nodes()] == ["Known."]
    assert newcomer.ctx("doctor")["problems"] == 0

    newcomer.ctx("uninstall")
    assert settings.read_text() == own
    second = newcomer.say("What do you know?", KNOWN.replace("Known", "Lost"))
    assert "ctx" not in second.request.injected_at("SessionStart")
    assert "\n- ctx: " not in second.request.injected
    assert "Known." not in second.request.text
    assert [*newcomer.nodes()] == ["Known."]


def test_ctx_can_be_installed_for_one_project(newcomer: Person) -> None:
    newcomer.puts_on_path("ctx", [CTX])
    newcomer.ctx("install", "--project")
    assert not (newcomer.home / ".claude" / "settings.json").exists()
    assert _is_remembered(newcomer)

    newcomer.project = newcomer.home / "elsewhere"
    newcomer.project.mkdir()
    assert newcomer.say("Hello.", "Hi.").request.injected_at("SessionStart") == ""


def test_two_installations_give_the_context_once(person: Person) -> None:
    """The project has its own settings, and the user has installed ctx for all projects."""
    person.puts_on_path("ctx", [CTX])
    person.ctx("install", "--project")
    assert _is_remembered(person)
    asked = person.say("And?", '<ctx:recall query="known"/>')
    then = person.say("Well?", "Yes.", resume=asked.session)
    assert then.request.newest.injected.count("## Recall Results") == 1


def test_a_missing_hook_program_does_not_stop_the_client(person: Person) -> None:
    settings = person.home / ".claude" / "settings.json"
    registered = settings.read_text()
    assert "/claude_code/entry.py" in registered
    settings.write_text(registered.replace("/claude_code/entry.py", "/claude_code/gone.py"))
    assert person.say("Hello.", "Hi.").result == "Hi."


def _is_remembered(person: Person) -> bool:
    person.say("Remember.", KNOWN)
    assert [*person.nodes()] == ["Known."]
    given = person.say("What do you know?", "That.").request
    return given.injected.count("Known.") == 1 and given.injected.count("<!-- ctx:end -->") == 1


ROOT = Path(__file__).parents[3]
REMEMBERS = '<ctx:remember type="fact" tags="tier:reference">We deploy on Tuesdays.</ctx:remember>'


@pytest.fixture
def plugin(newcomer: Person) -> str:
    newcomer.puts_on_path("ctx", [CTX])
    folder = str(newcomer.home / "plugin")
    newcomer.ctx("install", "--plugin", folder)
    return folder


def test_the_client_validates_the_plugin(newcomer: Person, plugin: str) -> None:
    assert "Validation passed" in newcomer.claude("plugin", "validate", plugin)


def test_hooks_skill_and_commands_of_the_plugin_work(newcomer: Person, plugin: str) -> None:
    loaded = ["--plugin-dir", plugin]
    first = newcomer.say("/ctx:remember We deploy on Tuesdays.", REMEMBERS, options=loaded)
    assert "We deploy on Tuesdays." in first.request.text
    assert '<ctx:remember type="fact" tags="tier:reference">' in first.request.text
    assert "\n- ctx:ctx: " in first.request.injected, "the skill"

    second = newcomer.say("/ctx:status", "One fact.", options=loaded)
    assert "] (agent) We deploy on Tuesdays.\n" in second.request.injected_at("SessionStart")
    assert "Nodes: 1 (" in second.request.text


def test_the_plugin_of_this_repository_is_installed_from_its_marketplace(newcomer: Person) -> None:
    newcomer.puts_on_path("ctx", [CTX])
    assert "Validation passed" in newcomer.claude("plugin", "validate", str(ROOT))
    newcomer.claude("plugin", "marketplace", "add", str(ROOT))
    newcomer.claude("plugin", "install", "ctx@ctx-memory")
    newcomer.ctx("add", "--type=fact", "We deploy on Tuesdays.")
    tool = "mcp__plugin_ctx_ctx__recall"
    said = newcomer.say(
        "When do we deploy?",
        Reply(("Let me look.",), (Tool(tool, {"query": "deploy"}),)),
        "On Tuesdays.",
        options=["--allowedTools", tool],
    )
    assert "We deploy on Tuesdays." in said.request.injected_at("SessionStart")
    assert "We deploy on Tuesdays." in said.requests[1].newest.text


PREFIX = "mcp__ctx__"
TOOLS = ("recall", "remember", "pack", "timeline", "forget")


def test_the_client_lists_and_calls_the_tools(person: Person) -> None:
    servers = {"ctx": {"command": str(CTX), "args": ["mcp"]}}
    config = person.home / "mcp.json"
    config.write_text(json.dumps({"mcpServers": servers}))
    person.adds("Payments are retried three times, because banks are slow.")
    allowed = ",".join(f"{PREFIX}{name}" for name in TOOLS)
    said = person.say(
        "How often are payments retried?",
        Reply(("Let me look.",), (Tool(f"{PREFIX}recall", {"query": "payments retried"}),)),
        Reply(("And keep this.",), (Tool(f"{PREFIX}remember", {"text": "The bank locks at 10."}),)),
        "Three times.",
        options=["--mcp-config", str(config), "--strict-mcp-config", "--allowedTools", allowed],
    )
    # Newer clients name the tools of a server, and load the rest of them when they are needed.
    first = said.request
    listed = f"{first.text} {first.injected} {' '.join(first.tools)}"
    assert [name for name in TOOLS if f"{PREFIX}{name}" not in listed] == []
    assert "banks are slow" in said.requests[1].newest.text
    assert "tier:reference" in said.requests[2].newest.text
    kept = person.nodes()["The bank locks at 10."]
    assert (kept["source"], kept["tags"]) == ("agent", ["project:shop", "tier:reference"])
    given = person.ctx("why", said.session)
    assert given["session"] == said.session


DOCS = Path(__file__).parents[3] / "docs" / "claude-code.md"


def rule() -> dict[str, dict[str, list[str]]]:
    """The rule that the docs recommend for the settings."""
    blocks = re.findall(r"```json\n(.+?)```", DOCS.read_text(), re.DOTALL)
    (found,) = [each for each in map(json.loads, blocks) if "permissions" in each]
    return found  # type: ignore[no-any-return]


def in_a_shell(person: Person, command: str) -> str:
    """The tool result of a command for which nobody could be asked."""
    tool = Tool("Bash", {"command": command, "description": "Ask memory"})
    script = Script([Reply((), (tool,)), "Done."], ())
    with serving(script) as address:
        person.claude("-p", "Look it up.", "--output-format", "json", api=address)
    return [request for request in script.requests if request.tools][-1].newest.text


@ANY_CLIENT
def test_reading_memory_in_a_shell_needs_the_rule(person: Person) -> None:
    person.puts_on_path("ctx", (CTX,))
    node = person.adds("Deploys run on Mondays.", "--type=fact", "--tag=tier:off-context")
    assert "Deploys run" not in in_a_shell(person, "ctx recall deploys")
    path = person.home / ".claude" / "settings.json"
    settings = json.loads(path.read_text())
    path.write_text(json.dumps(settings | rule()))
    # The client looks at each of them, and runs all or none.
    asked = f"ctx recall deploys && ctx search deploys && ctx show {node[:12]}"
    assert in_a_shell(person, asked).count("Deploys run on Mondays.") == 3
    for other in (
        f"ctx delete {node[:12]} --yes",
        "ctx query deploys --output notes.txt",
        "ctx --set search.vectors=false recall deploys",
    ):
        assert "approval" in in_a_shell(person, other)
    assert [*person.nodes()] == ["Deploys run on Mondays."]
