"""A step: what capture stores of an event.

It is small, has no secrets, and records what was done: which file, which command and how it ended,
which items of code a write changed. Synthesis reads only steps. In the store a step is the body of
its event.
"""

import json
from collections.abc import Sequence
from sqlite3 import Connection
from typing import Any, Literal, NamedTuple

from ctx.redaction import redact

Kind = Literal[
    "prompt",
    "say",
    "recap",
    "title",
    "name",
    "read",
    "write",
    "command",
    "search",
    "plan",
    "agent",
    "mark",
]
"""A prompt, a message of the agent, a recap of the conversation, a title that the host's model gave
the session, the name that the user gave it, a read, a write, a command, a search, a plan, a
subagent; or a mark: the session began, continued, was compacted, or ended (see `text`)."""

Author = Literal["", "person", "subagent", "program"]
"""Who wrote a prompt or an answer, see `prompt_authors`; empty: nothing shows it."""
PERSON: Author = "person"
SUBAGENT: Author = "subagent"
PROGRAM: Author = "program"

ABOUT_SESSION: frozenset[Kind] = frozenset({"mark", "title", "name"})
"""The kinds of steps that are about the session itself, not about its work."""

STEP = "step"
NEW = "new"
DROPPED = "dropped"
SKIPPED = "skipped"
"""The values of an event's `status`."""

ASSISTANT_MESSAGE = "AssistantMessage"
"""A message of the agent. Only the transcript reports it, no hook does."""

RECAP = "ConversationRecap"
"""A summary of the conversation that the host's model wrote. Only the transcript has it."""

TITLE = "SessionTitle"
"""A title of the session, by the host's model or by the user. Only the transcript has it."""


class SymbolChange(NamedTuple):
    change: str
    """new, modified or deleted."""
    kind: str
    name: str
    """Qualified: from the outermost item of the file inward."""
    signature: str
    line: int


class StepFinding(NamedTuple):
    """An error of a compiler or a failed test."""

    path: str
    """Relative to the project's root; empty if it names no file of the project."""
    line: int | None
    code: str
    """`E0433`, `TS2304`, `AssertionError`."""
    message: str
    test: str
    """The failed test, if it is one."""


class Step(NamedTuple):
    id: str
    """The id of its event."""
    session: str
    at: str
    kind: Kind
    tool: str = ""
    tool_use: str = ""
    agent: str = ""
    """The subagent that did it; empty: the agent itself."""
    text: str = ""
    """The prompt, the message, the command, the pattern, the plan, or the mark."""
    path: str = ""
    """The file, relative to the project's root, with `/`; as written if it is outside."""
    ok: bool = True
    exit_code: int | None = None
    output: str = ""
    """The end of a failed command's output, or its beginning and end."""
    findings: tuple[StepFinding, ...] = ()
    passed: bool | None = None
    """Whether tests or a compiler passed; None if neither ran."""
    changes: tuple[SymbolChange, ...] = ()
    added: int = 0
    removed: int = 0
    """How many lines a write added and removed."""
    excerpt: str = ""
    """The first changed lines of a write, with `+` and `-`."""
    message: str = ""
    """The message of a commit."""
    author: Author = ""
    """Of a prompt, an answer, or a plan that was agreed to."""

    @property
    def is_by_person(self) -> bool:
        """Whether a prompt or an answer counts as a person's words."""
        return not self.agent and self.author in ("", PERSON)


class SessionTitle(NamedTuple):
    text: str
    """Empty: it has none."""
    is_by_user: bool


class SuccessfulStep(NamedTuple):
    """The part of a successful step that shows how work is done."""

    kind: Kind
    text: str
    path: str
    passed: bool


# No redaction rule matches across it.
_BREAK = "\n\0\n"


def outcome_text(step: Step) -> str:
    """How a command ended, to be put behind it; empty if it reported nothing."""
    if not step.ok or step.passed is False:
        return f" — failed (exit {step.exit_code})" if step.exit_code else " — failed"
    return " — passed" if step.passed else ""


def limited(step: Step, most_files: int, most_bytes: int) -> Step:
    """A step with findings in a few files, and with texts of a limited size.

    What says the most is kept first: the text, then the message, findings, changed items, the
    excerpt and the output. A path is never cut, nor is the text of a mark, which has a meaning.
    """
    named = list(dict.fromkeys(each.path for each in step.findings if each.path))
    kept = ("", *named[:most_files])
    step = step._replace(findings=tuple(each for each in step.findings if each.path in kept))
    if step.kind == "mark" or len(body(step).encode()) <= most_bytes:
        return step
    left = max(0, most_bytes - len(step.path.encode()))

    def cut(text: str) -> str:
        nonlocal left
        found = text.encode()[:left].decode("utf-8", "ignore")
        left -= len(found.encode())
        return found

    def fits(finding: StepFinding | SymbolChange) -> bool:
        nonlocal left
        size = sum(len(text.encode()) for text in finding if isinstance(text, str))
        is_kept = size <= left
        left = left - size if is_kept else 0
        return is_kept

    return step._replace(
        text=cut(step.text),
        message=cut(step.message),
        findings=tuple(each for each in step.findings if fits(each)),
        changes=tuple(each for each in step.changes if fits(each)),
        excerpt=cut(step.excerpt),
        output=cut(step.output),
    )


