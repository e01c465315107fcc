"""A session as Copilot CLI reports it to hooks and writes it to `events.jsonl`."""

import json
from pathlib import Path
from typing import Any

from ctx import clock

SESSION = "a8417748-38dd-41d8-8ab3-4252f4468055"


class CopilotSession:
    """Writes a transcript, and makes the payloads of hooks."""

    def __init__(self, folder: Path, project: Path) -> None:
        self.path = folder / "session-state" / SESSION / "events.jsonl"
        self.path.parent.mkdir(parents=True)
        self.project = str(project)
        self.now_ms = clock.now_ms() - 60_000
        self._lines = 0
        context = {"cwd": self.project, "branch": "main"}
        self.line("session.start", sessionId=SESSION, startTime=self.now(), context=context)

    def now(self) -> str:
        return clock.iso(self.now_ms)

    def line(self, kind: str, agent: str = "", **data: Any) -> None:
        self._lines += 1
        self.now_ms += 10
        entry = {"type": kind, "data": data, "id": f"e{self._lines}", "timestamp": self.now()}
        with self.path.open("a") as file:
            file.write(json.dumps({**entry, **({"agentId": agent} if agent else {})}) + "\n")

    def prompt(self, text: str, injected: str = "") -> None:
        self.line("user.message", content=text, transformedContent=f"{text}\n{injected}")

    def say(self, text: str) -> None:
        self.line("assistant.message", messageId=f"m{self._lines}", content=text)

    def call(
        self, tool: str, args: dict[str, Any], output: str = "", error: str = "", code: int = 0
    ) -> dict[str, Any]:
        """A tool call in the transcript; the payload with which a hook reports it."""
        call_id = f"call_{self._lines}"
        self.line("tool.execution_start", toolCallId=call_id, toolName=tool, arguments=args)
        result = {"resultType": "success", "textResultForLlm": output}
        payload = self.payload(toolName=tool, toolArgs=args)
        payload |= {"error": error} if error else {"toolResult": result}
        word = "postToolUseFailure" if error else "postToolUse"
        self.line("hook.start", hookType=word, input=payload)
        more: dict[str, Any] = {"result": {"content": output, "detailedContent": output}}
        if error:
            more = {"error": {"message": error, "code": "failure"}}
        if tool == "bash":
            more["shellExecution"] = {"exitCode": code}
        self.line("tool.execution_complete", toolCallId=call_id, success=not error, **more)
        return payload

    def payload(self, **more: Any) -> dict[str, Any]:
        self.now_ms += 10
        return {"sessionId": SESSION, "timestamp": self.now_ms, "cwd": self.project, **more}

    def stop(self) -> dict[str, Any]:
        payload = self.payload(transcriptPath=str(self.path), stopReason="end_turn")
        self.line("hook.start", hookType="agentStop", input=payload)
        return payload
