"""`ctx install --host` and `ctx uninstall --host`."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from ctx.agents.host_setup import hook_commands, known_setups
from ctx.cli import settings as surroundings_module
from ctx.cli.output import Output
from tests.conftest import Ctx

AGENTS = Path(__file__).parents[2] / "src" / "ctx" / "agents"
GOLDEN = Path(__file__).parents[1] / "golden"
OTHERS = [host.name for host in known_setups.SETUPS]
WITH_HOOKS = [host.name for host in known_setups.SETUPS if host.hook_commands()]


@pytest.fixture(autouse=True)
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH without hosts."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    for name in ("CODEX_HOME", "GEMINI_CLI_HOME", "COPILOT_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture
def home(surroundings: Path, folder: Path) -> Path:
    return surroundings


def program(path: Path, line: str = "exit 0") -> None:
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)


def tree(home: Path) -> dict[str, bytes | str | None]:
    """Everything in a home but our own folder."""
    found: dict[str, bytes | str | None] = {}
    for path in home.rglob("*"):
        name = str(path.relative_to(home))
        if name != ".ctx" and not name.startswith(".ctx/"):
            found[name] = os.readlink(path) if path.is_symlink() else None
            if path.is_file() and not path.is_symlink():
                found[name] = path.read_bytes()
    return found


TOML = """\
model = "m" # mine
[mcp_servers.other]
command = 'x'
# the end"""


def test_in_and_out_again(ctx: Ctx, home: Path) -> None:
    dotfiles = home / "dotfiles"
    (home / ".codex").mkdir()
    dotfiles.mkdir()
    theirs = {"hooks": [{"type": "command", "command": "make lint"}]}
    hooks = json.dumps({"hooks": {"Stop": [theirs]}})
    # A link stays a link.
    for file, text in (("hooks.json", hooks), ("config.toml", TOML)):
        (dotfiles / file).write_text(text)
        (home / ".codex" / file).symlink_to(dotfiles / file)
    before = tree(home)
    ran = ctx("install", "--host", "codex,cursor")
    assert ran.code == 0, ran.err
    assert "Tried" in ran.out
    assert (home / ".agents" / "skills" / "ctx" / "SKILL.md").is_file()
    assert (home / ".codex" / "hooks.json").is_symlink()
    # Codex keeps its review of a hook under the position in the list.
    groups = json.loads((dotfiles / "hooks.json").read_text())["hooks"]["Stop"]
    assert (groups[0], len(groups)) == (theirs, 2)
    assert "entry.py" in json.dumps(groups[1])
    assert "trusted_hash" not in (dotfiles / "config.toml").read_text()
    installed = tree(home)
    again = ctx("install", "--host", "codex,cursor", "--format", "json").json
    assert tree(home) == installed
    states = {part["state"] for host in again["hosts"] for part in host["parts"]}
    assert states == {"current"}
    ran = ctx("uninstall", "--host", "codex,cursor")
    assert ran.code == 0, ran.err
    assert tree(home) == before
    assert ctx("uninstall", "--host", "codex,cursor").out == "Nothing to remove.\n"


@pytest.mark.parametrize("name", WITH_HOOKS)
def test_registered_hooks_run(ctx: Ctx, home: Path, folder: Path, name: str) -> None:
    """Each as the host runs it: in the project, with its payload."""
    printed = ctx("install", "--host", name, "--print", "--format", "json").json
    written = "".join(part["text"] for part in printed["hosts"][0]["by_hand"])
    host = known_setups.setup_named(name)
    for word, command in host.hook_commands().items():
        words = shlex.split(command.partition(" || ")[0])
        assert words == [sys.executable, "-I", "-S", str(AGENTS / name / "entry.py"), word]
        assert json.dumps(words[3])[1:-1] in written
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            input=json.dumps(host.sample_payload(word, str(folder))).encode(),
            capture_output=True,
            cwd=folder,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, b""), word
    assert os.listdir(home / ".ctx" / "spool")


@pytest.mark.parametrize("name", WITH_HOOKS)
def test_a_start_says_so_if_ctx_is_gone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    host = known_setups.setup_named(name)
    printed = {
        word: subprocess.check_output(["/bin/sh", "-c", command], stderr=subprocess.DEVNULL)
        for word, command in host.hook_commands().items()
    }
    assert hook_commands.GONE in json.dumps(json.loads(printed.pop("session-start")))
    assert set(printed.values()) == {b""}
    # The command with which an agent starts is still ours, and is replaced or removed.
    assert host.is_ours(host.command("session-start"))