def redacted(step: Step) -> Step:
    """A step without secrets.

    Its event is already redacted. But if something is removed from the middle of a text, such as an
    escape sequence or injected text, its two sides may form a secret.
    """
    texts = [step.agent, step.text, step.path, step.output, step.excerpt, step.message]
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
        message=clean(step.message),
        findings=tuple(StepFinding(*map(clean, each)) for each in step.findings),
        changes=tuple(SymbolChange(*map(clean, each)) for each in step.changes),
    )


def body(step: Step) -> str:
    """The stored JSON, without columns of the row and without default values."""
    said = {
        name: value
        for name, value, default in zip(Step._fields, step, _EMPTY, strict=True)
        if name == "kind" or (value != default and name not in _COLUMNS)
    }
    return _encode(said)


_EMPTY = Step("", "", "", "mark")
_COLUMNS = frozenset(("id", "session", "at", "tool", "tool_use"))
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def of_session(connection: Connection, session: str) -> list[Step]:
    """The stored steps of a session, in order."""
    rows = connection.execute(
        "SELECT id, session, at, tool, tool_use, body FROM events"
        " WHERE session = ? AND status = ? ORDER BY id",
        (session, STEP),
    )
    return [read(row) for row in rows]


def title_of(steps: Sequence[Step]) -> SessionTitle:
    """The name that the user gave a session, or else its last title."""
    latest = {step.kind: step.text for step in steps if step.kind in ("title", "name")}
    if "name" in latest:
        return SessionTitle(latest["name"], True)
    return SessionTitle(latest.get("title", ""), False)


def stored_title(connection: Connection, session: str) -> SessionTitle:
    """The same for the stored steps of a session."""
    rows = connection.execute(
        "SELECT id, session, at, tool, tool_use, body FROM events WHERE session = ? AND status = ?"
        " AND event = ? ORDER BY id",
        (session, STEP, TITLE),
    )
    return title_of([read(row) for row in rows])


def last_message(connection: Connection, session: str) -> str:
    """The agent's last message that is stored of a session; empty if there is none."""
    row = connection.execute(
        "SELECT json_extract(body, '$.text') FROM events WHERE session = ? AND status = ?"
        " AND json_extract(body, '$.kind') = 'say' AND json_extract(body, '$.agent') IS NULL"
        " ORDER BY id DESC LIMIT 1",
        (session, STEP),
    ).fetchone()
    return (row[0] or "") if row else ""


def about_file(connection: Connection, path: str, project: str | None, most: int) -> list[Step]:
    """The newest steps of a project's sessions that read or wrote a file, in order."""
    # Searching for the encoded path is much faster than parsing every body.
    needle = f'"path":{json.dumps(path, ensure_ascii=False)}'
    rows = connection.execute(
        "SELECT e.id, e.session, e.at, e.tool, e.tool_use, e.body FROM events AS e"
        " JOIN sessions AS s ON s.id = e.session WHERE e.status = ? AND s.project IS ?"
        " AND instr(e.body, ?) ORDER BY e.id DESC LIMIT ?",
        (STEP, project, needle, most),
    ).fetchall()
    return [step for step in map(read, reversed(rows)) if step.path == path]


def with_ids(connection: Connection, step_ids: Sequence[str]) -> list[Step]:
    """The steps with these ids, as far as they are stored."""
    rows = connection.execute(
        "SELECT id, session, at, tool, tool_use, body FROM events"
        f" WHERE status = ? AND id IN ({', '.join('?' * len(step_ids))}) ORDER BY id",
        (STEP, *step_ids),
    )
    return [read(row) for row in rows]


def successful_steps(connection: Connection, session: str) -> list[SuccessfulStep]:
    """The commands and writes of a session that succeeded, in order.

    It is called for many sessions, so it reads only these columns.
    """
    rows = connection.execute(
        "SELECT json_extract(body, '$.kind'), coalesce(json_extract(body, '$.text'), ''),"
        " coalesce(json_extract(body, '$.path'), ''), coalesce(json_extract(body, '$.passed'), 0)"
        " FROM events WHERE session = ? AND status = ?"
        " AND json_extract(body, '$.kind') IN ('command', 'write')"
        " AND coalesce(json_extract(body, '$.ok'), 1) ORDER BY id",
        (session, STEP),
    )
    return [SuccessfulStep(kind, text, path, bool(passed)) for kind, text, path, passed in rows]


def read(row: tuple[str, str, str, str | None, str | None, str]) -> Step:
    """A step from its row: id, session, at, tool, tool_use, body."""
    event_id, session, at, tool, tool_use, text = row
    said: dict[str, Any] = json.loads(text)
    said["findings"] = tuple(StepFinding(*each) for each in said.get("findings", ()))
    said["changes"] = tuple(SymbolChange(*each) for each in said.get("changes", ()))
    known = {name: value for name, value in said.items() if name in Step._fields}
    return Step(event_id, session, at, tool=tool or "", tool_use=tool_use or "", **known)
