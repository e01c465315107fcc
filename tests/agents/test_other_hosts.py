"""The hooks of every host but the first: few modules, safe with any input, and none of another.

`claude_code/test_hook_fuzz.py` and `tests/test_hook_imports.py` test the first host in detail; the
process is the same.
"""

import json
import shutil
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest

from ctx.agents import known_hosts
from ctx.agents.claude_code.hooks import ClaudeHooks
from ctx.agents.known_hosts import HOSTS
from ctx.agents.runtime.hook import Hook, answer
from ctx.hook_files import spool
from ctx.ids import CLI_SESSION
from ctx.layout import UserStore
from ctx.operations import apply
from ctx.workspace import Environment, open_memory
from tests import effort
from tests.agents.claude_code.hook_inputs import Inputs
from tests.agents.claude_code.hook_processes import reap
from tests.conftest import Ctx
from tests.test_hook_imports import CAPTURING

SEED = 20261117
COUNT = effort.times(120)
"""For each hook of each host, all of them different."""

# The names of Claude Code's fields, which the inputs have, in the payloads of each host.
FIELDS = {
    "copilot": {
        "session_id": "sessionId",
        "transcript_path": "transcriptPath",
        "tool_name": "toolName",
        "tool_input": "toolArgs",
        "tool_response": "toolResult",
    },
    "opencode": {
        "session_id": "session",
        "cwd": "folder",
        "tool_name": "tool",
        "tool_input": "args",
        "tool_response": "output",
        "tool_use_id": "call",
        "last_assistant_message": "messages",
    },
    "qwen": {"tool_use_id": "tool_call_id"},
}
WORDS = tuple(word for word in spool.EVENTS if word != "subagent-stop")
EACH_HOST = pytest.mark.parametrize("host", FIELDS)


@EACH_HOST
@pytest.mark.parametrize("word", WORDS)
def test_hooks_survive_any_input(
    host: str, word: str, surroundings: Path, repo: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then everything that was stored is read, or set aside with a reason."""
    assert ctx("add", "--type=fact", "--tag=tier:reference", "Builds run on Mondays.").code == 0
    monkeypatch.setattr(sys, "executable", shutil.which("true"))
    home = str(surroundings / ".ctx")
    variables = {"HOME": str(surroundings), "CTX_HOME": home, "CTX_WORKER_AUTOSTART": "0"}
    hooks = known_hosts.hooks_of(host)
    assert hooks is not None
    seed = SEED + list(FIELDS).index(host)
    for said in islice(Inputs(seed, spool.EVENTS[word], repo), COUNT):
        for old, new in FIELDS[host].items():
            said = said.replace(f'"{old}"'.encode(), f'"{new}"'.encode())
        printed = answer(Hook(word, [], variables, hooks), lambda said=said: said)  # type: ignore[misc]
        if printed:
            parsed = json.loads(printed)
            texts = parsed.get("hookSpecificOutput", parsed)
            assert isinstance(texts.get("additionalContext", ""), str)
        reap()
    store = UserStore(home)
    place = Environment(str(repo), store, {}, (), CLI_SESSION, load_hosts=lambda: HOSTS)
    with open_memory(place, writing=True) as memory:
        apply.commands(memory, home, 1.0)
        done = apply.events(memory, home, 60.0)
    assert spool.pending_names(home) == []
    assert all(each.reason for each in done.refused)


@EACH_HOST
def test_storing_an_event_loads_few_modules(host: str, surroundings: Path, repo: Path) -> None:
    entry = Path(known_hosts.__file__).parent / host / "entry.py"
    payload = {"cwd": str(repo), "folder": str(repo), "timestamp": 1}
    payload |= dict.fromkeys(("session", "sessionId", "session_id"), "a-session")
    ran = subprocess.run(
        [sys.executable, "-X", "importtime", "-I", "-S", str(entry), "post-tool-use"],
        input=json.dumps(payload).encode(),
        env={"HOME": str(surroundings), "CTX_WORKER_AUTOSTART": "0", "CTX_PATIENCE": "40"},
        capture_output=True,
        timeout=60,
        check=True,
    )
    loaded = {line.rpartition("|")[2].strip() for line in ran.stderr.decode().splitlines()}
    # Qwen Code extends what Claude Code does.
    assert len({name for name in loaded if name.partition(".")[0] == "ctx"}) <= CAPTURING + 2
    assert "json" not in loaded
    (name,) = spool.pending_names(str(surroundings / ".ctx"))
    assert (spool.host_of(name), ran.stdout) == (host, b"")


@pytest.mark.parametrize("word", WORDS)
def test_a_hook_of_claude_code_ignores_copilot(word: str, surroundings: Path, repo: Path) -> None:
    """Copilot CLI also runs the hooks in a project's `.claude/settings.json`."""
    home = surroundings / ".ctx"
    variables = {"CTX_HOME": str(home), "CTX_WORKER_AUTOSTART": "0", "COPILOT_CLI": "1"}
    payload = {"session_id": "a-session", "cwd": str(repo), "hook_event_name": spool.EVENTS[word]}
    data = json.dumps(payload).encode()
    assert answer(Hook(word, [], variables, ClaudeHooks()), lambda: data) == b"{}\n"
    assert spool.pending_names(str(home)) == []
    assert not home.exists() or list(home.iterdir()) == []
    # Claude Code that was started in a shell of Copilot CLI.
    answer(Hook("post-tool-use", [], {**variables, "CLAUDECODE": "1"}, ClaudeHooks()), lambda: data)
    assert len(spool.pending_names(str(home))) == 1
