"""The doctor: what it sees of a client, its settings, and the programs around it."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ctx import __version__
from ctx.agents.claude_code import registration, skill
from ctx.agents.claude_code.doctor import Diagnosis, Setup, examine
from ctx.cli.settings import Settings, variables
from ctx.ids import CLI_SESSION
from ctx.operations.checkup import Check
from ctx.workspace import Surroundings

Register = Callable[..., Path]


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What a shell finds before everything else."""
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
    around = Surroundings(
        str(folder), found.user_store, found.environment, (), CLI_SESSION, found.database
    )
    return examine(Setup(around, found.claude_folder, found.expanded("~"), variables()))


def about(name: str, folder: Path) -> list[Check]:
    return named(name, diagnosis(folder))


def named(name: str, found: Diagnosis) -> list[Check]:
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


def test_clients_and_their_versions(programs: Path, folder: Path) -> None:
    assert about("client", folder) == [
        Check(
            "client",
            "warning",
            "Claude Code is not on the PATH.",
            "Install it, then run `ctx install` again.",
        )
    ]
    program(programs / "claude", "2.1.325 (Claude Code)")
    assert about("client", folder) == [
        Check("client", "ok", f"Claude Code 2.1.325: {programs}/claude", "")
    ]
    program(programs / "claude", "Segmentation fault")
    (check,) = about("client", folder)
    assert (check.state, check.seen) == (
        "warning",
        f"{programs}/claude does not say which version it is.",
    )


# Settings and hooks


def test_no_hooks_are_a_problem(programs: Path, claude: Path, folder: Path) -> None:
    assert about("hooks", folder) == [
        Check(
            "hooks",
            "problem",
            "No hook of ctx is registered with Claude Code.",
            "`ctx install` registers them.",
        )
    ]
    assert about("hooks run", folder) == []


def test_hooks_as_they_should_be(programs: Path, claude: Path, folder: Path) -> None:
    program(programs / "claude", "2.1.325 (Claude Code)")
    settings(claude / "settings.json", users("2.1.325"))
    found = diagnosis(folder)
    assert named("hooks", found) == [
        Check("hooks", "ok", f"8 in {claude}/settings.json, up to date", "")
    ]
    assert named("hooks run", found) == [
        Check(
            "hooks run",
            "ok",
            "tried session-start, prompt-submit, stop, post-tool-use, post-tool-use-failure,"
            " pre-compact, session-end, subagent-stop: fine",
            "",
        )
    ]


def test_an_event_that_a_client_does_not_know(programs: Path, claude: Path, folder: Path) -> None:
    program(programs / "claude", "2.0.47 (Claude Code)")
    command = registration.plain_command("post-tool-use-failure")
    settings(claude / "settings.json", one("PostToolUseFailure", command))
    assert about("hooks", folder) == [
        Check(
            "hooks",
            "problem",
            f"{claude}/settings.json has PostToolUseFailure, which not every client here knows.",
            "`ctx install` takes it out: an older client drops all hooks for it.",
        )
    ]


def test_hooks_of_another_time(programs: Path, claude: Path, folder: Path) -> None:
    gone = registration.command_line("stop", interpreter="/gone/python", entry=registration.ENTRY)
    settings(claude / "settings.json", one("Stop", gone))
    found = diagnosis(folder)
    assert named("hooks", found) == [
        Check(
            "hooks",
            "warning",
            f"{claude}/settings.json has hooks as this ctx would not register them.",
            "`ctx install` brings them up to date.",
        )
    ]
    (check,) = named("hooks run", found)
    assert check.state == "problem"
    assert check.seen.startswith("stop: it does nothing.")
    assert "/gone/python" in check.seen
    assert check.advice == f"`ctx install` registers it anew; now it is: {gone}"


def test_hooks_of_a_project_need_ctx_on_the_path(programs: Path, claude: Path, repo: Path) -> None:
    settings(repo / ".claude" / "settings.json", registration.project_entries())
    below = repo / "src"
    below.mkdir()
    found = diagnosis(below)
    assert named("hooks", found) == [
        Check("hooks", "ok", f"7 in {repo}/.claude/settings.json, up to date", "")
    ]
    (missing,) = named("hooks run", found)
    assert missing.state == "problem"
    words = "session-start, prompt-submit, stop, post-tool-use, pre-compact, session-end"
    assert missing.seen.startswith(f"{words}, subagent-stop: it does nothing.")
    assert missing.advice == (
        "`ctx hook session-start || true` needs this ctx on the PATH of the client."
    )
    this_ctx(programs)
    settings(repo / ".claude" / "settings.json", one("Stop", "ctx hook stop || true"))
    assert states("hooks run", below) == ["ok"]


