"""The plugin: one folder with all files, generated on request."""

import json
import re
from pathlib import Path

import pytest

from ctx import __version__, disk
from ctx.agents.claude_code import plugin
from ctx.agents.host_setup import skill
from ctx.errors import DiskFailure, PathRefused
from ctx.hook_files.spool import EVENTS

FILES = plugin.files()


def contents(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_text() for path in files}


def test_the_plugin_contains_the_expected_files() -> None:
    assert sorted(FILES) == [
        ".claude-plugin/marketplace.json",
        ".claude-plugin/plugin.json",
        ".mcp.json",
        "README.md",
        "commands/recall.md",
        "commands/remember.md",
        "commands/status.md",
        "hooks/hooks.json",
        "skills/ctx/SKILL.md",
        "skills/ctx/commands.md",
        "skills/ctx/examples.md",
        "skills/ctx/query-language.md",
    ]
    manifest = json.loads(FILES[".claude-plugin/plugin.json"])
    assert (manifest["name"], manifest["version"]) == ("ctx", __version__)
    marketplace = json.loads(FILES[".claude-plugin/marketplace.json"])
    assert [(each["name"], each["source"]) for each in marketplace["plugins"]] == [("ctx", "./")]
    assert {name: FILES[f"skills/ctx/{name}"] for name in skill.PAGES} == skill.files()


def test_its_hooks_run_plain_ctx() -> None:
    hooks = json.loads(FILES["hooks/hooks.json"])["hooks"]
    commands = {
        event: [hook["command"] for group in groups for hook in group["hooks"]]
        for event, groups in hooks.items()
    }
    # Only events that every client knows: an older one would drop all hooks.
    assert commands == {
        event: [f"ctx hook {word} || true"]
        for word, event in EVENTS.items()
        if word != "post-tool-use-failure"
    }


@pytest.mark.parametrize("name", plugin.COMMANDS)
def test_a_slash_command_has_a_description(name: str) -> None:
    text = FILES[f"commands/{name}"]
    head = re.match(r"---\ndescription: ([^:\n]+)\n(.*?)---\n", text, re.DOTALL)
    assert head is not None
    assert ("$ARGUMENTS" in text) == ("argument-hint" in head[2])
    # What the user typed never becomes a part of a shell's line.
    for run in re.findall(r"!`([^`]*)`", text):
        assert "$" not in run
        assert f"Bash({run}:*)" in head[2]


@pytest.mark.parametrize("there", [True, False])
def test_the_plugin_is_written_once_and_then_current(tmp_path: Path, there: bool) -> None:
    folder = tmp_path / "plugins" / "ctx"
    if there:
        folder.mkdir(parents=True)
    assert set(plugin.write(str(folder))) == {str(folder / name) for name in FILES}
    assert contents(folder) == FILES
    modes = {path.stat().st_mode & 0o777 for path in folder.rglob("*") if path.is_file()}
    assert modes == {disk.shared_mode()} != {0o600}
    assert plugin.write(str(folder)) == ()


def test_an_older_plugin_is_updated(folder: Path) -> None:
    plugin.write(str(folder))
    (folder / "README.md").write_text("Older.\n")
    (folder / "skills" / "ctx" / "SKILL.md").write_text("Mine.\n")
    (folder / "icon.png").write_text("Mine too.\n")
    assert set(plugin.write(str(folder))) == {
        str(folder / "README.md"),
        str(folder / "skills" / "ctx" / "SKILL.md"),
    }
    beside = {"skills/ctx/SKILL.md.edited": "Mine.\n", "icon.png": "Mine too.\n"}
    assert contents(folder) == {**FILES, **beside}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("notes.txt", "Somebody's.\n"),
        (".claude-plugin/plugin.json", '{"name": "another"}'),
        (".claude-plugin/plugin.json", "{"),
    ],
)
def test_a_folder_with_other_files_is_refused(folder: Path, name: str, text: str) -> None:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    for attempt in (plugin.planned_paths, plugin.write):
        with pytest.raises(PathRefused, match="does not contain our plugin"):
            attempt(str(folder))
    assert contents(folder) == {name: text}


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("Somebody's.\n")
    with pytest.raises(PathRefused, match="is not a folder"):
        plugin.write(str(tmp_path / "file"))
    with pytest.raises(DiskFailure, match="while writing the plugin"):
        plugin.write(str(tmp_path / "file" / "below"))
