"""A real Claude Code client, and a person who talks to it: a home, a project, conversations.

The client runs in a separate environment without network; its model is the script of the test.
"""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, NamedTuple

from tests.e2e.claude_code.api import Reply, Request, Script, serving

SECONDS = 300
"""The longest that one prompt may take."""

CTX = Path(sys.executable).with_name("ctx")
API_KEY = "none"


class Client(NamedTuple):
    """An installed client."""

    command: tuple[str, ...]
    version: str

    @property
    def reports_hooks(self) -> bool:
        """Whether it reports the answer of each hook. Older clients report only the first."""
        return tuple(map(int, self.version.split("."))) >= (2, 1, 100)


class HookAnswer(NamedTuple):
    """The answer of a hook to the client."""

    event: str
    is_error: bool
    output: dict[str, Any]

    @property
    def notice(self) -> str:
        """The line that the user sees, if any."""
        return str(self.output.get("systemMessage", ""))


class Exchange(NamedTuple):
    """One prompt and its result."""

    session: str
    """The conversation in which one could go on: after `/clear` it is another than before."""
    result: str
    requests: tuple[Request, ...]
    """What reached the model in the conversation itself, in order."""
    to_subagents: tuple[Request, ...]
    hooks: tuple[HookAnswer, ...]
    seconds: float

    @property
    def request(self) -> Request:
        """The first request to the model, with the prompt."""
        return self.requests[0]

    @property
    def notices(self) -> list[str]:
        return [hook.notice for hook in self.hooks if hook.notice]