def test_hooks_of_the_plugin(programs: Path, claude: Path, folder: Path) -> None:
    settings(claude / "settings.json", {}, enabledPlugins={"ctx@ctx-memory": True})
    found = diagnosis(folder)
    assert named("hooks", found) == [Check("hooks", "ok", "the plugin `ctx` is switched on", "")]
    # They are plain `ctx`, which is not there.
    assert [check.state for check in named("hooks run", found)] == ["problem"]
    # It brings its own skill.
    assert named("skill", found) == []


@pytest.mark.parametrize("plugins", [{"ctx@ctx-memory": False}, {"other@x": True}, ["ctx@x"], 7])
def test_a_plugin_that_is_not_on(
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
        ('{"disableAllHooks": true}', "settings.json switches all hooks off."),
    ],
)
def test_settings_that_run_no_hooks(
    programs: Path, claude: Path, folder: Path, text: str, words: str
) -> None:
    (claude / "settings.json").write_text(text)
    (check,) = about("client settings", folder)
    assert check.state == "problem"
    assert words in check.seen


@pytest.mark.parametrize("name", ["settings.json", "settings.local.json"])
def test_a_project_can_switch_hooks_off(
    programs: Path, claude: Path, repo: Path, name: str
) -> None:
    settings(repo / ".claude" / name, {}, disableAllHooks=True)
    assert [check.seen for check in about("client settings", repo)] == [
        f"{repo}/.claude/{name} switches all hooks off."
    ]


def test_settings_that_are_fine_or_not_there(programs: Path, claude: Path, folder: Path) -> None:
    for text in (None, "", "{}", '{"disableAllHooks": false}'):
        if text is not None:
            (claude / "settings.json").write_text(text)
        assert about("client settings", folder) == []


# The programs of our name


def test_which_ctx_a_shell_finds(
    programs: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert about("PATH", folder)[0].seen == "`ctx` is not on the PATH."
    program(programs / "ctx", "ctx version 1.4.2 (go1.22)")
    ours = os.path.dirname(sys.executable)
    assert about("PATH", folder) == [
        Check(
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
    assert about("PATH", folder) == [Check("PATH", "ok", f"`ctx` is {ours}/ctx, this one", "")]


# The skill


def test_the_skill(programs: Path, claude: Path, folder: Path) -> None:
    place = claude / "skills" / "ctx"
    assert states("skill", folder) == ["warning"]
    skill.write(str(place))
    assert about("skill", folder) == [Check("skill", "ok", f"{place}, up to date", "")]
    (place / "SKILL.md").write_text("Mine.\n")
    assert about("skill", folder) == [Check("skill", "ok", f"{place}, changed by you", "")]
    skill.write(str(place))
    (place / "examples.md").unlink()
    assert about("skill", folder) == [
        Check(
            "skill",
            "warning",
            f"{place} is of another version of ctx.",
            "`ctx install` brings it up to date.",
        )
    ]


def test_the_skill_of_a_project(programs: Path, claude: Path, repo: Path) -> None:
    skill.write(str(claude / "skills" / "ctx"))
    assert states("skill", repo) == ["ok"]
    place = repo / ".claude" / "skills" / "ctx"
    skill.write(str(place))
    assert states("skill", repo) == ["ok", "ok"]
    (place / "examples.md").unlink()
    assert about("skill", repo)[1].advice == "`ctx install --project` brings it up to date."


def test_in_the_home_folder_nothing_is_named_twice(
    programs: Path, claude: Path, surroundings: Path
) -> None:
    skill.write(str(claude / "skills" / "ctx"))
    settings(claude / "settings.json", {}, disableAllHooks=True)
    found = diagnosis(surroundings)
    assert len(named("client settings", found)) == 1
    assert len(named("skill", found)) == 1
