"""`ctx install` and `ctx uninstall`."""

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ctx import __version__
from ctx.agents.claude_code.hooks import HOOKS
from ctx.agents.host_setup.hook_commands import command_line
from tests.conftest import Ctx, Ran, git

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


@pytest.fixture
def this_ctx(binaries: Path) -> None:
    """A ctx on the PATH that says it is this one."""
    program(binaries / "ctx", f"echo 'ctx {__version__}'")


@pytest.fixture
def umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def running(command: str) -> dict[str, Any]:
    return {"type": "command", "command": command}


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
    command = command_line(word, HOOKS, interpreter=sys.executable, entry=str(ENTRY))
    return {"type": "command", "command": command, "timeout": 10, **more}


def check_refusal(ran: Ran, code: int, *pieces: str) -> None:
    assert (ran.code, ran.out) == (code, "")
    for piece in pieces:
        assert piece in ran.err


FOREIGN = """\
{
    "model": "opus",
    "hooks": {
        "Stop": [ { "hooks": [ { "type": "command", "command": "make lint" } ] } ]
    }
}
"""


@pytest.mark.usefixtures("this_ctx")
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
    assert [line.split() for line in ran.out.splitlines()] == [
        ["Store", "~/.ctx/store.db", "made"],
        ["Skill", "~/.claude/skills/ctx/SKILL.md", "written"],
        ["Hooks", "~/.claude/settings.json", "9", "added"],
        ["Backup", f"~/.ctx/backups/{backup}"],
        ["Client", str(binaries / "claude"), "2.1.325"],
        ["Tried", "9", "hooks:", "all", "work."],
    ]
    assert ran.err.startswith("Start a new conversation to use it. To check: `ctx doctor`. ")
    assert "\nFrom then on, ctx records your prompts" in ran.err
    assert hooks_of(settings) == {
        "SessionStart": [entry("session-start")],
        "UserPromptSubmit": [entry("prompt-submit")],
        "Stop": [{"type": "command", "command": "make lint"}, entry("stop")],
        "PostToolUse": [entry("post-tool-use", **{"async": True})],
        "PostToolUseFailure": [entry("post-tool-use-failure", **{"async": True})],
        "PreCompact": [entry("pre-compact")],
        "SessionEnd": [entry("session-end")],
        "SubagentStop": [entry("subagent-stop", **{"async": True})],
        "PreToolUse": [entry("pre-edit")],
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
    assert [line.split() for line in ran.out.splitlines()] == [
        ["Skill", "~/.claude/skills/ctx/SKILL.md", "removed"],
        ["Hooks", "~/.claude/settings.json", "removed"],
        ["Backup", f"~/.ctx/backups/{newest}"],
    ]
    assert ran.err == f"Memory stays in ~/.ctx; `rm -r {home}/.ctx` deletes all of it.\n"
    left = tree(home)
    assert {name: data for name, data in left.items() if not name.startswith(".ctx")} == before
    assert ctx("uninstall") == (0, "Nothing to remove.\n", "")


def test_what_install_has_made_is_gone_afterwards(
    ctx: Ctx, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where `CLAUDE_CONFIG_DIR` says that the client's folder is another one."""
    claude = tmp_path / "claude"
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(claude))
    assert ctx("install").code == 0
    assert sorted(os.listdir(claude)) == ["settings.json", "skills"]
    # Taking it out begins with the hooks: the skill alone does no harm.
    before = tree(claude)
    (home / ".ctx" / "backups").write_text("in the way")
    changing = f"error E014: File exists while changing {claude}/settings.json"
    check_refusal(ctx("uninstall"), 1, changing, TAKE_OUT_BY_HAND[1:])
    assert tree(claude) == before
    (home / ".ctx" / "backups").unlink()
    assert ctx("uninstall").code == 0
    assert not claude.exists()
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
        f'--- {settings}\n+++ {settings}\n@@ -1,3 +1,101 @@\n {{\n-  "model": "opus"\n'
        '+  "model": "opus",\n+  "hooks": {\n+    "SessionStart": [\n'
    )
    assert rest == (
        "Nothing changed. Planned changes:\n"
        "  Store   ~/.ctx/store.db                 made\n"
        "  Skill   ~/.claude/skills/ctx/SKILL.md   written\n"
        "  Hooks   ~/.claude/settings.json         8 added\n"
        "  Client  Claude Code is not on the PATH\n"
    )
    assert ctx("uninstall", "--dry-run").out == "Nothing to remove.\n"
    assert tree(home) == before
    # So does a dry run of taking it out.
    ours = json.dumps({"type": "command", "command": "ctx hook stop"})
    settings.write_text('{"a": 1,\n "hooks": {"Stop": [{"hooks": [%s]}]}}\n' % ours)  # noqa: UP031
    before = tree(home)
    ran = ctx("uninstall", "--dry-run")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        f'--- {settings}\n+++ {settings}\n@@ -1,2 +1 @@\n-{{"a": 1,\n'
        f'- "hooks": {{"Stop": [{{"hooks": [{ours}]}}]}}}}\n'
        '+{"a": 1}\n'
        "\n"
        "Nothing changed. Planned changes:\n"
        "  Skill  ~/.claude/skills/ctx/SKILL.md  missing\n"
        "  Hooks  ~/.claude/settings.json        removed\n"
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
    assert ctx("install", "--print", "--no-hooks").out == (
        "Store: ~/.ctx/store.db\nSkill: ~/.claude/skills/ctx/SKILL.md\n\n"
        "`ctx install --no-hooks` writes the skill.\n"
    )
    alone = ctx("install", "--print", "--no-skill").out
    assert alone == ran.out.replace("Skill: ~/.claude/skills/ctx/SKILL.md\n", "").replace(
        " `ctx install --no-hooks` writes the skill.", ""
    )
    assert ctx("install", "--print", "--no-hooks", "--no-skill").out == "Store: ~/.ctx/store.db\n"
    assert tree(home) == before


