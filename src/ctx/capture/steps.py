"""A step: what policy took of an event.

It is small, without secrets, and says what was done rather than what it looked like: which file,
which command and how it ended, which items of code a write has changed. Memory is made of steps
alone. In the store a step is the body of its event.
"""

import json
from sqlite3 import Connection
from typing import Any, Literal, NamedTuple

from ctx.redaction import redact

Kind = Literal["prompt", "say", "read", "write", "command", "search", "plan", "agent", "mark"]
"""What was asked, said, read, written, run, looked for, planned, given to a subagent; or a mark:
the session began, went on, was compacted, or ended (`text` says which)."""

STEP = "step"
NEW = "new"
DROPPED = "dropped"
SKIPPED = "skipped"
"""What the `status` of an event can be."""

SAID = "AssistantMessage"
"""What an agent said, which no hook reports: its transcript does."""


class SymbolChange(NamedTuple):
    change: str
    """new, modified or deleted."""
    kind: str
    name: str
    """From the file inward."""
    signature: str
    line: int


class Finding(NamedTuple):
    """What a compiler or a test complained about."""

    path: str
    """From the project's root; empty where it names no file of the project."""
    line: int | None
    code: str
    """`E0433`, `TS2304`, `AssertionError`."""
    message: str
    test: str
    """The test that failed, where it is one."""


class Step(NamedTuple):
    id: str
    """Of its event."""
    session: str
    at: str
    kind: Kind
    tool: str = ""
    tool_use: str = ""
    agent: str = ""
    """The subagent that did it; empty: the agent itself."""
    text: str = ""
    """The prompt, what was said, the command, the pattern, the plan, the mark."""
    path: str = ""
    """The file, from the project's root with `/`; as it was named where it lies outside."""
    ok: bool = True
    exit_code: int | None = None
    output: str = ""
    """The end of what a failing command printed, or its beginning and end."""
    findings: tuple[Finding, ...] = ()
    passed: bool | None = None
    """Whether tests or a compiler said that all is well; None where nobody said."""
    changes: tuple[SymbolChange, ...] = ()
    added: int = 0
    removed: int = 0
    """Lines of a write."""
    excerpt: str = ""
    """The first lines of a write that changed, with `+` and `-`."""


class Done(NamedTuple):
    """As much of a step as shows how work is done."""

    kind: Kind
    text: str
    path: str
    passed: bool


# No rule of redaction looks across it.
_BREAK = "\n\0\n"


def redacted(step: Step) -> Step:
    """A step without secrets, as the last thing that is done to it.

    Its event had none any more. But where something is taken out of the middle of a text, a colour
    or what ctx gave, what stood on both sides of it may be a secret only now.
    """
    texts = [step.agent, step.text, step.path, step.output, step.excerpt]
    texts += [text for each in step.findings for text in each if isinstance(text, str)]
    texts += [text for each in step.changes for text in each if isinstance(text, str)]
    joined = _BREAK.join(texts)
    if redact(joined).text == joined:
        return step

    def clean(value: Any) -> Any:
        return redact(value).text if isinstance(value, str) else value

    return step._replace(
        agent=clean(step.agent),
        text=clean(step.text),
        path=clean(step.path),
        output=clean(step.output),
        excerpt=clean(step.excerpt),
        findings=tuple(Finding(*map(clean, each)) for each in step.findings),
        changes=tuple(SymbolChange(*map(clean, each)) for each in step.changes),
    )


def body(step: Step) -> str:
    """As it is kept: without what its row says already, and without what is not there."""
    empty = Step("", "", "", "mark")
    said = {
        name: value
        for name, value in step._asdict().items()
        if name not in ("id", "session", "at", "tool", "tool_use")
        and (name == "kind" or value != getattr(empty, name))
    }
    return json.dumps(said, ensure_ascii=False, separators=(",", ":"))


def of_session(connection: Connection, session: str) -> list[Step]:
    """The steps of a session that are kept, in order."""
    rows = connection.execute(
        "SELECT id, session, at, tool, tool_use, body FROM events"
        " WHERE session = ? AND status = ? ORDER BY id",
        (session, STEP),
    )
    return [read(row) for row in rows]


def done_well(connection: Connection, session: str) -> list[Done]:
    """What was run and written in a session and ended well, in order.

    Whoever asks wants to know it of many sessions: nothing else of their steps is read.
    """
    rows = connection.execute(
        "SELECT json_extract(body, '$.kind'), coalesce(json_extract(body, '$.text'), ''),"
        " coalesce(json_extract(body, '$.path'), ''), coalesce(json_extract(body, '$.passed'), 0)"
        " FROM events WHERE session = ? AND status = ?"
        " AND json_extract(body, '$.kind') IN ('command', 'write')"
        " AND coalesce(json_extract(body, '$.ok'), 1) ORDER BY id",
        (session, STEP),
    )
    return [Done(kind, text, path, bool(passed)) for kind, text, path, passed in rows]


def read(row: tuple[str, str, str, str | None, str | None, str]) -> Step:
    """A step out of its row: id, session, at, tool, tool_use, body."""
    event_id, session, at, tool, tool_use, text = row
    said: dict[str, Any] = json.loads(text)
    said["findings"] = tuple(Finding(*each) for each in said.get("findings", ()))
    said["changes"] = tuple(SymbolChange(*each) for each in said.get("changes", ()))
    known = {name: value for name, value in said.items() if name in Step._fields}
    return Step(event_id, session, at, tool=tool or "", tool_use=tool_use or "", **known)
