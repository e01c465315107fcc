"""Hooks as the client runs them: the registered command line, an event on stdin, and a home.

All processes of a `Hooks` inherit one end of a pipe, including background processes. When the pipe
is closed, all of them have ended.
"""

import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from ctx.agents.claude_code import registration
from ctx.hook_files import spool

ENTRY = Path(registration.ENTRY)
SAMPLES = Path(__file__).parents[2] / "golden" / "claude_code" / "hooks"

SESSION = "5dd65eaa-e3b0-4b25-afae-79ee4238d2da"
USUAL = {
    "session-start": "SessionStart.startup",
    "prompt-submit": "UserPromptSubmit",
    "stop": "Stop",
    "post-tool-use": "PostToolUse.Bash",
    "post-tool-use-failure": "PostToolUseFailure.Bash",
    "pre-compact": "PreCompact.manual",
    "session-end": "SessionEnd.other",
    "subagent-stop": "SubagentStop",
}
"""For each hook a sample payload."""
WORDS = tuple(USUAL)

# Far more than anything here takes: where it is reached, something hangs.
PATIENCE_S = 300


class Ran(NamedTuple):
    code: int
    out: bytes
    err: bytes


SILENT = Ran(0, b"", b"")
NOTHING = Ran(0, b"{}\n", b"")


def command(word: str, *options: str) -> list[str]:
    """The command line that is registered."""
    return [sys.executable, "-I", "-S", str(ENTRY), word, *options]


def sample(name: str, **changed: Any) -> bytes:
    """A sample payload on one line, with some fields changed."""
    return line({**json.loads((SAMPLES / f"{name}.json").read_bytes()), **changed})


def line(said: Any) -> bytes:
    return json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


class Hooks:
    """The hooks of one user, and the files that they leave in the home."""

    def __init__(self, home: Path, folder: Path, **environment: str) -> None:
        self.home = home
        self.folder = folder
        self.environment = {
            "HOME": str(home.parent),
            "CTX_HOME": str(home),
            "PATH": os.environ["PATH"],
            "CLAUDE_PROJECT_DIR": str(folder),
            "CTX_WORKER_AUTOSTART": "0",
            # A busy machine takes longer than a hook may: only tests of the limits have them.
            "CTX_PATIENCE": "60",
            **environment,
        }
        self._all, self._held = os.pipe()

    def event(self, word: str, **changed: Any) -> bytes:
        """A typical event of the session."""
        told = {"session_id": SESSION, "cwd": str(self.folder), **changed}
        return sample(USUAL[word], **told)

    def run(self, word: str, said: bytes, *options: str) -> Ran:
        return self.run_command(command(word, *options), said)

    def run_command(self, words: Sequence[str], said: bytes) -> Ran:
        with self.started(words, stdin=subprocess.PIPE) as process:
            out, err = process.communicate(said, PATIENCE_S)
        return Ran(process.returncode, out, err)

    @contextmanager
    def started(
        self,
        words: Sequence[str],
        *,
        stdin: int,
        stdout: int = subprocess.PIPE,
        environment: Mapping[str, str] | None = None,
        **options: Any,
    ) -> Iterator["subprocess.Popen[bytes]"]:
        """A running hook; it has ended when the block ends."""
        with subprocess.Popen(
            words,
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.PIPE,
            cwd=self.folder,
            env=self.environment if environment is None else environment,
            pass_fds=(self._held,),
            **options,
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    def settle(self) -> None:
        """Wait until every process has ended, including background processes."""
        os.close(self._held)
        gone = select.select([self._all], [], [], PATIENCE_S)[0]
        os.close(self._all)
        self._all, self._held = os.pipe()
        assert gone, "a process was left behind"

    def close(self) -> None:
        self.settle()
        os.close(self._held)
        os.close(self._all)

    def log(self) -> list[str]:
        """The lines of the log, without their times."""
        path = self.home / "hook.log"
        lines = path.read_text().splitlines() if path.exists() else []
        return [each.partition(" ")[2] for each in lines]

    def spooled(self) -> list[tuple[str, bytes]]:
        """The entries of the spool, oldest first: the name after the id, and the content."""
        home = str(self.home)
        return [
            (name.partition(".")[2], Path(spool.path_of(home, name)).read_bytes())
            for name in spool.pending_names(home)
        ]


def additional(ran: Ran) -> str:
    """The context for the agent in an answer."""
    text: str = json.loads(ran.out)["hookSpecificOutput"]["additionalContext"]
    return text


def reap() -> None:
    """Reap the child processes of a hook that runs in this process."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
