"""The plugin of `ctx install --plugin` and of this repository, loaded by a real client."""

from pathlib import Path

import pytest

from tests.e2e.claude_code.api import Reply, Tool
from tests.e2e.claude_code.client import CTX, Person

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
