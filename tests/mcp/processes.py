"""The real server as a process, spoken to as a host does: by lines of JSON, or by the SDK."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

CTX = Path(sys.executable).with_name("ctx")
SECONDS = 120
"""The longest that a busy machine may take to answer."""


def environment(home: Path, **more: str) -> dict[str, str]:
    """What a host passes on: little."""
    return {
        "HOME": str(home),
        "CTX_HOME": str(home / ".ctx"),
        "PATH": os.environ["PATH"],
        "LANG": "C.UTF-8",
        "CTX_PATIENCE": "40",
        "CTX_WORKER_AUTOSTART": "0",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        **more,
    }


class ServerProcess:
    """A server, and a host that writes any line."""

    def __init__(self, home: Path, folder: Path, **variables: str) -> None:
        self.process = subprocess.Popen(
            [CTX, "mcp"],
            cwd=folder,
            env=environment(home, **variables),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._number = 0

    def __enter__(self) -> "ServerProcess":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def read(self) -> Any:
        """The next message of the server."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the server has ended"
        return json.loads(line)

    def write_message(self, message: Mapping[str, Any]) -> None:
        self.write(_line({"jsonrpc": "2.0", **message}))

    def ask(self, method: str, params: Mapping[str, Any] | None = None) -> Any:
        """The whole answer to a request; notifications in between are skipped."""
        self._number += 1
        request = {"id": self._number, "method": method}
        self.write_message({**request, **({"params": params} if params is not None else {})})
        while (answer := self.read()).get("id") != self._number:
            pass
        return answer

    def initialize(
        self, capabilities: Mapping[str, Any] | None = None, client: str = "test"
    ) -> Any:
        answer = self.ask(
            "initialize",
            {
                "protocolVersion": "2025-06-18",
                "capabilities": capabilities or {},
                "clientInfo": {"name": client, "version": "1"},
            },
        )
        self.write_message({"method": "notifications/initialized"})
        return answer["result"]

    def call(self, tool: str, arguments: Any, **meta: Any) -> Any:
        """The answer of a tool."""
        params = {"name": tool, "arguments": arguments}
        return self.ask("tools/call", {**params, "_meta": meta} if meta else params)

    def close_input(self) -> int:
        """Close its input, and return its exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(SECONDS)


def _line(message: Mapping[str, Any]) -> bytes:
    return json.dumps(message).encode() + b"\n"
