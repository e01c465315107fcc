"""The doctor: checks of the client, its settings and the programs on the PATH."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ctx import __version__
from ctx.agents.claude_code import clients, registration
from ctx.agents.claude_code.doctor import Diagnosis, examine
from ctx.agents.claude_code.settings import Setup
from ctx.agents.host_setup import hook_commands, skill
from ctx.cli.settings import Settings, variables
from ctx.ids import CLI_SESSION
from ctx.operations.store_checks import DoctorCheck
from ctx.workspace import Environment

Register = Callable[..., Path]


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The first folder on the PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return folder


def program(path: Path, says: str) -> None:
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(0o755)


def this_ctx(programs: Path) -> None:
    (programs / "ctx").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ctx "$@"\n')
    (programs / "ctx").chmod(0o755)


@pytest.fixture
def claude(surroundings: Path) -> Path:
    folder = surroundings / ".claude"
    folder.mkdir()
    return folder


def diagnosis(folder: Path) -> Diagnosis:
    found = Settings.from_environment()._replace(folder=str(folder))
    around = Environment(str(folder), found.user_store, found.environment, (), CLI_SESSION)
    there = clients.find_clients(variables()["PATH"], found.expanded("~"), found.claude_folder)
    return examine(Setup(around, found.claude_folder, there, variables()))


def about(name: str, folder: Path) -> list[DoctorCheck]:
    return checks_named(name, diagnosis(folder))


def checks_named(name: str, found: Diagnosis) -> list[DoctorCheck]:
    return [check for check in found.checks if check.name == name]


def states(name: str, folder: Path) -> list[str]:
    return [check.state for check in about(name, folder)]


def settings(path: Path, entries: dict[str, Any], **more: Any) -> None:
    path.parent.mkdir(exist_ok=True)
    hooks = {event: [group] for event, group in entries.items()}
    path.write_text(json.dumps({"hooks": hooks, **more}, indent=2))


def users(*versions: str | None) -> dict[str, Any]:
    return registration.user_entries(versions, interpreter=sys.executable, budget=2_000)


def one(event: str, command: str) -> dict[str, Any]:
    return {event: {"matcher": "", "hooks": [{"type": "command", "command": command}]}}


# Clients


def test_clients_are_listed_with_their_versions(programs: Path, folder: Path) -> None:
    assert about("client", folder) == [
        DoctorCheck(
            "client",
            "warning",
            "Claude Code is neither on the PATH nor in one of its usual places.",
            ("Install it, then run `ctx install` again. ctx does not find one inside an editor."),
        )
    ]
    program(programs / "claude", "2.1.325 (Claude Code)")
    assert about("client", folder) == [
        DoctorCheck("client", "ok", f"Claude Code 2.1.325: {programs}/claude", "")
    ]
    program(programs / "claude", "Segmentation fault")
    (check,) = about("client", folder)
    assert (check.state, check.seen) == (
        "warning",
        f"{programs}/claude does not print its version.",
    )


# Settings and hooks


def test_missing_hooks_are_a_problem(programs: Path, claude: Path, folder: Path) -> None:
    assert about("hooks", folder) == [
        DoctorCheck(
            "hooks",
            "problem",
            "No hook of ctx is registered with Claude Code.",
            "`ctx install` registers them.",
        )
    ]
    assert about("hooks run", folder) == []


def test_complete_hooks_are_ok(programs: Path, claude: Path, folder: Path) -> None:
    program(programs / "claude", "2.1.325 (Claude Code)")
    settings(claude / "settings.json", users("2.1.325"))
    found = diagnosis(folder)
    assert checks_named("hooks", found) == [
        DoctorCheck("hooks", "ok", f"9 in {claude}/settings.json, up to date", "")
    ]
    assert checks_named("hooks run", found) == [
        DoctorCheck(
            "hooks run",
            "ok",
            "tried session-start, prompt-submit, stop, post-tool-use, post-tool-use-failure,"
            " pre-compact, session-end, subagent-stop, pre-edit: fine",
            "",
        )
    ]


def test_an_event_that_a_client_does_not_accept_is_a_problem(
    programs: Path, claude: Path, folder: Path
) -> None:
    program(programs / "claude", "2.0.47 (Claude Code)")
    command = registration.plain_command("post-tool-use-failure")
    settings(claude / "settings.json", one("PostToolUseFailure", command))
    assert about("client settings", folder) == [
        DoctorCheck(
            "client settings",
            "problem",
            f"{claude}/settings.json, line 3, column 5: Claude Code 2.0.47 does not know"
            " PostToolUseFailure, and drops all hooks of the file for it.",
            "`ctx install` removes our hook from it.",
        )
    ]


@pytest.mark.parametrize("name", ["Foo", "PostToolUseFailure"])
def test_a_foreign_event_that_a_client_does_not_accept_is_a_problem(
    programs: Path, claude: Path, folder: Path, name: str
) -> None:
    """One client that does not accept it is enough."""
    old = claude / "local"
    old.mkdir()
    program(programs / "claude", "2.1.325 (Claude Code)")
    program(old / "claude", "2.0.47 (Claude Code)")
    settings(claude / "settings.json", {**users("2.0.47"), name: {"hooks": []}})
    found = diagnosis(folder)
    line = (claude / "settings.json").read_text().splitlines().index(f'    "{name}": [') + 1
    assert checks_named("client settings", found) == [
        DoctorCheck(
            "client settings",
            "problem",
            f"{claude}/settings.json, line {line}, column 5: Claude Code 2.0.47 does not know"
            f" {name}, and drops all hooks of the file for it.",
            f"Remove it, or update {old}/claude.",
        )
    ]
    # Nobody is told that all is well with that file.
    assert checks_named("hooks", found) == []
    (old / "claude").unlink()
    (claude / "settings.json").write_text(json.dumps({"hooks": {name: []}}))
    assert states("client settings", folder) == []


def test_the_advice_for_local_settings_is_to_edit_them(
    programs: Path, claude: Path, repo: Path
) -> None:
    """`ctx install` does not change the local settings of a project."""
    program(programs / "claude", "2.0.47 (Claude Code)")
    local = repo / ".claude" / "settings.local.json"
    settings(local, one("PostToolUseFailure", "ctx hook post-tool-use-failure || true"))
    (check,) = about("client settings", repo)
    assert check.advice == f"Remove it, or update {programs}/claude."


def test_foreign_events_that_all_clients_accept_are_ok(
    programs: Path, claude: Path, folder: Path
) -> None:
    program(programs / "claude", "2.0.47 (Claude Code)")
    settings(claude / "settings.json", {**users("2.0.47"), "Notification": {"hooks": []}})
    found = diagnosis(folder)
    assert checks_named("client settings", found) == []
    assert [check.state for check in checks_named("hooks", found)] == ["ok"]


def without(entries: dict[str, Any], *events: str) -> dict[str, Any]:
    return {event: group for event, group in entries.items() if event not in events}


def test_some_missing_hooks_are_a_problem(programs: Path, claude: Path, repo: Path) -> None:
    program(programs / "claude", "2.1.325 (Claude Code)")
    settings(claude / "settings.json", without(users("2.1.325"), "Stop", "SessionEnd"))
    missing = DoctorCheck(
        "hooks", "problem", "Not registered: Stop, SessionEnd.", "`ctx install` registers them."
    )
    assert about("hooks", repo) == [missing]
    # Who has them in the project too has them.
    settings(repo / ".claude" / "settings.json", registration.project_entries())
    assert states("hooks", repo) == ["ok", "ok"]
    (claude / "settings.json").unlink()
    shared = without(registration.project_entries(), "Stop", "SessionEnd")
    settings(repo / ".claude" / "settings.json", shared)
    advice = "`ctx install --project` registers them."
    assert about("hooks", repo) == [missing._replace(advice=advice)]


def test_hooks_with_a_narrow_matcher_are_reported(
    programs: Path, claude: Path, folder: Path
) -> None:
    program(programs / "claude", "2.1.325 (Claude Code)")
    entries = users("2.1.325")
    # The last two leave nothing out.
    matchers = {
        "SessionStart": "resume",
        "PostToolUse": "Bash|Write",
        "PreCompact": "*",
        "Stop": "x",
    }
    for event, matcher in matchers.items():
        entries[event] = {**entries[event], "matcher": matcher}
    settings(claude / "settings.json", entries)
    assert about("hooks", folder) == [
        DoctorCheck(
            "hooks",
            "warning",
            f"{claude}/settings.json runs {event} only for `{matchers[event]}`.",
            'Set its matcher to "" unless this is intended: ctx does not see other calls.',
        )
        for event in ("SessionStart", "PostToolUse")
    ]


def test_modified_command_lines_of_our_hooks_are_accepted(
    programs: Path, claude: Path, folder: Path
) -> None:
    """They are not missing, and cannot be updated."""
    program(programs / "claude", "2.1.325 (Claude Code)")
    lines = (
        "ctx hook stop 2>/dev/null || true",
        "cd / && ctx hook stop",
        "sh -c 'ctx hook stop'",
        "CTX_HOME=/data ctx hook stop",
    )
    hooks: list[dict[str, Any]] = [{"type": "command", "command": line} for line in lines]
    hooks.append({"type": "command", "command": "ctx", "args": ["hook", "stop"]})
    settings(
        claude / "settings.json", {"Stop": {"hooks": hooks}, **without(users("2.1.325"), "Stop")}
    )
    assert about("hooks", folder) == [
        DoctorCheck(
            "hooks",
            "warning",
            f"{claude}/settings.json, line {number}, column 11: a hook of ctx that `ctx install`"
            f" does not manage, for Stop: {line}",
            "Remove it, then run `ctx install`; otherwise the hook runs twice.",
        )
        for number, line in zip((6, 10, 14, 18, 22), [*lines, "ctx hook stop"], strict=True)
    ]


def test_foreign_hooks_are_ignored(programs: Path, claude: Path, folder: Path) -> None:
    program(programs / "claude", "2.1.325 (Claude Code)")
    entries = users("2.1.325")
    for command in ("notify-send done", "echo ctx", "ctx status"):
        entries["Stop"]["hooks"].append({"type": "command", "command": command})
    settings(claude / "settings.json", entries)
    assert states("hooks", folder) == ["ok"]


def test_outdated_hooks_are_a_warning(programs: Path, claude: Path, folder: Path) -> None:
    gone = hook_commands.command_line("stop", interpreter="/gone/python", entry=registration.ENTRY)
    program(programs / "claude", "2.1.325 (Claude Code)")
    settings(claude / "settings.json", {**users("2.1.325"), **one("Stop", gone)})
    found = diagnosis(folder)
    assert checks_named("hooks", found) == [
        DoctorCheck(
            "hooks",
            "warning",
            f"{claude}/settings.json has hooks that differ from those of this ctx.",
            "`ctx install` updates them.",
        )
    ]
    fine, check = checks_named("hooks run", found)
    assert (fine.state, check.state) == ("ok", "problem")
    assert check.seen.startswith("stop: it does nothing.")
    assert "/gone/python" in check.seen
    assert check.advice == f"`ctx install` registers it again. Now it is: {gone}"


def test_hooks_of_a_removed_package_are_a_problem(
    programs: Path, claude: Path, folder: Path
) -> None:
    entry = "/gone/ctx/agents/claude_code/entry.py"
    command = hook_commands.command_line("stop", interpreter=sys.executable, entry=entry)
    settings(claude / "settings.json", one("Stop", command))
    (check,) = about("hooks run", folder)
    assert check.state == "problem"
    assert check.seen.startswith("stop: it does nothing. ")
    assert entry in check.seen
    assert check.advice == f"`ctx install` registers it again. Now it is: {command}"


def test_hooks_of_a_project_need_ctx_on_the_path(programs: Path, claude: Path, repo: Path) -> None:
    settings(repo / ".claude" / "settings.json", registration.project_entries())
    below = repo / "src"
    below.mkdir()
    found = diagnosis(below)
    assert checks_named("hooks", found) == [
        DoctorCheck("hooks", "ok", f"8 in {repo}/.claude/settings.json, up to date", "")
    ]
    (missing,) = checks_named("hooks run", found)
    assert missing.state == "problem"
    words = "session-start, prompt-submit, stop, post-tool-use, pre-compact, session-end"
    assert missing.seen.startswith(f"{words}, subagent-stop, pre-edit: it does nothing.")
    assert missing.advice == (
        "`ctx hook session-start || true` needs this ctx on the PATH of the client."
    )
    this_ctx(programs)
    settings(repo / ".claude" / "settings.json", one("Stop", "ctx hook stop || true"))
    assert states("hooks run", below) == ["ok"]


def test_an_enabled_plugin_provides_the_hooks(programs: Path, claude: Path, folder: Path) -> None:
    settings(claude / "settings.json", {}, enabledPlugins={"ctx@ctx-memory": True})
    found = diagnosis(folder)
    assert checks_named("hooks", found) == [
        DoctorCheck("hooks", "ok", "the plugin `ctx` is enabled", "")
    ]
    # They are plain `ctx`, which is not there.
    assert [check.state for check in checks_named("hooks run", found)] == ["problem"]
    # It brings its own skill.
    assert checks_named("skill", found) == []


@pytest.mark.parametrize("plugins", [{"ctx@ctx-memory": False}, {"other@x": True}, ["ctx@x"], 7])
def test_a_disabled_plugin_does_not_count(
    programs: Path, claude: Path, folder: Path, plugins: object
) -> None:
    settings(claude / "settings.json", {}, enabledPlugins=plugins)
    assert states("hooks", folder) == ["problem"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "settings.json, line 1"),
        ('{\n  // why\n  "model": "x"\n}', "settings.json, line 2"),
        ("[]", "settings.json is not an object."),
        ('{"disableAllHooks": true}', "settings.json disables all hooks."),
    ],
)
def test_invalid_settings_are_a_problem(
    programs: Path, claude: Path, folder: Path, text: str, words: str
) -> None:
    (claude / "settings.json").write_text(text)
    (check,) = about("client settings", folder)
    assert check.state == "problem"
    assert words in check.seen
    assert check.advice


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("{", "Fix the file: as it is, the client reads no hooks from it."),
        ("[]", "Fix the file: as it is, the client reads no hooks from it."),
        (b"\xff", "Save the file as UTF-8."),
        (None, "Replace the link by a plain file."),
    ],
)
def test_unreadable_settings_are_reported_before_missing_hooks(
    programs: Path, claude: Path, folder: Path, text: str | bytes | None, advice: str
) -> None:
    """The advice never names a command that would fail."""
    path = claude / "settings.json"
    if text is None:
        path.symlink_to(path)
    else:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    found = diagnosis(folder)
    (check,) = checks_named("client settings", found)
    assert (check.state, check.advice) == ("problem", advice)
    assert str(path) in check.seen
    assert (
        checks_named("hooks", found)[0].advice == f"Fix {path}, then `ctx install` registers them."
    )
    assert checks_named("skill", found)[0].advice == f"Fix {path}, then `ctx install` writes it."


def test_a_file_in_place_of_the_store_is_reported(
    programs: Path, claude: Path, surroundings: Path, folder: Path
) -> None:
    home = surroundings / ".ctx"
    home.write_text("")
    found = diagnosis(folder)
    assert checks_named("store", found) == [
        DoctorCheck(
            "store",
            "problem",
            f"{home} is not a folder, so it cannot be the user store.",
            "Move it away, or set CTX_HOME to a folder.",
        )
    ]
    assert checks_named("hooks", found)[0].advice == (
        f"Move {home} away, then `ctx install` registers them."
    )
    assert checks_named("PATH", found) != []


@pytest.mark.parametrize("name", ["settings.json", "settings.local.json"])
def test_hooks_disabled_by_a_project_are_reported(
    programs: Path, claude: Path, repo: Path, name: str
) -> None:
    settings(repo / ".claude" / name, {}, disableAllHooks=True)
    assert [check.seen for check in about("client settings", repo)] == [
        f"{repo}/.claude/{name} disables all hooks."
    ]


def test_valid_or_missing_settings_are_not_reported(
    programs: Path, claude: Path, folder: Path
) -> None:
    for text in (None, "", "{}", '{"disableAllHooks": false}'):
        if text is not None:
            (claude / "settings.json").write_text(text)
        assert about("client settings", folder) == []


# The programs of our name


def test_another_ctx_on_the_path_is_reported(
    programs: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert about("PATH", folder)[0].seen == "`ctx` is not on the PATH."
    program(programs / "ctx", "ctx version 1.4.2 (go1.22)")
    ours = os.path.dirname(sys.executable)
    assert about("PATH", folder) == [
        DoctorCheck(
            "PATH",
            "warning",
            f"`ctx` is {programs}/ctx, and that is another program.",
            f"Put {ours} before everything else on the PATH.",
        )
    ]
    program(programs / "ctx", "ctx 99.0.0")
    assert about("PATH", folder)[0].seen == (
        f"`ctx` is {programs}/ctx, and that is ctx 99.0.0; this is {__version__}."
    )
    program(programs / "ctx", f"ctx {__version__}")
    assert states("PATH", folder) == ["ok"]
    (programs / "ctx").write_text("no program\n")
    assert states("PATH", folder) == ["warning"]
    (programs / "ctx").chmod(0o600)
    monkeypatch.setenv("PATH", f":.:{programs}:{ours}")
    assert about("PATH", folder) == [
        DoctorCheck("PATH", "ok", f"`ctx` is {ours}/ctx, this one", "")
    ]


# The skill


def test_the_state_of_the_skill_is_reported(programs: Path, claude: Path, folder: Path) -> None:
    place = claude / "skills" / "ctx"
    assert states("skill", folder) == ["warning"]
    skill.write(str(place))
    assert about("skill", folder) == [DoctorCheck("skill", "ok", f"{place}, up to date", "")]
    (place / "SKILL.md").write_text("Mine.\n")
    assert about("skill", folder) == [DoctorCheck("skill", "ok", f"{place}, changed by you", "")]
    ours = skill.files()["SKILL.md"]
    (place / "SKILL.md").write_text(f"Mine.\n{ours}")
    assert about("skill", folder) == [DoctorCheck("skill", "ok", f"{place}, changed by you", "")]
    (place / "SKILL.md").write_text(f"Mine.\n{skill.add_mark('As it was once.')}")
    assert about("skill", folder) == [
        DoctorCheck(
            "skill",
            "warning",
            f"{place} was changed by you and is from another version of ctx.",
            "`ctx install` updates it, and keeps your pages as *.edited.",
        )
    ]
    skill.write(str(place))
    (place / "examples.md").unlink()
    assert about("skill", folder) == [
        DoctorCheck(
            "skill",
            "warning",
            f"{place} is from another version of ctx.",
            "`ctx install` updates it.",
        )
    ]


def test_the_state_of_a_project_skill_is_reported(programs: Path, claude: Path, repo: Path) -> None:
    skill.write(str(claude / "skills" / "ctx"))
    assert states("skill", repo) == ["ok"]
    place = repo / ".claude" / "skills" / "ctx"
    skill.write(str(place))
    assert states("skill", repo) == ["ok", "ok"]
    (place / "examples.md").unlink()
    assert about("skill", repo)[1].advice == "`ctx install --project` updates it."


def test_nothing_is_reported_twice_in_the_home_folder(
    programs: Path, claude: Path, surroundings: Path
) -> None:
    skill.write(str(claude / "skills" / "ctx"))
    settings(claude / "settings.json", {}, disableAllHooks=True)
    found = diagnosis(surroundings)
    assert len(checks_named("client settings", found)) == 1
    assert len(checks_named("skill", found)) == 1
