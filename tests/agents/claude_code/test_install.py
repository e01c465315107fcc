"""A hook is tried as the client would run it, without side effects."""

import glob
import os
import sys
import tempfile
from pathlib import Path

import pytest

from ctx.agents.claude_code import install, registration
from ctx.agents.claude_code.hooks import HOOKS
from ctx.agents.claude_code.install import try_command
from ctx.agents.host_setup import hook_commands, own_program
from ctx.errors import HookFailed, PathRefused

ENVIRONMENT = {"PATH": "/usr/bin:/bin", "HOME": "/nowhere"}
# What a hook that has run leaves behind.
RAN = 'touch "$CTX_HOME/spool"'


def command(word: str) -> str:
    return hook_commands.command_line(
        word, HOOKS, interpreter=sys.executable, entry=registration.ENTRY
    )


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for temporary files; it must be empty at the end."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.mark.parametrize("word", ["session-start", "session-start --part 2", "stop", "session-end"])
def test_our_hooks_work_and_leave_nothing_behind(
    word: str, surroundings: Path, temporary: Path
) -> None:
    name = word.split()[0]
    # The user's own store, switches and session must not come into it.
    environment = {
        **os.environ,
        "CTX_DB": "/nowhere/store.db",
        "CTX_OFF": "1",
        "CLAUDECODE": "1",
        "CLAUDE_CODE_SESSION_ID": "mine",
    }
    assert try_command(command(word), name, environment) == ""
    assert os.listdir(temporary) == []
    assert os.listdir(surroundings) == []


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (RAN, ""),
        (f"{RAN}; echo '{{}}'", ""),
        (f"{RAN}; exit 3", "it ends with exit code 3."),
        (f"{RAN}; echo no >&2; exit 2", "it ends with exit code 2. no"),
        (f"{RAN}; echo Hello", "what it prints is not a JSON object: Hello"),
        (f"{RAN}; echo '[1]'", "what it prints is not a JSON object: [1]"),
        (f"{RAN}; echo 'a line' >> \"$CTX_HOME/hook.log\"", "a line"),
        ("true", "it does nothing."),
    ],
)
def test_problems_of_a_hook_are_described(line: str, problem: str) -> None:
    assert try_command(line, "stop", ENVIRONMENT) == problem


def test_a_missing_program_is_noticed() -> None:
    for word in ("stop", "session-start"):
        line = hook_commands.command_line(word, HOOKS, interpreter="/nowhere/python", entry="x.py")
        found = try_command(line, word, ENVIRONMENT)
        assert found.startswith("it does nothing. ")
        assert "/nowhere/python" in found


def test_a_hook_gets_a_sample_payload_and_a_clean_environment(tmp_path: Path) -> None:
    line = f"{RAN}; cat > {tmp_path}/said; env > {tmp_path}/env; pwd > {tmp_path}/folder"
    assert try_command(line, "prompt-submit", {**ENVIRONMENT, "CTX_OFF": "1"}) == ""
    assert '"hook_event_name": "UserPromptSubmit"' in (tmp_path / "said").read_text()
    assert '"session_id": "ctx-install-check"' in (tmp_path / "said").read_text()
    names = {line.partition("=")[0] for line in (tmp_path / "env").read_text().splitlines()}
    assert names - {"PWD", "SHLVL", "_", "OLDPWD"} == {
        *("PATH", "HOME", "CTX_HOME", "CTX_WORKER_AUTOSTART", "CTX_PATIENCE")
    }
    assert not os.path.exists((tmp_path / "folder").read_text().strip())


def test_the_first_failing_hook_is_named() -> None:
    entries = {
        event: {"matcher": "", "hooks": [{"type": "command", "command": line}]}
        for event, line in (("Stop", command("stop")), ("SessionEnd", "ctx hook session-end"))
    }
    with pytest.raises(HookFailed) as raised:
        install.try_hooks(entries, ENVIRONMENT)
    assert raised.value.message.startswith("The hook session-end does not work: it ends with exit")
    assert raised.value.detail == "  ctx hook session-end"
    del entries["SessionEnd"]
    assert install.try_hooks(entries, ENVIRONMENT) == ("stop",)


def test_bytecode_is_compiled_in_any_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path / "elsewhere"))
    own_program.compile_bytecode()
    agents = os.path.dirname(os.path.dirname(registration.ENTRY))
    compiled = os.path.join(agents, "runtime", "__pycache__", "hook.*.pyc")
    assert glob.glob(compiled)
    assert not (tmp_path / "elsewhere").exists()


SERVER = install.user_server("/home/me", {})


def test_folders_with_the_same_name_have_separate_backups(tmp_path: Path) -> None:
    places = [
        install.user_place("/home/me/.claude", "/c", SERVER),
        install.user_place("/home/me/work", "/c", SERVER),
        install.user_place("/srv/work", "/c", SERVER),
        install.project_place(str(tmp_path / "a" / "app"), "/c"),
        install.project_place(str(tmp_path / "b" / "app"), "/c"),
    ]
    names = [place.backup.removeprefix("/c/backups/") for place in places]
    assert names[0] == "settings.json"
    assert [name.rpartition("-")[0] for name in names[1:]] == [
        "settings.json-of-work",
        "settings.json-of-work",
        "settings.json-of-app",
        "settings.json-of-app",
    ]
    assert len(set(names)) == 5


@pytest.mark.parametrize(
    "name", [".claude", ".claude/settings.json", ".claude/skills", ".mcp.json"]
)
def test_a_link_in_a_project_is_refused(tmp_path: Path, name: str) -> None:
    root, elsewhere = tmp_path / "app", tmp_path / "elsewhere"
    elsewhere.mkdir()
    link = root / name
    link.parent.mkdir(parents=True)
    link.symlink_to(elsewhere)
    with pytest.raises(PathRefused, match="is a link to a place outside the project"):
        install.project_place(str(root), str(tmp_path / "home"))
    link.unlink()
    (root / "inside").mkdir()
    link.symlink_to(root / "inside")
    assert install.project_place(str(root), str(tmp_path / "home")).level == "project"
