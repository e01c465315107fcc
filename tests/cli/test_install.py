"""`ctx install` and `ctx uninstall`."""

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Ctx, git

ENTRY = Path(__file__).parents[2] / "src" / "ctx" / "agents" / "claude_code" / "entry.py"


@pytest.fixture(autouse=True)
def binaries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH on which there is neither a client nor a ctx, until a test puts them there."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return folder


@pytest.fixture
def home(surroundings: Path, folder: Path) -> Path:
    return surroundings


def program(path: Path, line: str) -> None:
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)


def tree(folder: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


def hooks_of(path: Path) -> dict[str, list[dict[str, Any]]]:
    """The hooks of every event that a settings file has."""
    hooks = json.loads(path.read_text())["hooks"]
    return {event: [hook for group in hooks[event] for hook in group["hooks"]] for event in hooks}


def entry(word: str, **more: Any) -> dict[str, Any]:
    command = f"{sys.executable} -I -S {ENTRY} {word} || true"
    return {"type": "command", "command": command, "timeout": 10, **more}


FOREIGN = """\
{
    "model": "opus",
    "hooks": {
        "Stop": [ { "hooks": [ { "type": "command", "command": "make lint" } ] } ]
    }
}
"""


def test_in_and_out_again(ctx: Ctx, home: Path, binaries: Path) -> None:
    program(binaries / "claude", 'echo "2.1.325 (Claude Code)"')
    settings = home / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text(FOREIGN)
    before = tree(home)

    ran = ctx("install")
    assert ran.code == 0, ran.err
    [backup] = os.listdir(home / ".ctx" / "backups")
    assert re.fullmatch(r"settings\.json-\d{8}T\d{6}Z", backup)
    column = max(len(f"~/.ctx/backups/{backup}"), len(str(binaries / "claude")))
    assert ran.out == (
        f"  Store   {'~/.ctx/store.db':<{column}}  made\n"
        f"  Skill   {'~/.claude/skills/ctx/SKILL.md':<{column}}  written\n"
        f"  Hooks   {'~/.claude/settings.json':<{column}}  8 added\n"
        f"  Backup  ~/.ctx/backups/{backup}\n"
        f"  Client  {binaries / 'claude'!s:<{column}}  2.1.325\n"
        "Tried 8 hooks: all of them work.\n"
    )
    assert ran.err == (
        "Start a new conversation to use it. `ctx doctor` checks everything; `ctx uninstall` "
        "takes it out again.\n"
    )
    assert hooks_of(settings) == {
        "SessionStart": [entry("session-start")],
        "UserPromptSubmit": [entry("prompt-submit")],
        "Stop": [{"type": "command", "command": "make lint"}, entry("stop")],
        "PostToolUse": [entry("post-tool-use", **{"async": True})],
        "PostToolUseFailure": [entry("post-tool-use-failure", **{"async": True})],
        "PreCompact": [entry("pre-compact")],
        "SessionEnd": [entry("session-end")],
        "SubagentStop": [entry("subagent-stop", **{"async": True})],
    }
    assert (home / ".ctx" / "backups" / backup).read_text() == FOREIGN
    # The trials were of another store: nothing of them is here.
    assert sorted(os.listdir(home / ".ctx")) == ["backups", "store.db"]

    installed = tree(home / ".claude")
    again = ctx("install", "--format", "json").json
    assert [(part["what"], part["state"]) for part in again["parts"]] == [
        ("store", "there"),
        ("skill", "current"),
        ("hooks", "current"),
    ]
    assert tree(home / ".claude") == installed

    ran = ctx("uninstall")
    newest = max(os.listdir(home / ".ctx" / "backups"))
    column = max(len(f"~/.ctx/backups/{newest}"), len("~/.claude/skills/ctx/SKILL.md"))
    assert ran == (
        0,
        (
            f"  Skill   {'~/.claude/skills/ctx/SKILL.md':<{column}}  removed\n"
            f"  Hooks   {'~/.claude/settings.json':<{column}}  removed\n"
            f"  Backup  ~/.ctx/backups/{newest}\n"
        ),
        f"What is remembered stays in ~/.ctx; `rm -r {home}/.ctx` deletes all of it.\n",
    )
    left = tree(home)
    assert {name: data for name, data in left.items() if not name.startswith(".ctx")} == before
    assert ctx("uninstall").out == "There is nothing to take out.\n"


def test_what_install_has_made_is_gone_afterwards(
    ctx: Ctx, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where `CLAUDE_CONFIG_DIR` says that the client's folder is another one."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    assert ctx("install").code == 0
    assert sorted(os.listdir(tmp_path / "claude")) == ["settings.json", "skills"]
    assert ctx("uninstall").code == 0
    assert not (tmp_path / "claude").exists()
    assert os.listdir(home) == [".ctx"]


def test_a_dry_run_changes_nothing(ctx: Ctx, home: Path) -> None:
    settings = home / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{\n  "model": "opus"\n}\n')
    before = tree(home)
    ran = ctx("install", "--dry-run")
    assert (ran.code, ran.err) == (0, "")
    diff, _, rest = ran.out.partition("\n\n")
    assert diff.startswith(
        f'--- {settings}\n+++ {settings}\n@@ -1,3 +1,89 @@\n {{\n-  "model": "opus"\n'
        '+  "model": "opus",\n+  "hooks": {\n+    "SessionStart": [\n'
    )
    assert rest == (
        "Nothing was changed. This is what would be:\n"
        "  Store   ~/.ctx/store.db                 made\n"
        "  Skill   ~/.claude/skills/ctx/SKILL.md   written\n"
        "  Hooks   ~/.claude/settings.json         7 added\n"
        "  Client  Claude Code is not on the PATH\n"
    )
    assert ctx("uninstall", "--dry-run").out == "There is nothing to take out.\n"
    assert tree(home) == before


def test_a_dry_run_of_taking_it_out(ctx: Ctx, home: Path) -> None:
    ours = json.dumps({"type": "command", "command": "ctx hook stop"})
    settings = home / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{"a": 1,\n "hooks": {"Stop": [{"hooks": [%s]}]}}\n' % ours)  # noqa: UP031
    before = tree(home)
    assert ctx("uninstall", "--dry-run") == (
        0,
        (
            f'--- {settings}\n+++ {settings}\n@@ -1,2 +1 @@\n-{{"a": 1,\n'
            f'- "hooks": {{"Stop": [{{"hooks": [{ours}]}}]}}}}\n'
            '+{"a": 1}\n'
            "\n"
            "Nothing was changed. This is what would be:\n"
            "  Skill  ~/.claude/skills/ctx/SKILL.md  missing\n"
            "  Hooks  ~/.claude/settings.json        removed\n"
        ),
        "",
    )
    assert tree(home) == before


def test_printing_what_to_add_by_hand(ctx: Ctx, home: Path) -> None:
    settings = home / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text("this cannot be read")
    before = tree(home)
    ran = ctx("install", "--print")
    assert (ran.code, ran.err) == (0, "")
    head, _, rest = ran.out.partition("{")
    assert head == (
        "Store: ~/.ctx/store.db\nSkill: ~/.claude/skills/ctx/SKILL.md\n\n"
        "To enable the hooks, add to ~/.claude/settings.json:\n\n"
    )
    printed, _, foot = f"{{{rest}".rpartition("}\n")
    assert foot == "\nThen start a new conversation. `ctx install --no-hooks` writes the skill.\n"
    hooks = json.loads(f"{printed}}}")["hooks"]
    assert hooks["Stop"] == [{"matcher": "", "hooks": [entry("stop")]}]
    assert ctx("install", "--print", "--format", "json").json["settings"] == {"hooks": hooks}
    assert tree(home) == before


def test_only_what_every_client_knows(ctx: Ctx, home: Path, binaries: Path) -> None:
    program(binaries / "claude", 'echo "2.1.325 (Claude Code)"')
    old = home / ".claude" / "local"
    old.mkdir(parents=True)
    program(old / "claude", 'echo "2.0.47 (Claude Code)"')
    printed = ctx("install", "--print", "--format", "json").json
    assert [client["version"] for client in printed["clients"]] == ["2.1.325", "2.0.47"]
    assert "PostToolUseFailure" not in printed["settings"]["hooks"]


def test_a_large_context_is_registered_in_parts(ctx: Ctx, home: Path) -> None:
    words = ("--set", "context.budget=6000", "install", "--print", "--format", "json")
    [group] = ctx(*words).json["settings"]["hooks"]["SessionStart"]
    assert group["hooks"] == [
        entry("session-start"),
        entry("session-start --part 2"),
        entry("session-start --part 3"),
    ]


@pytest.mark.parametrize("command", ["install", "uninstall"])
def test_settings_that_cannot_be_read_are_left_alone(ctx: Ctx, home: Path, command: str) -> None:
    settings = home / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{\n  "model": opus\n}\n')
    before = tree(home)
    assert ctx(command) == (
        1,
        "",
        (
            f"error E027: {settings}, line 2, column 12: this is no JSON value.\n"
            "  Mend it, or add the hooks by hand: `ctx install --print` shows them.\n"
        ),
    )
    assert tree(home) == before


def test_a_file_that_the_client_does_not_load(ctx: Ctx, home: Path) -> None:
    settings = home / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{\n  // mine\n  "model": "opus"\n}\n')
    assert ctx("install", "--dry-run").err == (
        f"warning: {settings}, line 2, column 3: a comment that plain JSON does not have; Claude "
        "Code loads nothing of a file with such a thing in it.\n"
    )


def test_a_hook_that_does_not_work_is_not_registered(
    ctx: Ctx, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    ran = ctx("install")
    assert ran.code == 1
    lines = ran.err.splitlines()
    assert lines[0].startswith("error E026: The hook session-start does not work: it does nothing.")
    assert lines[1:] == [
        f"  /nowhere/python -I -S {ENTRY} session-start || true",
        "  `ctx doctor` says more; nothing was registered.",
    ]
    assert os.listdir(home) == []


def test_for_a_project(ctx: Ctx, repo: Path, surroundings: Path, binaries: Path) -> None:
    (repo / "src").mkdir()
    os.chdir(repo / "src")
    refused = ctx("install", "--project")
    assert refused.err == (
        "error E026: There is no `ctx` on the PATH, by which a project's settings call it.\n"
        "  Put it there and try again; nothing was registered.\n"
    )
    assert git("status", "--porcelain") == ""
    program(binaries / "ctx", f'exec {sys.executable} -m ctx "$@"')
    made = ctx("install", "--project", "--format", "json").json
    assert made["parts"][2] == {
        "what": "hooks",
        "path": str(repo / ".claude" / "settings.json"),
        "state": "added",
    }
    hooks = hooks_of(repo / ".claude" / "settings.json").values()
    commands = [hook["command"] for group in hooks for hook in group]
    assert commands == [
        "ctx hook session-start || true",
        "ctx hook prompt-submit || true",
        "ctx hook stop || true",
        "ctx hook post-tool-use || true",
        "ctx hook pre-compact || true",
        "ctx hook session-end || true",
        "ctx hook subagent-stop || true",
    ]
    assert (repo / ".claude" / "skills" / "ctx" / "SKILL.md").exists()
    assert not (surroundings / ".claude").exists()
    assert ctx("uninstall", "--project").err == ""
    assert git("status", "--porcelain", "--ignored") == ""


def test_a_home_is_no_project(ctx: Ctx, surroundings: Path) -> None:
    os.chdir(surroundings)
    assert ctx("install", "--project") == (
        2,
        "",
        (
            f"error E011: {surroundings}/.claude is no project's: your own settings are there.\n"
            "  Leave --project out, or go to the project.\n"
        ),
    )


def test_without_the_hooks_or_without_the_skill(ctx: Ctx, home: Path) -> None:
    assert ctx("install", "--no-hooks").out == (
        "  Store  ~/.ctx/store.db                made\n"
        "  Skill  ~/.claude/skills/ctx/SKILL.md  written\n"
    )
    assert os.listdir(home / ".claude") == ["skills"]
    planned = ctx("install", "--no-skill", "--dry-run", "--format", "json").json
    assert [part["what"] for part in planned["parts"]] == ["store", "hooks"]


def test_a_page_of_the_skill_that_its_user_has_changed(ctx: Ctx, home: Path) -> None:
    ctx("install", "--no-hooks")
    page = home / ".claude" / "skills" / "ctx" / "SKILL.md"
    page.write_text(page.read_text() + "\nMine.\n")
    dry = ctx("uninstall", "--dry-run", "--format", "json").json
    ran = ctx("uninstall")
    assert ran.out == (
        "  Skill  ~/.claude/skills/ctx/SKILL.md  kept\n"
        "  Hooks  ~/.claude/settings.json        missing\n"
    )
    assert ran.err.startswith(
        "warning: You have changed ~/.claude/skills/ctx/SKILL.md: kept. --force removes it too.\n"
    )
    assert [part["state"] for part in dry["parts"]] == ["kept", "missing"]
    assert page.read_text().endswith("\nMine.\n")
    again = ctx("install", "--no-hooks")
    assert again.err.startswith(
        f"warning: {page} was not as ctx writes it; what was there is kept beside it.\n"
    )
    page.write_text("Mine.\n")
    assert ctx("uninstall", "--force").out.startswith(
        "  Skill  ~/.claude/skills/ctx/SKILL.md  removed"
    )
    assert not page.exists()


def test_a_plugin(ctx: Ctx, folder: Path) -> None:
    assert ctx("install", "--plugin", "plugin", "--dry-run").out == (
        f"Nothing was changed. This is what would be:\n  Plugin  {folder}/plugin  written\n"
    )
    assert not (folder / "plugin").exists()
    assert ctx("install", "--plugin", "plugin") == (0, f"  Plugin  {folder}/plugin  written\n", "")
    assert (folder / "plugin" / "hooks" / "hooks.json").exists()
    assert ctx("install", "--plugin", "plugin").out == f"  Plugin  {folder}/plugin  up to date\n"
    assert ctx("install", "--plugin", "plugin", "--print") == (
        2,
        "",
        "error E011: --plugin stands alone: it writes that and nothing else.\n",
    )


def test_a_projection(ctx: Ctx, repo: Path) -> None:
    ctx("add", "--type=fact", "--tag=tier:pinned", "Deploys run on Mondays")
    path = repo / "AGENTS.md"
    path.write_text("# Ours\n")
    planned = ctx("install", "--projection", "--dry-run").out
    assert "+- " in planned
    assert "Deploys run on Mondays" in planned
    assert path.read_text() == "# Ours\n"
    assert ctx("install", "--projection") == (0, f"  Projection  {path}  written\n", "")
    assert "Deploys run on Mondays" in path.read_text()
    assert ctx("install", "--projection").out == f"  Projection  {path}  up to date\n"
    assert ctx("uninstall", "--projection", "--dry-run").out.endswith(
        f"This is what would be:\n  Projection  {path}  removed\n"
    )
    assert ctx("uninstall", "--projection").out == f"  Projection  {path}  removed\n"
    assert path.read_text() == "# Ours\n"
    assert ctx("uninstall", "--projection").out == "There is nothing to take out.\n"


def test_a_projection_goes_where_agents_look(ctx: Ctx, repo: Path) -> None:
    (repo / "src").mkdir()
    (repo / "CLAUDE.md").write_text("# Ours\n")
    os.chdir(repo / "src")
    assert ctx("install", "--projection").out == f"  Projection  {repo}/CLAUDE.md  written\n"
    assert ctx("install", "--projection", "NOTES.md").out == (
        f"  Projection  {repo}/src/NOTES.md  written\n"
    )
    assert ctx("uninstall", "--projection", "NOTES.md").code == 0
    assert not (repo / "src" / "NOTES.md").exists()
