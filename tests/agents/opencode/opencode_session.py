"""A session as OpenCode stores it in its database, and as our plugin reports it."""

import json
import sqlite3
from pathlib import Path
from typing import Any

from ctx import clock

SESSION = "ses_e1d8130acffeZWpCijjCGfJ7me"

_TABLES = (
    (
        "CREATE TABLE session (id text PRIMARY KEY, parent_id text, directory text NOT NULL,"
        " title text, time_created integer NOT NULL, time_updated integer NOT NULL)"
    ),
    (
        "CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL,"
        " time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL)"
    ),
    (
        "CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL,"
        " session_id text NOT NULL, time_created integer NOT NULL,"
        " time_updated integer NOT NULL, data text NOT NULL)"
    ),
)


class OpenCodeSession:
    """Writes a database, and makes the payloads of the plugin."""

    def __init__(self, folder: Path, project: Path, session: str = SESSION) -> None:
        self.database = folder / "opencode.db"
        self.session = session
        self.project = str(project)
        self.now_ms = clock.now_ms() - 60_000
        self.name = f"{self.database}#{session}"
        self._count = 0
        self._message = ""
        if not self.database.exists():
            folder.mkdir(parents=True)
            self._run("PRAGMA journal_mode = WAL")
            for table in _TABLES:
                self._run(table)
        self._add_session(session, None)

    def _add_session(self, session: str, parent: str | None) -> None:
        row = (session, parent, self.project, "A title", self.now_ms, self.now_ms)
        self._run("INSERT INTO session VALUES (?, ?, ?, ?, ?, ?)", *row)

    def _run(self, sql: str, *values: object) -> None:
        connection = sqlite3.connect(self.database, isolation_level=None)
        try:
            connection.execute(sql, values)
        finally:
            connection.close()

    def _next(self, kind: str) -> str:
        self._count += 1
        self.now_ms += 10
        self._run("UPDATE session SET time_updated = ? WHERE id = ?", self.now_ms, self.session)
        return f"{kind}_{self.now_ms}{self._count:04d}"

    def message(self, role: str, **data: Any) -> str:
        self._message = self._next("msg")
        is_agent = role == "assistant" and "time" not in data
        times = {"time": {"created": self.now_ms, "completed": self.now_ms}} if is_agent else {}
        row = (self._message, self.session, self.now_ms, self.now_ms)
        text = json.dumps({"role": role, **times, **data})
        self._run("INSERT INTO message VALUES (?, ?, ?, ?, ?)", *row, text)
        return self._message

    def part(self, **data: Any) -> str:
        part = self._next("prt")
        row = (part, self._message, self.session, self.now_ms, self.now_ms, json.dumps(data))
        self._run("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", *row)
        return part

    def change(self, part: str, **data: Any) -> None:
        self._run("UPDATE part SET data = ? WHERE id = ?", json.dumps(data), part)

    def prompt(self, text: str, injected: str = "") -> None:
        self.message("user")
        self.part(type="text", text=text)
        if injected:
            self.part(type="text", text=injected, synthetic=True)

    def say(self, text: str) -> dict[str, str]:
        message = self.message("assistant")
        self.part(type="step-start")
        self.part(type="text", text=text, time={"start": self.now_ms, "end": self.now_ms})
        self.part(type="step-finish", reason="stop")
        return {"id": message, "text": text}

    def call(
        self,
        tool: str,
        args: dict[str, Any],
        output: str = "",
        error: str = "",
        **metadata: Any,
    ) -> dict[str, Any]:
        """A tool call in the database; the payload with which the plugin reports it."""
        self.message("assistant")
        call = f"call_{self._message}"
        times = {"start": self.now_ms, "end": self.now_ms + 5}
        result = {"status": "error", "error": error} if error else {"status": "completed"}
        state = {**result, "input": args, "output": output, "metadata": metadata, "time": times}
        self.part(type="tool", tool=tool, callID=call, state=state)
        shown: dict[str, Any] = {"error": error} if error else {"output": output}
        return self.payload(tool=tool, call=call, args=args, metadata=metadata, **shown)

    def payload(self, **more: Any) -> dict[str, Any]:
        place = {"session": self.session, "folder": self.project, "agent": ""}
        return {**place, "database": str(self.database), **more}

    def subagent(self, session: str) -> "OpenCodeSession":
        child = OpenCodeSession.__new__(OpenCodeSession)
        child.__dict__.update(self.__dict__)
        child.session, child.name = session, f"{self.database}#{session}"
        child._add_session(session, self.session)
        return child
