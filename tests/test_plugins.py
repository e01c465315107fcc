"""The packages for agents in this repository are what `scripts/plugins` writes."""

import json
import tomllib
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

from ctx import __version__
from ctx.agents.gemini.setup import SETUP

ROOT = Path(__file__).parents[1]


def written() -> dict[str, str]:
    """What the script writes, by path."""
    loader = SourceFileLoader("plugins_script", str(ROOT / "scripts" / "plugins"))
    spec = spec_from_loader("plugins_script", loader)
    assert spec is not None
    script = module_from_spec(spec)
    loader.exec_module(script)
    files: dict[str, str] = script.files()
    return files


FILES = written()


def test_the_repository_has_what_the_script_writes() -> None:
    folders = (ROOT / ".claude-plugin", ROOT / "plugins")
    present = {
        str(path.relative_to(ROOT)): path.read_text("utf-8")
        for folder in folders
        for path in folder.rglob("*")
        if path.is_file()
    }
    assert sorted(present) == sorted(FILES), "run `make plugins`"
    assert present == FILES, "run `make plugins`"


def test_the_marketplace_names_the_folder_of_the_plugin() -> None:
    offered = json.loads(FILES[".claude-plugin/marketplace.json"])["plugins"]
    assert [each["source"] for each in offered] == ["./plugins/claude-code"]
    manifest = json.loads(FILES["plugins/claude-code/.claude-plugin/plugin.json"])
    assert manifest["version"] == __version__


def test_the_extension_of_gemini_has_the_hooks_that_ctx_install_registers() -> None:
    manifest = json.loads(FILES["plugins/gemini-cli/gemini-extension.json"])
    assert manifest["version"] == __version__
    assert manifest["mcpServers"] == {"ctx": {"command": "ctx", "args": ["mcp"]}}
    hooks = json.loads(FILES["plugins/gemini-cli/hooks/hooks.json"])["hooks"]
    assert {event: group[0]["hooks"][0]["command"] for event, group in hooks.items()} == {
        spec.event: f"ctx hook {spec.word} --host gemini || true" for spec in SETUP.hooks
    }


def test_slash_commands_of_gemini_are_toml_with_its_placeholders() -> None:
    names = [name for name in FILES if name.endswith(".toml")]
    assert len(names) == 3
    for name in names:
        command = tomllib.loads(FILES[name])
        assert command["description"]
        assert "$ARGUMENTS" not in command["prompt"]
        assert "!`" not in command["prompt"]
    assert "{{args}}" in FILES["plugins/gemini-cli/commands/ctx/recall.toml"]
    assert "!{ctx status}" in FILES["plugins/gemini-cli/commands/ctx/status.toml"]