def test_a_hook_before_a_tool_is_only_registered_in_codex(ctx: Ctx, home: Path) -> None:
    others = ",".join(name for name in WITH_HOOKS if name != "codex")
    printed = ctx("install", "--host", others, "--print").out.lower()
    assert '"posttooluse"' in printed
    assert '"pretooluse"' not in printed
    assert '"beforetool"' not in printed


def test_a_file_that_cannot_be_edited_is_left_alone(ctx: Ctx, home: Path) -> None:
    """And nothing is written for any other host."""
    for name, file, text, problem in (
        ("codex", ".codex/hooks.json", '{"hooks": [1,]}', "the hooks should be an object"),
        ("codex", ".codex/config.toml", "mcp_servers = 1", "cannot be changed"),
        ("gemini", ".gemini/settings.json", '{"mcpServers": 1}', "should be an object"),
        ("qwen", ".qwen/settings.json", "\x00", "not a JSON value"),
        ("copilot", ".copilot/hooks/ctx.json", '{"hooks": {}}', "not written by ctx"),
        ("opencode", ".config/opencode/plugins/ctx.js", "export {}", "not written by ctx"),
        ("goose", ".config/goose/config.yaml", "extensions: {}", "cannot edit YAML"),
        ("cursor", ".cursor/mcp.json", '{"mcpServers": {"ctx": {"command": "x"}}}', "not an entry"),
        ("zed", ".config/zed/settings.json", "x" * (5 * 2**20), "too large"),
    ):
        path = home / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        before = tree(home)
        ran = ctx("install", "--host", f"windsurf,{name}")
        assert ran.code == 1
        assert f"error E027: {path}" in ran.err
        assert problem in ran.err
        assert tree(home) == before
        assert not (home / ".ctx").exists()
        path.unlink()


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_cannot_be_read(ctx: Ctx, home: Path) -> None:
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text("{}")
    path.chmod(0)
    assert ctx("install", "--host", "cursor").code == 1