class Person:
    """A user with a new home, a project and a client."""

    def __init__(self, home: Path, project: Path, client: Client) -> None:
        self.home = home
        self.project = project
        self.client = client
        self._programs = home / "bin"
        self._programs.mkdir()
        self.puts_on_path("claude", client.command)
        (home / "tmp").mkdir()
        self._started: list[subprocess.Popen[str]] = []

    def leaves(self) -> None:
        """End all processes that the clients started, and the worker."""
        subprocess.run(
            [CTX, "worker", "stop"],
            cwd=self.home,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=SECONDS,
            check=False,
        )
        for process in self._started:
            # The group has the number of its first process, which no other gets meanwhile.
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.communicate()

    def puts_on_path(self, name: str, command: Sequence[str | Path]) -> None:
        script = self._programs / name
        script.write_text(f'#!/bin/sh\nexec {shlex.join(map(str, command))} "$@"\n')
        script.chmod(0o755)

    @property
    def environment(self) -> dict[str, str]:
        """The complete environment of the user, without variables of the test run."""
        return {
            "HOME": str(self.home),
            "PATH": f"{self._programs}:/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "SHELL": "/bin/sh",
            "TERM": "dumb",
            "TMPDIR": str(self.home / "tmp"),
            "GIT_CONFIG_NOSYSTEM": "1",
            # A busy machine takes longer than a hook may.
            "CTX_PATIENCE": "60",
        }

    def environment_at(self, api: str) -> dict[str, str]:
        """Additional variables of a client: the address of its model, and no network."""
        return self.environment | {
            "ANTHROPIC_API_KEY": API_KEY,
            "ANTHROPIC_BASE_URL": api,
            "NO_PROXY": "127.0.0.1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_TMPDIR": str(self.home / "tmp"),
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "DISABLE_TELEMETRY": "1",
            "IS_SANDBOX": "1",
        }

    def ctx(self, *words: str) -> Any:
        """The JSON of a ctx command in the project."""
        done = subprocess.run(
            [CTX, *words, "--format", "json"],
            cwd=self.project,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"ctx {shlex.join(words)}: {done.stdout}{done.stderr}"
        return json.loads(done.stdout)

    def adds(self, content: str, *words: str) -> str:
        """Add a reference fact, or a node with these options, and return its id."""
        words = words or ("--type", "fact", "--tag", "tier:reference")
        added = self.ctx("add", *words, content)
        return str(added["node"]["id"])

    def nodes(self) -> dict[str, dict[str, Any]]:
        """The stated nodes by content, oldest first."""
        nodes = [node for node in self._all_nodes() if not _is_captured(node)]
        assert len({node["content"] for node in nodes}) == len(nodes), nodes
        return {node["content"]: node for node in reversed(nodes)}

    def captured(self) -> list[dict[str, Any]]:
        """The nodes that sessions created automatically."""
        return [node for node in self._all_nodes() if _is_captured(node)]

    def _all_nodes(self) -> list[dict[str, Any]]:
        self.settles()
        nodes: list[dict[str, Any]] = self.ctx("list", "--limit", "0")["nodes"]
        return nodes

    def sessions(self, count: int) -> list[dict[str, Any]]:
        """The sessions, newest first, as soon as this many have ended."""
        deadline = time.monotonic() + SECONDS
        while True:
            self.settles()
            found: list[dict[str, Any]] = self.ctx("sessions", "list")["sessions"]
            ended = [each for each in found if each["status"] != "active"]
            if len(ended) >= count or time.monotonic() > deadline:
                return found
            time.sleep(0.2)

    def settles(self) -> None:
        """Process everything that a hook left for later because the machine was busy."""
        self.ctx("hook", "apply")

    def complaints(self) -> list[str]:
        """The lines of the hook log, without those about slow hooks."""
        log = self.home / ".ctx" / "hook.log"
        lines = log.read_text().splitlines() if log.exists() else []
        return [line for line in lines if "took longer than" not in line]

    def say(
        self,
        prompt: str,
        *replies: str | Reply,
        resume: str | None = None,
        fork: bool = False,
        to_subagents: Sequence[str | Reply] = (),
        options: Sequence[str] = (),
    ) -> Exchange:
        """Say something, in a new conversation or going on with one; the model answers with the
        replies, one for each request."""
        script = Script(replies, to_subagents)
        arguments = [*self._arguments(prompt, resume, fork), *options]
        started = time.monotonic()
        with serving(script) as address:
            out = self.claude(*arguments, api=address)
        seconds = time.monotonic() - started
        lines = [json.loads(line) for line in out.splitlines()]
        assert not script.unplayed, f"{prompt}: the model was not asked for {script.unplayed}"
        last = next(line for line in reversed(lines) if line["type"] == "result")
        assert not last["is_error"], last
        hooks = tuple(
            _hook_answer(line) for line in lines if line.get("subtype") == "hook_response"
        )
        assert not [hook for hook in hooks if hook.is_error], hooks
        of_the_model = [request for request in script.requests if request.tools]
        return Exchange(
            last["session_id"],
            last["result"],
            tuple(request for request in of_the_model if not request.of_subagent),
            tuple(request for request in of_the_model if request.of_subagent),
            hooks,
            seconds,
        )

    def converse(self, turns: Sequence[tuple[str, Sequence[str | Reply]]]) -> str:
        """Say several things to one process of the client, each after the answer to the one before.

        The session is returned.
        """
        script = Script([reply for _, replies in turns for reply in replies], ())
        _, _, *options = self._arguments("", None, False)
        results: list[dict[str, Any]] = []
        with serving(script) as address, TemporaryFile() as errors:
            process = self._start(
                "-p",
                "--input-format",
                "stream-json",
                *options,
                api=address,
                stdin=subprocess.PIPE,
                stderr=errors,
            )
            assert process.stdin
            assert process.stdout
            for prompt, _ in turns:
                message = {"role": "user", "content": prompt}
                process.stdin.write(json.dumps({"type": "user", "message": message}) + "\n")
                process.stdin.flush()
                lines = (json.loads(line) for line in process.stdout)
                results.append(next(line for line in lines if line["type"] == "result"))
            process.communicate(timeout=SECONDS)
            errors.seek(0)
            assert process.returncode == 0, errors.read()
        assert not script.unplayed, f"the model was not asked for {script.unplayed}"
        assert not [each for each in results if each["is_error"]], results
        return str(results[-1]["session_id"])

    def _arguments(self, prompt: str, resume: str | None, fork: bool) -> list[str]:
        words = ["-p", prompt, "--output-format", "stream-json", "--verbose"]
        # Nobody is there to be asked whether a tool may be used.
        words += ["--allowedTools", "Bash,Read,Write,Edit,Task,Agent"]
        if self.client.reports_hooks:
            words += ["--include-hook-events"]
        if resume:
            words += ["--resume", resume]
        if fork:
            words += ["--fork-session"]
        return words

    def claude(self, *arguments: str, api: str = "http://127.0.0.1:9") -> str:
        """The output of the client. A hook in the background may end after it."""
        process = self._start(*arguments, api=api)
        out, err = process.communicate(timeout=SECONDS)
        assert process.returncode == 0, f"{arguments}: {out}{err}"
        return out

    def _start(
        self,
        *arguments: str,
        api: str,
        stdin: int = subprocess.DEVNULL,
        stderr: int | IO[bytes] = subprocess.PIPE,
    ) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [*self.client.command, *arguments],
            cwd=self.project,
            env=self.environment_at(api),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            start_new_session=True,
        )
        self._started.append(process)
        return process


def _is_captured(node: dict[str, Any]) -> bool:
    return node["type"] == "file" or any(tag.startswith("session:") for tag in node["tags"])


def _hook_answer(line: dict[str, Any]) -> HookAnswer:
    # A client ends a hook that it has waited for too long. That says how busy the machine is.
    if line.get("outcome") == "cancelled":
        return HookAnswer(line["hook_event"], False, {})
    output = line["stdout"]
    is_error = bool(line["exit_code"])
    return HookAnswer(line["hook_event"], is_error, json.loads(output) if output else {})
