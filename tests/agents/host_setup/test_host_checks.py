"""What `ctx doctor` says about hosts other than Claude Code."""

import json
from pathlib import Path

import pytest

from ctx.agents.codex import setup
from ctx.agents.host_setup import host_checks, host_install, known_setups
from ctx.agents.host_setup.host_install import HostParts
from ctx.agents.host_setup.host_setups import Machine
from ctx.operations.store_checks import DoctorCheck


@pytest.fixture
def machine(surroundings: Path, tmp_path: Path) -> Machine:
    project = tmp_path / "project"
    project.mkdir()
    variables = {"PATH": "/usr/bin:/bin"}
    return Machine(str(surroundings), variables, str(surroundings / ".ctx"), str(project))


def install(name: str, machine: Machine, *, hooks: bool = True) -> None:
    host = known_setups.setup_named(name)
    list(host_install.write_files(host, machine, HostParts(hooks=hooks)))


def own_checks(name: str, machine: Machine) -> list[DoctorCheck]:
    return list(known_setups.setup_named(name).checks(machine))


def test_a_host_without_ctx_is_no_problem(machine: Machine) -> None:
    assert list(host_checks.check_hosts(known_setups.SETUPS, machine)) == []
    (Path(machine.home) / ".cursor").mkdir()
    [check] = host_checks.check_hosts(known_setups.SETUPS, machine)
    assert (check.name, check.state) == ("cursor", "ok")
    assert "`ctx install --host cursor`" in check.seen


def test_a_part_that_is_missing_or_outdated(machine: Machine) -> None:
    install("copilot", machine, hooks=False)
    checks = list(host_checks.check_hosts(known_setups.SETUPS, machine))
    assert ("problem", "`ctx install --host copilot` adds it.") in [
        (check.state, check.advice) for check in checks
    ]
    path = Path(machine.home) / ".copilot" / "mcp-config.json"
    path.write_text(path.read_text().replace('"*"', '"recall"'))
    checks = list(host_checks.check_hosts(known_setups.SETUPS, machine))
    updates = [check for check in checks if "updates it" in check.advice]
    assert [check.state for check in updates] == ["warning"]


def test_a_broken_file_is_a_problem(machine: Machine) -> None:
    install("codex", machine)
    (Path(machine.home) / ".codex" / "hooks.json").write_text("{")
    [check] = [
        check
        for check in host_checks.check_hosts(known_setups.SETUPS, machine)
        if check.state == "problem"
    ]
    assert "hooks.json" in check.seen


# Codex


HOOKS = {
    "SessionStart": [
        {
            "hooks": [
                {
                    "type": "command",
                    "command": "/usr/bin/python3 -I -S /opt/ctx/agents/codex/entry.py session-start"
                    " || true",
                    "timeout": 10,
                }
            ]
        }
    ],
    "PostToolUse": [
        {
            "matcher": "Bash",
            "hooks": [
                {"type": "command", "command": "make lint"},
                {
                    "type": "command",
                    "command": "/usr/bin/python3 -I -S '/opt/é/ctx/agents/codex/entry.py'"
                    " post-tool-use || true",
                    "timeout": 10,
                    "statusMessage": "memory",
                    "additionalContextLimit": 0,
                },
            ],
        }
    ],
    "Stop": [
        {
            "matcher": "x",
            "hooks": [
                {
                    "type": "command",
                    "command": "/usr/bin/python3 -I -S /opt/ctx/agents/codex/entry.py stop || true",
                }
            ],
        }
    ],
}
# What Codex 0.166.0 lists for these hooks.
HASHES = {
    "session_start:0:0": "246ff17f16d9af3d01163ae82c69890917823e47554222e780add6c6a9de25a0",
    "post_tool_use:0:1": "3ee7e9b1a420912f6cd642626c596367dbbf83eb8d56b4d4badc28048e5815ee",
    "stop:0:0": "20b0c9283d6ad1fb19f4ac7d6dfaf34089865f88c411272d0004a5454fa60a77",
}


def write_reviews(folder: Path, hashes: dict[str, str]) -> None:
    path = folder / "hooks.json"
    lines = [f'[hooks.state."{path}:{key}"]\ntrusted_hash = "{hashes[key]}"\n' for key in hashes]
    (folder / "config.toml").write_text("\n".join(lines))


def test_reviews_of_codex_are_read(machine: Machine) -> None:
    folder = Path(machine.home) / ".codex"
    folder.mkdir()
    (folder / "hooks.json").write_text(json.dumps({"hooks": HOOKS}))
    events = ("SessionStart", "PostToolUse", "Stop")
    assert setup.read_review(str(folder)).new == events
    write_reviews(folder, {key: f"sha256:{value}" for key, value in HASHES.items()})
    assert setup.read_review(str(folder)).trusted == events
    write_reviews(folder, dict.fromkeys(HASHES, "sha256:0"))
    assert setup.read_review(str(folder)).changed == events
    (folder / "config.toml").write_text("broken")
    assert setup.read_review(str(folder)).new == events


