"""Sessions of Claude Code for documentation: its part is scripted, everything else is real.

`scripts/try` has the simulated client, the small bank project and its failing test. Here a command
line `claude -p PROMPT` on a page plays one session, and every other one is run in a shell.
"""

import io
import shlex
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path
from types import TracebackType

from scripts.load_demo import load_demo

ROOT = Path(__file__).parent.parent
_CLIENT = "/home/you/.local/share/claude/claude"
_CLOSE = """
    def close(self, account):
        return self.get(f"/close/{account}")
"""
_FIXED = "Fixed: `Session.get` in bank/client.py refreshed the token twice after a 401."


class ScriptedSession:
    """A project with a failing test, in a home of its own. The worker is stopped at the end."""

    def __init__(self, space: Path) -> None:
        self._demo = load_demo()
        self.project = space / "bank"
        self.project.mkdir(parents=True)
        self._sandbox = self._demo.Sandbox(str(Path(sys.executable).with_name("ctx")), space)
        # However busy the machine is.
        self._demo.TIMEOUT_S = 600
        self._sandbox.environment["CTX_PATIENCE"] = "40"
        # The same commits in every run.
        dates = dict.fromkeys(("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"), "2026-01-01T00:00:00Z")
        self._sandbox.environment |= dates
        self._client = str(space / "bin" / "claude")
        self._sessions = iter(("5dd6c1f0", "81ab93e7"))
        self._demo.make_project(self._sandbox)

    def __enter__(self) -> "ScriptedSession":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._shell("ctx worker stop")

    def run(self, command: str) -> str:
        words = shlex.split(command)
        if words[:2] == ["claude", "-p"]:
            return self._play(words[2])
        return self._as_at_home(self._shell(command))

    def _as_at_home(self, text: str) -> str:
        """With the paths that a reader has, also in the width of columns."""
        text = text.replace(str(self.project), "/home/you/bank")
        if self._client not in text:
            return text
        wider = " " * (len(self._client) - len(_CLIENT))
        return text.replace(self._client, _CLIENT).replace(wider, "")

    def _shell(self, command: str) -> str:
        return subprocess.run(
            ["bash", "-c", f"{command} 2>&1"],
            cwd=self.project,
            env=self._sandbox.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        ).stdout

    def _play(self, prompt: str) -> str:
        """One session with one prompt. Returns the answer of the agent."""
        session, sandbox = next(self._sessions), self._sandbox
        with redirect_stdout(io.StringIO()):
            sandbox.hook("SessionStart", session, source="startup")
            sandbox.asks(session, prompt)
            answer = "Added `Session.close` to bank/client.py."
            if "Fix it" in prompt:
                sandbox.runs(session, self._demo.CHECK)
                sandbox.reads(session, "bank/client.py")
                line = "            self.refresh()\n"
                sandbox.edits(session, "bank/client.py", line * 2, line)
                sandbox.runs(session, self._demo.CHECK)
                answer = _FIXED
            else:
                end = "        return answer\n"
                sandbox.edits(session, "bank/client.py", end, end + _CLOSE)
            sandbox.answers(session, answer)
            sandbox.hook("SessionEnd", session, reason="other")
            sandbox.wait_for_summary(session)
        return f"{answer}\n"