def test_only_what_every_client_knows(ctx: Ctx, home: Path, binaries: Path) -> None:
    program(binaries / "claude", 'echo "2.1.325 (Claude Code)"')
    old = home / ".claude" / "local"
    old.mkdir(parents=True)
    program(old / "claude", 'echo "2.0.47 (Claude Code)"')
    words = ("--set", "context.budget=6000", "install", "--print", "--format", "json")
    printed = ctx(*words).json
    assert [client["version"] for client in printed["clients"]] == ["2.1.325", "2.0.47"]
    assert "PostToolUseFailure" not in printed["settings"]["hooks"]
    # A large context is registered in parts.
    [group] = printed["settings"]["hooks"]["SessionStart"]
    assert group["hooks"] == [
        entry("session-start"),
        entry("session-start --part 2"),
        entry("session-start --part 3"),
    ]
    program(binaries / "ctx", f"echo 'ctx {__version__}'")
    program(binaries / "claude", "exit 1")
    assert ctx("install", "--dry-run").err == (
        f"warning: The version of {binaries}/claude is unknown: it gets only the hooks "
        "that all versions support.\n"
    )


TAKE_OUT_BY_HAND = (
    "remove the hooks by hand: their commands contain `ctx hook` or `claude_code/entry.py`"
)


def test_settings_that_cannot_be_read_are_left_alone(ctx: Ctx, home: Path) -> None:
    settings = home / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{\n  "model": opus\n}\n')
    before = tree(home)
    problem = f"error E027: {settings}, line 2, column 12: this is not a JSON value.\n"
    by_hand = "Fix it, or add the hooks by hand: `ctx install --print` shows them.\n"
    check_refusal(ctx("install"), 1, problem, by_hand)
    check_refusal(ctx("uninstall"), 1, problem, f"Fix it, or {TAKE_OUT_BY_HAND}.\n")
    assert tree(home) == before
    # One that only the client does not load is changed.
    settings.write_text('{\n  // mine\n  "model": "opus"\n}\n')
    assert ctx("install", "--dry-run").err == (
        f"warning: {settings}, line 2, column 3: a comment that plain JSON does not have;"
        " Claude Code ignores a file that contains this.\n"
    )


