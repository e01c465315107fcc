"""The doctor: checks of the client, its settings and the programs on the PATH."""

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from ctx import __version__
from ctx.agents.claude_code import clients, registration
from ctx.agents.claude_code.doctor import CHECKS, examine
from ctx.agents.claude_code.hooks import HOOKS
from ctx.agents.claude_code.settings import Setup
from ctx.agents.host_setup import hook_commands, settings_file, skill
from ctx.cli.settings import Settings, variables
from ctx.ids import CLI_SESSION
from ctx.operations.store_checks import DoctorCheck
from ctx.workspace import Environment


class Machine:
    """A user with programs and settings."""

    def __init__(self, home: Path, programs: Path, folder: Path) -> None:
        self.programs = programs
        self.claude = home / ".claude"
        self.claude.mkdir()
        self.settings = self.claude / "settings.json"
        self.folder = folder

    def program(self, name: str, says: str) -> None:
        path = self.programs / name
        path.write_text(f"#!/bin/sh\necho '{says}'\n")
        path.chmod(0o755)

    def client(self, version: str = "2.1.325") -> None:
        self.program("claude", f"{version} (Claude Code)")

    def checks(self, name: str, folder: Path | None = None) -> list[DoctorCheck]:
        place = str(folder or self.folder)
        found = Settings.from_environment()._replace(folder=place)
        around = Environment(place, found.user_store, found.environment, (), CLI_SESSION)
        there = clients.find_clients(variables()["PATH"], found.expanded("~"), found.claude_folder)
        setup = Setup(around, found.claude_folder, there, variables())
        if name in CHECKS:
            # Running every hook takes time.
            return list(CHECKS[name](setup))
        return [check for check in examine(setup).checks if check.name == name]

    def told(self, name: str, folder: Path | None = None) -> list[tuple[str, str, str]]:
        return [(each.state, each.seen, each.advice) for each in self.checks(name, folder)]

    def states(self, name: str, folder: Path | None = None) -> list[str]:
        return [each.state for each in self.checks(name, folder)]