def test_hooks_that_codex_has_not_reviewed(machine: Machine) -> None:
    install("codex", machine)
    [check] = own_checks("codex", machine)
    assert check.state == "problem"
    assert check.seen.startswith("Not reviewed, so Codex skips them: SessionStart, ")
    assert '"Hooks need review"' in check.advice
    assert '"Trust all and continue"' in check.advice
    assert [note.partition(".")[0] for note in setup.CodexSetup().notes(machine)] == [
        "Codex runs no hook that you have not reviewed, and `codex exec` skips it without a message"
    ]


def test_an_update_voids_the_review_of_codex(machine: Machine) -> None:
    install("codex", machine)
    folder = Path(machine.home) / ".codex"
    path = folder / "hooks.json"
    current = path.read_text()
    start = json.loads(current)["hooks"]["SessionStart"][0]["hooks"][0]["command"]
    path.write_text(current.replace(json.dumps(start), json.dumps(f"{start.split(' || ')[0]}")))
    write_reviews(folder, {key: digest for _, key, digest in setup._our_hooks(str(path))})
    checks = host_checks.check_hosts([setup.SETUP], machine)
    [advice] = [check.advice for check in checks if "hooks.json" in check.seen]
    assert advice.endswith("updates it. Codex then asks you to review the changed hooks again.")
    install("codex", machine)
    [check] = own_checks("codex", machine)
    assert check.seen == "Changed after your review, so Codex skips them: SessionStart."
    assert "Review again, because they changed: SessionStart." in next(setup.SETUP.notes(machine))


def test_hooks_in_both_files_of_codex(machine: Machine) -> None:
    install("codex", machine)
    path = Path(machine.home) / ".codex" / "config.toml"
    path.write_text(path.read_text() + '[[hooks.Stop]]\nhooks = [{command = "ctx hook stop"}]\n')
    assert "each runs twice" in own_checks("codex", machine)[-1].seen


# Gemini CLI


def test_settings_that_keep_gemini_from_running_hooks(machine: Machine) -> None:
    install("gemini", machine)
    folder = Path(machine.home) / ".gemini"
    path = folder / "settings.json"
    assert [check.state for check in own_checks("gemini", machine)] == ["warning", "ok"]
    (folder / "trustedFolders.json").write_text(json.dumps({machine.project: "TRUST_FOLDER"}))
    assert [check.state for check in own_checks("gemini", machine)] == ["ok"]
    settings = json.loads(path.read_text())
    settings["hooksConfig"] = {"enabled": False, "disabled": ["ctx"]}
    settings["mcpServers"]["ctx"]["trust"] = True
    path.write_text(json.dumps(settings))
    assert [check.state for check in own_checks("gemini", machine)] == ["problem"] * 2 + ["ok"]
    assert list(known_setups.setup_named("gemini").notes(machine)) == []
    install("gemini", machine)
    assert json.loads(path.read_text())["mcpServers"]["ctx"]["trust"] is True


# OpenCode and Copilot CLI


def test_a_second_plugin_of_opencode(machine: Machine) -> None:
    install("opencode", machine)
    assert all(check.state == "ok" for check in own_checks("opencode", machine))
    second = Path(machine.project) / ".opencode" / "plugin" / "ctx.js"
    second.parent.mkdir(parents=True)
    second.write_text("export {}")
    assert "warning" in [check.state for check in own_checks("opencode", machine)]


@pytest.mark.parametrize(
    ("command", "states"), [("ctx hook stop || true", ["warning"]), ("make lint", [])]
)
def test_hooks_that_copilot_runs_twice(machine: Machine, command: str, states: list[str]) -> None:
    path = Path(machine.project) / ".claude" / "settings.json"
    path.parent.mkdir()
    hook = {"type": "command", "command": command}
    path.write_text(json.dumps({"hooks": {"Stop": [{"hooks": [hook]}]}}))
    assert [check.state for check in own_checks("copilot", machine)] == states


def test_an_extension_provides_the_hooks_alone(machine: Machine) -> None:
    (Path(machine.home) / ".gemini" / "extensions" / host_checks.EXTENSION).mkdir(parents=True)
    [check] = host_checks.check_hosts(known_setups.SETUPS, machine)
    assert (check.name, check.state) == ("gemini", "ok")
    install("gemini", machine)
    checks = host_checks.check_hosts(known_setups.SETUPS, machine)
    assert [check.advice for check in checks if "twice" in check.seen] == [
        "Remove the extension, or run `ctx uninstall --host gemini`."
    ]