def test_a_hook_that_does_not_work_is_not_registered(
    ctx: Ctx, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = home / ".claude" / "skills" / "ctx"
    place.parent.mkdir(parents=True)
    # There may be a file in the place of the skill.
    place.write_text("A file.\n")
    before = tree(home)
    for words in ((), ("--dry-run",)):
        ran = ctx("install", *words)
        check_refusal(ran, 1, f"error E015: {place} is not a folder", "with --no-skill.\n")
    assert ctx("install", "--no-skill", "--dry-run").code == 0
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    lines = ctx("install", "--no-skill").err.splitlines()
    assert lines[0].startswith("error E026: The hook session-start does not work: it does nothing.")
    assert lines[1:] == [
        f"  {entry('session-start')['command']}",
        "  Nothing was registered. Run `ctx doctor` for details.",
    ]
    assert tree(home) == before


FOREIGN_HOOKS = (
    "notify-send ctx hook fired",
    "echo ctx hook done",
    "cat /x/ctx/agents/claude_code/entry.py foo",
)


def test_a_temporary_environment_is_refused(
    ctx: Ctx, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tree(home)
    for cache, command in (
        (".cache/uv/archive-v0/Xy12", "uv tool install ctx-memory"),
        ("Library/Caches/uv/builds-v0/.tmpXy12", "uv tool install ctx-memory"),
        (".cache/pipx/0a1b2c", "pipx install ctx-memory"),
        (".local/share/pipx/.cache/0a1b2c", "pipx install ctx-memory"),
    ):
        monkeypatch.setattr(sys, "executable", f"{home}/{cache}/bin/python")
        for words in ([], ["--project"], ["--print"], ["--dry-run"], ["--git"]):
            ran = ctx("install", *words)
            assert ran.code != 0
            assert "E026" in ran.err
            assert f"temporary environment, which {command.split()[0]} deletes" in ran.err
            assert f"Install ctx with `{command}`, then run `ctx install` again." in ran.err
    assert tree(home) == before
    # Parts without paths are written.
    assert ctx("install", "--no-hooks", "--dry-run").code == 0
    assert ctx("install", "--plugin", "plugin", "--dry-run").code == 0
    for place in (".local/share/uv/tools/ctx-memory", ".local/share/pipx/venvs/ctx-memory"):
        monkeypatch.setattr(sys, "executable", f"{home}/{place}/bin/python")
        ran = ctx("install", "--print")
        assert ran.code == 0
        assert f"{home}/{place}/bin/python" in ran.out


@pytest.mark.usefixtures("this_ctx")
def test_hooks_of_others_and_in_another_form_are_left_alone_and_named(ctx: Ctx, home: Path) -> None:
    settings = home / ".claude" / "settings.json"
    lines = ("CTX_HOME=/data/ctx ctx hook stop", "ctx hook stop 2>/dev/null || true")
    execed = {"type": "command", "command": "ctx", "args": ["hook", "stop"]}
    theirs = [*map(running, (*lines, *FOREIGN_HOOKS)), execed]
    stop = [{"matcher": "", "hooks": theirs}]
    start = [{"matcher": "resume", "hooks": [running("ctx hook session-start")]}]
    settings.parent.mkdir()
    settings.write_text(json.dumps({"hooks": {"Stop": stop, "SessionStart": start}}, indent=2))

    def warnings(advice: str) -> str:
        return "".join(
            f"warning: {settings}, line {line}, column 11: this hook for Stop runs ctx,"
            f" differs from what `ctx install` writes, and was not changed. {advice} It is:"
            f" {command}\n"
            for line, command in ((7, lines[0]), (11, lines[1]), (27, "ctx hook stop"))
        )

    narrow = (
        f"warning: {settings} runs SessionStart only for `resume`, as you set it: ctx does not see "
        'other calls. The matcher "" matches all.\n'
    )
    for words in (("install", "--dry-run"), ("install", "--quiet")):
        ran = ctx(*words)
        assert ran.code == 0
        for warning in (warnings("Remove it, or both run."), narrow):
            assert warning in ran.err
    assert hooks_of(settings)["Stop"] == [*theirs, entry("stop")]
    hooks = json.loads(settings.read_text())["hooks"]
    assert hooks["SessionStart"] == [{"matcher": "resume", "hooks": [entry("session-start")]}]
    for _ in range(2):
        assert ctx("uninstall", "--quiet").err == warnings("Remove it manually.")
        assert json.loads(settings.read_text())["hooks"] == {"Stop": stop}


def test_a_ctx_that_claude_would_not_find(ctx: Ctx, home: Path, binaries: Path) -> None:
    ours = os.path.dirname(sys.executable)
    assert ctx("install", "--no-hooks").err.splitlines()[0] == (
        f"warning: `ctx` is not on the PATH. Claude calls `ctx` in a shell. Put {ours} on it."
    )
    program(binaries / "ctx", "echo another")
    assert ctx("install", "--no-hooks").err.splitlines()[0] == (
        f"warning: `ctx` is {binaries}/ctx, and that is another program. Claude calls `ctx` in a "
        f"shell. Put {ours} before everything else on the PATH."
    )
    # Whether somebody else's program would do is not looked into where nothing was set up.
    assert ctx("install", "--dry-run").err == ""
    assert ctx("install", "--no-hooks", "--no-skill").err == ""


@pytest.mark.usefixtures("this_ctx")
def test_what_the_client_must_be_started_with(
    ctx: Ctx, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A store of the command line is none of the hooks.
    for words in (("install",), ("install", "--dry-run"), ("install", "--plugin", "x")):
        ran = ctx("--db", str(home / "my.db"), *words)
        check_refusal(ran, 2, "error E011: --db has no effect on hooks", "and set CTX_DB where")
    assert os.listdir(home) == []
    monkeypatch.setenv("CTX_HOME", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("CTX_DB", str(tmp_path / "my.db"))
    monkeypatch.setenv("CTX_OFF", "1")
    told = "".join(
        f"warning: {name} is set here. Set it where you start Claude Code too; otherwise "
        f"hooks use {home}/.ctx/store.db.\n"
        for name in ("CTX_HOME", "CTX_DB")
    )
    told += "warning: CTX_OFF is set: hooks do nothing.\n"
    assert ctx("install", "--print").err == told
    assert ctx("install", "--no-hooks", "--quiet").err == told
    monkeypatch.delenv("CTX_HOME")
    monkeypatch.delenv("CTX_DB")
    monkeypatch.setenv("CTX_OFF", "0")
    assert ctx("install", "--dry-run").err == ""


def test_for_a_project(
    ctx: Ctx,
    repo: Path,
    surroundings: Path,
    binaries: Path,
    monkeypatch: pytest.MonkeyPatch,
    umask: None,
) -> None:
    (repo / "src").mkdir()
    os.chdir(repo / "src")
    monkeypatch.setenv("PATH", f"bin:.:{binaries}:/usr/bin:/bin")
    (repo / "src" / "bin").mkdir()
    program(repo / "src" / "bin" / "ctx", "exit 0")
    git("add", ".")
    refused = ctx("install", "--project")
    assert refused.err == (
        "error E026: `ctx` is not on the PATH, and project settings call it by name.\n"
        "  Put it there and try again; nothing changed.\n"
    )
    assert git("status", "--porcelain") == "A  src/bin/ctx\n"
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
        "ctx hook pre-edit || true",
    ]
    assert (repo / ".claude" / "skills" / "ctx" / "SKILL.md").exists()
    # They are committed, and read by others.
    modes = {path: path.stat().st_mode & 0o777 for path in (repo / ".claude").rglob("*")}
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o644}
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o755}
    assert not (surroundings / ".claude").exists()
    assert ctx("uninstall", "--project").err == ""
    assert git("status", "--porcelain", "--ignored") == "A  src/bin/ctx\n"


def test_without_the_hooks_or_without_the_skill(ctx: Ctx, home: Path) -> None:
    assert ctx("install", "--no-hooks").out == (
        "  Store  ~/.ctx/store.db                made\n"
        "  Skill  ~/.claude/skills/ctx/SKILL.md  written\n"
    )
    assert os.listdir(home / ".claude") == ["skills"]
    planned = ctx("install", "--no-skill", "--dry-run", "--format", "json").json
    assert [part["what"] for part in planned["parts"]] == ["store", "hooks"]
    assert ctx("install", "--no-skill", "--no-hooks") == (
        0,
        "  Store  ~/.ctx/store.db  there already\n",
        "",
    )
    assert ctx("uninstall").code == 0
    assert os.listdir(home) == [".ctx"]


def test_a_page_of_the_skill_that_its_user_has_changed(ctx: Ctx, home: Path) -> None:
    ctx("install", "--no-hooks")
    page = home / ".claude" / "skills" / "ctx" / "SKILL.md"
    page.write_text(page.read_text() + "\nMine.\n")
    dry = ctx("uninstall", "--dry-run", "--format", "json").json
    assert [part["state"] for part in dry["parts"]] == ["kept", "missing"]
    ran = ctx("uninstall")
    assert ran.out.splitlines()[0].endswith("SKILL.md  kept")
    assert ran.err == (
        "warning: ~/.claude/skills/ctx/SKILL.md: kept, because you changed it. "
        "--force removes it too.\n"
    )
    assert page.read_text().endswith("\nMine.\n")
    again = ctx("install", "--no-hooks")
    assert again.err.startswith(f"warning: {page} was modified; the old file is kept beside it.\n")
    page.write_text("Mine.\n")
    ran = ctx("uninstall", "--force")
    assert ran.out.startswith("  Skill  ~/.claude/skills/ctx/SKILL.md  removed")
    assert ran.err.startswith("~/.claude/skills/ctx/SKILL.md.edited kept, because you changed it.")
    assert not page.exists()


def test_a_plugin(ctx: Ctx, folder: Path) -> None:
    assert ctx("install", "--plugin", "plugin", "--dry-run").out == (
        f"Nothing changed. Planned changes:\n  Plugin  {folder}/plugin  written\n"
    )
    assert not (folder / "plugin").exists()
    assert ctx("install", "--plugin", "plugin") == (0, f"  Plugin  {folder}/plugin  written\n", "")
    assert (folder / "plugin" / "hooks" / "hooks.json").exists()
    assert ctx("install", "--plugin", "plugin").out == f"  Plugin  {folder}/plugin  up to date\n"
    ran = ctx("install", "--plugin", "plugin", "--print")
    check_refusal(ran, 2, "error E011: --plugin cannot be combined with other options.\n")
    (folder / "mine").mkdir()
    (folder / "mine" / "notes").write_text("Mine.\n")
    for words in ((), ("--dry-run",)):
        refused = ctx("install", "--plugin", "mine", *words)
        check_refusal(refused, 1, f"error E015: {folder}/mine is not empty and does not contain")


def test_a_projection(ctx: Ctx, repo: Path) -> None:
    ctx("add", "--type=fact", "--tag=tier:pinned", "Deploys run on Mondays")
    path = repo / "AGENTS.md"
    path.write_text("# Ours\n")
    planned = ctx("install", "--projection", "--dry-run").out
    assert "+- " in planned
    assert "Deploys run on Mondays" in planned
    assert planned.endswith(f"  Projection  {path}  written\n")
    assert path.read_text() == "# Ours\n"
    assert ctx("install", "--projection") == (0, f"  Projection  {path}  written\n", "")
    assert "Deploys run on Mondays" in path.read_text()
    assert ctx("install", "--projection").out == f"  Projection  {path}  up to date\n"
    ctx("add", "--type=fact", "--tag=tier:pinned", "Nobody deploys on Fridays")
    for command, state in (("install", "updated"), ("uninstall", "removed")):
        ran = ctx(command, "--projection", "--dry-run")
        assert ran.out.endswith(f"Planned changes:\n  Projection  {path}  {state}\n")
    assert ctx("uninstall", "--projection") == (0, f"  Projection  {path}  removed\n", "")
    assert path.read_text() == "# Ours\n"
    assert ctx("uninstall", "--projection") == (0, "Nothing to remove.\n", "")


def test_a_projection_goes_where_agents_look(ctx: Ctx, repo: Path, surroundings: Path) -> None:
    (repo / "src").mkdir()
    (repo / "CLAUDE.md").write_text("# Ours\n")
    os.chdir(repo / "src")
    assert ctx("install", "--projection").out == f"  Projection  {repo}/CLAUDE.md  written\n"
    assert ctx("install", "--projection", "NOTES.md").out == (
        f"  Projection  {repo}/src/NOTES.md  written\n"
    )
    assert ctx("uninstall", "--projection", "NOTES.md").code == 0
    assert not (repo / "src" / "NOTES.md").exists()
    # A home has none, unless its file is named, and it is no project.
    os.chdir(surroundings)
    for words, message in (
        (["--projection"], "Your home folder is not a project, so no agent reads AGENTS.md there."),
        (["--projection", "--dry-run"], "Your home folder is not a project"),
        (["--project"], f"{surroundings}/.claude is not a project: it contains your own settings."),
    ):
        ran = ctx("install", *words)
        assert (ran.code, ran.out) == (2, "")
        assert ran.err.startswith(f"error E011: {message}")
    assert not (surroundings / "AGENTS.md").exists()
    assert ctx("install", "--projection", "AGENTS.md").code == 0
