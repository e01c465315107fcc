"""The transcript of a real client has the events of its hooks, and the messages."""

import json
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

from tests.e2e.claude_code.api import Reply, Tool
from tests.e2e.claude_code.client import CTX, SECONDS, Person


def steps(home: Path) -> list[tuple[str, ...]]:
    """The stored steps, without starts and ends of sessions."""
    with closing(sqlite3.connect(home / "store.db")) as store:
        rows = store.execute(
            "SELECT session, coalesce(tool_use, ''), body FROM events WHERE status = 'step'"
        ).fetchall()
    told = [(session, tool_use, json.loads(body)) for session, tool_use, body in rows]
    return sorted(
        (session, tool_use, said["kind"], said.get("text", ""), said.get("path", ""))
        for session, tool_use, said in told
        if said["kind"] != "mark"
    )


def test_hooks_and_transcripts_give_the_same_steps_once(person: Person) -> None:
    passes, fails = (
        Tool("Bash", {"command": command, "description": "Try it"})
        for command in ("echo hello", "false")
    )
    content = "def f():\n    return 1\n"
    writes = Tool("Write", {"file_path": str(person.project / "a.py"), "content": content})
    first = person.say(
        "Do the first thing.",
        Reply(("I run it.",), (passes, fails)),
        Reply(("I write it.",), (writes,)),
        "It is done.",
    )
    fork = person.say("Elsewhere.", "I am there.", resume=first.session, fork=True)
    # What the worker has not finished when it ends is done here, before the answer.
    person.ctx("worker", "stop")
    person.ctx("hook", "apply")
    reported = steps(person.home / ".ctx")
    assert [step[2:4] for step in reported if step[0] == fork.session] == [
        ("prompt", "Elsewhere."),
        ("say", "I am there."),
    ]
    kinds = sorted(step[2] for step in reported if step[0] == first.session)
    assert kinds == ["command", "command", "prompt", "say", "say", "say", "write"]

    # There is nothing that the transcripts could add, and without hooks they say it all.
    again = person.ctx("import", "--from", "claude-code", "--transcripts")
    assert (again["sessions"], again["unchanged"]) == ([], 2)
    elsewhere = person.home / "elsewhere"
    subprocess.run(
        [CTX, "import", "--from", "claude-code", "--transcripts"],
        cwd=person.project,
        env={**person.environment, "CTX_HOME": str(elsewhere)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=SECONDS,
        check=True,
    )
    assert steps(elsewhere) == reported