@pytest.fixture
def machine(
    surroundings: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Machine:
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    return Machine(surroundings, programs, folder)


def register(path: Path, entries: dict[str, Any], **more: Any) -> None:
    path.parent.mkdir(exist_ok=True)
    hooks = {event: [group] for event, group in entries.items()}
    path.write_text(json.dumps({"hooks": hooks, **more}, indent=2))


def users(*versions: str | None) -> dict[str, Any]:
    return registration.user_entries(versions, interpreter=sys.executable, budget=2_000)


def one(event: str, command: str) -> dict[str, Any]:
    return {event: {"matcher": "", "hooks": [{"type": "command", "command": command}]}}


def without(entries: dict[str, Any], *events: str) -> dict[str, Any]:
    return {event: group for event, group in entries.items() if event not in events}


def test_clients_are_listed_with_their_versions(machine: Machine) -> None:
    ((state, seen, advice),) = machine.told("client")
    assert state == "warning"
    assert "neither on the PATH nor in one of its usual places" in seen
    assert "`ctx install` again" in advice
    machine.client()
    shown = f"Claude Code 2.1.325: {machine.programs}/claude"
    assert machine.told("client") == [("ok", shown, "")]
    machine.program("claude", "Segmentation fault")
    ((state, seen, _),) = machine.told("client")
    assert (state, seen.split()[1:]) == ("warning", "does not print its version.".split())


# Settings and hooks


def test_hooks_are_all_registered_and_run_or_missing(machine: Machine) -> None:
    ((state, seen, advice),) = machine.told("hooks")
    assert (state, advice) == ("problem", "`ctx install` registers them.")
    assert seen.startswith("No hook of ctx is registered")
    assert machine.told("hooks run") == []
    machine.client()
    register(machine.settings, users("2.1.325"))
    assert machine.told("hooks") == [("ok", f"9 in {machine.settings}, up to date", "")]
    ((state, seen, _),) = machine.told("hooks run")
    assert (state, seen.count(","), seen.endswith("pre-edit: fine")) == ("ok", 8, True)


def test_an_event_that_one_client_does_not_accept_is_a_problem(
    machine: Machine, repo: Path
) -> None:
    machine.client("2.0.47")
    register(machine.settings, one("PostToolUseFailure", "ctx hook post-tool-use-failure || true"))
    ((state, seen, advice),) = machine.told("client settings")
    assert (state, advice) == ("problem", "`ctx install` removes our hook from it.")
    assert "line 3, column 5: Claude Code 2.0.47 does not know PostToolUseFailure" in seen
    # `ctx install` does not change the local settings of a project.
    local = repo / ".claude" / "settings.local.json"
    register(local, one("PostToolUseFailure", "ctx hook post-tool-use-failure || true"))
    by_hand = f"Remove it, or update {machine.programs}/claude."
    assert machine.told("client settings", repo)[1][2] == by_hand
    local.unlink()
    old = machine.claude / "local"
    old.mkdir()
    shutil.copy(machine.programs / "claude", old / "claude")
    machine.client()
    for name in ("Foo", "PostToolUseFailure"):
        register(machine.settings, {**users("2.0.47"), name: {"hooks": []}})
        ((state, _, advice),) = machine.told("client settings")
        assert (state, advice) == ("problem", f"Remove it, or update {old}/claude.")
        # Nobody is told that all is well with that file.
        assert machine.told("hooks") == []
    register(machine.settings, {**users("2.0.47"), "Notification": {"hooks": []}})
    assert machine.states("client settings") == []
    assert machine.states("hooks") == ["ok"]


def test_some_missing_hooks_are_a_problem(machine: Machine, repo: Path) -> None:
    machine.client()
    shared = repo / ".claude" / "settings.json"
    register(machine.settings, without(users("2.1.325"), "Stop", "SessionEnd"))
    missing = ("problem", "Not registered: Stop, SessionEnd.", "`ctx install` registers them.")
    assert machine.told("hooks", repo) == [missing]
    # Who has them in the project too has them.
    register(shared, registration.project_entries())
    assert machine.states("hooks", repo) == ["ok", "ok"]
    machine.settings.unlink()
    register(shared, without(registration.project_entries(), "Stop", "SessionEnd"))
    advice = "`ctx install --project` registers them."
    assert machine.told("hooks", repo) == [(*missing[:2], advice)]


def test_hooks_with_a_narrow_matcher_are_reported(machine: Machine) -> None:
    machine.client()
    entries = users("2.1.325")
    # The last two leave nothing out.
    matchers = {"SessionStart": "resume", "PostToolUse": "Bash|W", "PreCompact": "*", "Stop": "x"}
    for event, matcher in matchers.items():
        entries[event] = {**entries[event], "matcher": matcher}
    register(machine.settings, entries)
    seen = [f"{machine.settings} runs {event} only for `{matchers[event]}`." for event in matchers]
    assert [each[:2] for each in machine.told("hooks")] == [("warning", each) for each in seen[:2]]


def test_modified_command_lines_of_our_hooks_are_accepted(machine: Machine) -> None:
    """They are not missing, and cannot be updated. Those of others are ignored."""
    machine.client()
    lines = (
        "ctx hook stop 2>/dev/null || true",
        "sh -c 'ctx hook stop'",
        "CTX_HOME=/data ctx hook stop",
        "notify-send done",
        "echo ctx",
        "ctx status",
    )
    hooks: list[dict[str, Any]] = [{"type": "command", "command": line} for line in lines]
    hooks.append({"type": "command", "command": "ctx", "args": ["hook", "stop"]})
    entries = {"Stop": {"hooks": hooks}, **without(users("2.1.325"), "Stop")}
    register(machine.settings, entries)
    found = machine.told("hooks")
    assert {state for state, _, _ in found} == {"warning"}
    assert [(seen.split(",")[1], seen.partition("Stop: ")[2]) for _, seen, _ in found] == [
        (" line 6", lines[0]),
        (" line 10", lines[1]),
        (" line 14", lines[2]),
        (" line 30", "ctx hook stop"),
    ]


def test_outdated_hooks_are_a_warning(machine: Machine) -> None:
    machine.client()
    entry = "/gone/ctx/agents/claude_code/entry.py"
    for interpreter, script in ((sys.executable, entry), ("/gone/python", registration.ENTRY)):
        gone = hook_commands.command_line("stop", HOOKS, interpreter=interpreter, entry=script)
        register(machine.settings, {**users("2.1.325"), **one("Stop", gone)})
        ((state, seen, advice),) = machine.told("hooks")
        assert (state, advice) == ("warning", "`ctx install` updates them.")
        assert seen == f"{machine.settings} has hooks that differ from those of this ctx."
    former = users("2.1.325")
    former["PreToolUse"]["matcher"] = settings_file.FORMER[0]
    register(machine.settings, former)
    assert machine.states("hooks") == ["warning"]
    register(machine.settings, {**users("2.1.325"), **one("Stop", gone)})
    twice = users("2.1.325")
    twice["Stop"]["hooks"] *= 2
    outdated = machine.settings.read_text()
    register(machine.settings, twice)
    assert machine.states("hooks") == ["warning"]
    machine.settings.write_text(outdated)
    fine, (state, seen, advice) = machine.told("hooks run")
    assert (fine[0], state) == ("ok", "problem")
    assert seen.startswith("stop: it does nothing.")
    assert "/gone/python" in seen
    assert advice == f"`ctx install` registers it again. Now it is: {gone}"


def test_hooks_of_a_project_need_ctx_on_the_path(machine: Machine, repo: Path) -> None:
    shared = repo / ".claude" / "settings.json"
    register(shared, registration.project_entries())
    below = repo / "src"
    below.mkdir()
    assert machine.told("hooks", below) == [("ok", f"8 in {shared}, up to date", "")]
    ((state, seen, advice),) = machine.told("hooks run", below)
    assert (state, seen.count(",")) == ("problem", 7)
    assert advice.startswith("`ctx hook session-start || true` needs this ctx on the PATH")
    (machine.programs / "ctx").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ctx "$@"\n')
    (machine.programs / "ctx").chmod(0o755)
    register(shared, one("Stop", "ctx hook stop || true"))
    assert machine.states("hooks run", below) == ["ok"]


def test_an_enabled_plugin_provides_the_hooks_and_the_skill(machine: Machine) -> None:
    for plugins in ({"ctx@ctx-memory": False}, {"other@x": True}, ["ctx@x"], 7):
        register(machine.settings, {}, enabledPlugins=plugins)
        assert machine.states("hooks") == ["problem"]
    register(machine.settings, {}, enabledPlugins={"ctx@ctx-memory": True})
    assert machine.told("hooks") == [("ok", "the plugin `ctx` is enabled", "")]
    # They are plain `ctx`, which is not there.
    assert machine.states("hooks run") == ["problem"]
    assert machine.states("skill") == []


FIX = "Fix the file: as it is, the client reads no hooks from it."


@pytest.mark.parametrize(
    ("data", "seen", "advice"),
    [
        (b"{", ", line 1", FIX),
        (b"[]", " is not an object.", FIX),
        (b"\xff", ", line 1", "Save the file as UTF-8."),
        (None, "", "Replace the link by a plain file."),
    ],
)
def test_unreadable_settings_are_reported_before_missing_hooks(
    machine: Machine, data: bytes | None, seen: str, advice: str
) -> None:
    """The advice never names a command that would fail."""
    if data is None:
        machine.settings.symlink_to(machine.settings)
    else:
        machine.settings.write_bytes(data)
    (check,) = machine.checks("client settings")
    assert (check.state, check.advice) == ("problem", advice)
    assert f"{machine.settings}{seen}" in check.seen
    fix = f"Fix {machine.settings}, then `ctx install`"
    assert machine.checks("hooks")[0].advice == f"{fix} registers them."
    assert machine.checks("skill")[0].advice == f"{fix} writes it."


def test_settings_that_the_client_does_not_use_are_reported(machine: Machine, repo: Path) -> None:
    for text in (None, "", "{}", '{"disableAllHooks": false}'):
        if text is not None:
            machine.settings.write_text(text)
        assert machine.told("client settings") == []
    machine.settings.write_text('{\n  // why\n  "model": "x"\n}')
    ((state, seen, _),) = machine.told("client settings")
    assert (state, "settings.json, line 2" in seen) == ("problem", True)
    machine.settings.unlink()
    for name in ("settings.json", "settings.local.json"):
        register(repo / ".claude" / name, {}, disableAllHooks=True)
        seen = f"{repo}/.claude/{name} disables all hooks."
        assert [each[:2] for each in machine.told("client settings", repo)] == [("problem", seen)]
        (repo / ".claude" / name).unlink()


def test_a_file_in_place_of_the_store_is_reported(machine: Machine, surroundings: Path) -> None:
    home = surroundings / ".ctx"
    home.write_text("")
    ((state, seen, advice),) = machine.told("store")
    assert (state, advice) == ("problem", "Move it away, or set CTX_HOME to a folder.")
    assert seen.startswith(f"{home} is not a folder")
    advice = f"Move {home} away, then `ctx install` registers them."
    assert machine.checks("hooks")[0].advice == advice
    assert machine.checks("PATH") != []


# The programs of our name


def test_another_ctx_on_the_path_is_reported(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, path = os.path.dirname(sys.executable), machine.programs / "ctx"
    for says, state, seen in (
        ("", "warning", "`ctx` is not on the PATH."),
        ("ctx version 1.4.2 (go1.22)", "warning", f"`ctx` is {path}, and that is another program."),
        (
            "ctx 99.0.0",
            "warning",
            f"`ctx` is {path}, and that is ctx 99.0.0; this is {__version__}.",
        ),
        (f"ctx {__version__}", "ok", f"`ctx` is {path}, of the same version as this one"),
    ):
        if says:
            machine.program("ctx", says)
        ((found, told, advice),) = machine.told("PATH")
        assert (found, told, bool(advice)) == (state, seen, state == "warning")
    path.write_text("no program\n")
    assert machine.states("PATH") == ["warning"]
    path.chmod(0o600)
    monkeypatch.setenv("PATH", f":.:{machine.programs}:{ours}")
    assert machine.told("PATH") == [("ok", f"`ctx` is {ours}/ctx, this one", "")]


# The skill


def test_the_state_of_the_skill_is_reported(machine: Machine) -> None:
    place = machine.claude / "skills" / "ctx"
    page = place / "SKILL.md"
    assert machine.states("skill") == ["warning"]
    skill.write(str(place))
    assert machine.told("skill") == [("ok", f"{place}, up to date", "")]
    for text in ("Mine.\n", f"Mine.\n{skill.files()['SKILL.md']}"):
        page.write_text(text)
        assert machine.told("skill") == [("ok", f"{place}, changed by you", "")]
    page.write_text(f"Mine.\n{skill.add_mark('As it was once.')}")
    ((state, seen, advice),) = machine.told("skill")
    assert (state, advice.endswith("keeps your pages as *.edited.")) == ("warning", True)
    assert seen == f"{place} was changed by you and is from another version of ctx."
    skill.write(str(place))
    (place / "examples.md").unlink()
    seen = f"{place} is from another version of ctx."
    assert machine.told("skill") == [("warning", seen, "`ctx install` updates it.")]


def test_the_state_of_a_project_skill_is_reported(machine: Machine, repo: Path) -> None:
    skill.write(str(machine.claude / "skills" / "ctx"))
    assert machine.states("skill", repo) == ["ok"]
    place = repo / ".claude" / "skills" / "ctx"
    skill.write(str(place))
    assert machine.states("skill", repo) == ["ok", "ok"]
    (place / "examples.md").unlink()
    assert machine.checks("skill", repo)[1].advice == "`ctx install --project` updates it."


def test_nothing_is_reported_twice_in_the_home_folder(machine: Machine, surroundings: Path) -> None:
    skill.write(str(machine.claude / "skills" / "ctx"))
    register(machine.settings, {}, disableAllHooks=True)
    assert len(machine.checks("client settings", surroundings)) == 1
    assert len(machine.checks("skill", surroundings)) == 1