def test_a_hook_that_does_not_work_is_not_registered(
    ctx: Ctx, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    ran = ctx("install", "--host", "cursor,copilot")
    assert ran.code == 1
    assert "error E026: The hook session-start for Copilot CLI does not work" in ran.err
    assert os.listdir(home) == []


def test_an_unknown_host(ctx: Ctx, home: Path) -> None:
    ran = ctx("install", "--host", "codx")
    assert ran.code == 2
    assert "ctx does not know the host codx." in ran.err
    assert "Did you mean `codex`?" in ran.err
    assert ctx("uninstall", "--host", "codx").code == 2
    assert ctx("install", "--host", ", ,").code == 2
    assert ctx("install", "--host", "codex", "--project").code == 2
    assert ctx("install", "--host", "other").code == 2
    assert os.listdir(home) == []


def test_a_dry_run_and_printing_change_nothing(ctx: Ctx, home: Path) -> None:
    path = home / ".codex" / "config.toml"
    path.parent.mkdir()
    path.write_text("a = 1\n")
    before = tree(home)
    ran = ctx("install", "--host", "codex", "--dry-run")
    assert ran.code == 0
    assert f"--- {path}\n+++ {path}\n@@ -1 +1,5 @@\n a = 1\n+\n+[mcp_servers.ctx]\n" in ran.out
    assert "Nothing changed. Planned changes:" in ran.out
    assert re.search(r"Hooks +~/.codex/hooks.json +\d added\n", ran.out)
    printed = ctx("install", "--host", "codex", "--print")
    assert printed.out.startswith("Store: ~/.ctx/store.db\n\nCodex: add to ~/.codex/hooks.json:\n")
    assert "[mcp_servers.ctx]\ncommand = " in printed.out
    answer = ctx("install", "--host", "codex", "--print", "--format", "json").json
    by_hand = {each["path"]: each["text"] for each in answer["hosts"][0]["by_hand"]}
    hooks = json.loads(by_hand[str(home / ".codex/hooks.json")])["hooks"]
    assert {"SessionStart", "UserPromptSubmit", "PostToolUse", "PreCompact", "Stop"} <= set(hooks)
    assert tomllib.loads(by_hand[str(path)])["mcp_servers"]["ctx"]["args"][-1] == "mcp"
    other = ctx("install", "--host", "other", "--print").out
    assert json.loads(other[other.index("{") :])["mcpServers"]["ctx"]["args"][-1] == "mcp"
    assert tree(home) == before


def test_time_limits_are_in_the_units_of_the_host(ctx: Ctx, home: Path) -> None:
    words = ("install", "--host", "codex,gemini,qwen", "--print", "--format", "json")
    printed = [part for host in ctx(*words).json["hosts"] for part in host["by_hand"]]

    def limits(file: str) -> dict[str, Any]:
        text = next(part["text"] for part in printed if part["path"] == str(home / file))
        hooks = json.loads(text)["hooks"]
        return {event: groups[0]["hooks"][0]["timeout"] for event, groups in hooks.items()}

    # Codex warns at every start about more than three seconds for the end of a session.
    assert limits(".codex/hooks.json")["SessionEnd"] == 3
    assert limits(".gemini/settings.json") == {
        "SessionStart": 10_000,
        "BeforeAgent": 10_000,
        "AfterTool": 10_000,
        "AfterAgent": 10_000,
        "SessionEnd": 10_000,
    }
    # Qwen Code reads a thousand and more as milliseconds.
    assert set(limits(".qwen/settings.json").values()) == {10}


# Which hosts


def answer_with(monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    monkeypatch.setattr(Output, "is_interactive", property(lambda _: True))
    monkeypatch.setattr(surroundings_module, "read_line", lambda: line)


def test_without_a_terminal_it_is_claude_code_alone(ctx: Ctx, home: Path, programs: Path) -> None:
    program(programs / "codex")
    assert ctx("install", "--no-hooks").code == 0
    assert sorted(os.listdir(home)) == [".claude", ".ctx"]


def test_on_a_terminal_the_user_is_asked(
    ctx: Ctx, home: Path, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(programs / "codex")
    (home / ".cursor").mkdir()
    (home / ".claude").mkdir()
    for line, is_wanted in (("n", False), ("", True)):
        answer_with(monkeypatch, line)
        ran = ctx("install", "--no-hooks")
        assert ran.code == 0
        assert "On this machine: Codex, Cursor. Install ctx for them too? [Y/n]" in ran.err
        assert (home / ".claude" / "skills" / "ctx" / "SKILL.md").exists()
        assert (home / ".codex" / "config.toml").exists() is is_wanted
        assert (home / ".cursor" / "mcp.json").exists() is is_wanted
    # Nothing to ask again: they are updated.
    assert "[Y/n]" not in ctx("install", "--no-hooks").err


def test_a_machine_without_claude_code(
    ctx: Ctx, home: Path, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(programs / "gemini")
    answer_with(monkeypatch, "y")
    ran = ctx("install", "--no-hooks")
    assert "On this machine: Gemini CLI. Install ctx for them? [Y/n]" in ran.err
    assert sorted(os.listdir(home)) == [".agents", ".ctx", ".gemini"]


def test_every_host_on_this_machine(ctx: Ctx, home: Path, programs: Path) -> None:
    program(programs / "gemini")
    (home / ".cursor").mkdir()
    (home / ".claude").mkdir()
    answer = ctx("install", "--all", "--no-hooks", "--format", "json").json
    assert [host["host"] for host in answer["hosts"]] == ["gemini", "cursor"]
    assert [part["what"] for part in answer["claude_code"]["parts"]] == ["store", "skill"]
    ran = ctx("uninstall", "--all")
    assert ran.code == 0
    assert "Claude Code:\n" in ran.out
    # The folder of Claude Code is removed if it is empty, and so are those of others.
    assert set(tree(home)) <= {".cursor"}


# The skill


def test_the_skill_stays_while_a_host_reads_it(ctx: Ctx, home: Path) -> None:
    page = home / ".agents" / "skills" / "ctx" / "SKILL.md"
    assert ctx("install", "--host", "copilot,qwen", "--no-hooks").code == 0
    assert page.exists()
    assert ctx("uninstall", "--host", "copilot").code == 0
    assert page.exists()
    page.write_text("mine\n")
    ran = ctx("uninstall", "--host", "qwen")
    assert "SKILL.md: kept, because you changed it. --force removes it too." in ran.err
    assert page.read_text() == "mine\n"
    assert ctx("uninstall", "--host", "qwen", "--force").code == 0
    assert tree(home) == {}


def test_opencode_reads_the_skill_of_claude_code(ctx: Ctx, home: Path) -> None:
    assert ctx("install", "--no-hooks").code == 0
    assert ctx("install", "--host", "opencode", "--no-hooks").code == 0
    assert not (home / ".agents").exists()
    assert ctx("install", "--host", "opencode,copilot", "--no-hooks").code == 0
    assert (home / ".agents" / "skills" / "ctx" / "SKILL.md").exists()


# The MCP server of Claude Code

STATE = {"numStartups": 3, "mcpServers": {"other": {"command": "x"}}}


def state_of_server(printed: str) -> str:
    found = re.search(r"^ *MCP +~/.claude.json +(.+)$", printed, re.MULTILINE)
    return found[1] if found else ""


def servers(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text())["mcpServers"])


def test_the_mcp_server_is_offered_once(
    ctx: Ctx, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = "Register ctx as an MCP server too, with tools to search? [y/N]"
    state = home / ".claude.json"
    state.write_text(json.dumps(STATE, indent=2))
    # A program cannot answer.
    assert question not in ctx("install", "--no-hooks").err
    answer_with(monkeypatch, "n")
    assert question not in ctx("install", "--no-hooks", "--dry-run").err
    assert question in ctx("install", "--no-hooks").err
    assert question not in ctx("install", "--no-hooks").err
    assert json.loads(state.read_text()) == STATE
    assert "MCP" not in ctx("doctor").out
    (home / ".ctx" / "answered").unlink()
    answer_with(monkeypatch, "y")
    ran = ctx("install", "--no-hooks")
    assert question in ran.err
    assert state_of_server(ran.out) == "added"
    assert list(servers(state)) == ["other", "ctx"]
    assert servers(state)["ctx"]["args"][-1] == "mcp"
    assert state_of_server(ctx("install", "--no-hooks").out) == "up to date"
    assert "the server is in ~/.claude.json, up to date" in ctx("doctor").out


def test_the_mcp_server_is_registered_and_removed(ctx: Ctx, home: Path) -> None:
    state = home / ".claude.json"
    state.write_text(json.dumps(STATE, indent=2))
    planned = ctx("install", "--no-hooks", "--mcp", "--dry-run").out
    assert '+    "ctx": {' in planned
    assert json.loads(state.read_text()) == STATE
    assert '"args": [\n        "mcp"' in ctx("install", "--no-hooks", "--mcp", "--print").out
    assert ctx("install", "--no-hooks", "--mcp").code == 0
    state.write_text(state.read_text().replace('"stdio"', '"other"'))
    assert "~/.claude.json has another MCP server of ctx." in ctx("doctor").out
    # An update needs no option.
    assert state_of_server(ctx("install", "--no-hooks").out) == "updated"
    assert '-    "ctx": {' in ctx("uninstall", "--dry-run").out
    assert state_of_server(ctx("uninstall").out) == "removed"
    assert json.loads(state.read_text()) == STATE
    assert "MCP" not in ctx("uninstall").out
    state.write_text("{")
    broken = ctx("install", "--no-skill", "--no-hooks", "--mcp")
    assert broken.code != 0
    assert ".claude.json" in broken.err
    assert state.read_text() == "{"


def test_the_mcp_server_in_other_places(
    ctx: Ctx, home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ctx("install", "--project", "--no-hooks", "--mcp").code == 0
    assert servers(project / ".mcp.json") == {"ctx": {"command": "ctx", "args": ["mcp"]}}
    assert ctx("uninstall", "--project").code == 0
    assert not (project / ".mcp.json").exists()
    assert ctx("install", "--host", "codex,gemini", "--no-hooks", "--no-mcp").code == 0
    assert not (home / ".codex" / "config.toml").exists()
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home / "work"))
    assert ctx("install", "--no-hooks", "--mcp").code == 0
    assert list(servers(home / "work" / ".claude.json")) == ["ctx"]
    assert ctx("install", "--git", "--mcp").code == 2


# Past conversations

ROLLOUTS = ".codex/sessions/2026/11/16"


def test_past_conversations_are_offered_once(
    ctx: Ctx, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = "1 past conversation found. To import: `ctx import --from codex --transcripts`\n"
    shutil.copytree(GOLDEN / "codex" / "transcripts", home / ROLLOUTS)
    assert line in ctx("status").err
    assert line in ctx("install", "--no-hooks").err
    assert "past conversation" not in ctx("install", "--no-hooks", "--dry-run").err
    answer_with(monkeypatch, "n")
    question = "1 past conversation found (codex). Import them? [y/N]"
    assert question in ctx("install", "--no-hooks", "--host", "codex").err
    assert "past conversation" not in ctx("install", "--no-hooks").err
    assert "past conversation" not in ctx("status").err
    # As if nothing had been decided.
    (home / ".ctx" / "answered").unlink()
    answer_with(monkeypatch, "y")
    assert "Imported 1 session:" in ctx("install", "--no-hooks").out
    assert "past conversation" not in ctx("status").err
    # What comes later is captured.
    rollout = next((home / ROLLOUTS).iterdir())
    rollout.rename(rollout.with_name(re.sub("[0-9a-f]{12}(?=.jsonl)", "0" * 12, rollout.name)))
    assert "past conversation" not in ctx("status").err
