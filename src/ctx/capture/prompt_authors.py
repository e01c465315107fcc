"""Whose words a prompt is: a person's, a subagent's (a model wrote it), or a program's.

Only a person's words become rules, corrections, decisions and answers of the user. A prompt of a
main thread is a person's if the host, in that version, names the subagent in what it reports about
one. Otherwise the prompt counts unless something contradicts it:

    subagent   the event names a subagent; the session is one by the transcript of another session;
               or, where the host may not name subagents, it is the text that a subagent was given
    program    the session was started by an SDK; its project began very many sessions at that
               time; or three sessions have the same prompt

A prompt may be captured before the evidence: hooks do not report what the transcript does. So a
step has only the author that its event shows, `learn` adds what the transcript shows, and
`steps_of` decides when a session is synthesised.
"""

from collections.abc import Iterator, Mapping, Sequence
from sqlite3 import Connection
from typing import NamedTuple

from ctx import clock
from ctx.capture import session_state, session_table, steps, team_table
from ctx.capture.steps import PERSON, PROGRAM, STEP, SUBAGENT, Author, Step
from ctx.hook_files import spool
from ctx.hosts import tool_calls
from ctx.hosts.events import Event


class HostEvidence(NamedTuple):
    """What a host tells about the authors of prompts."""

    tells_since: tuple[int, ...]
    """The oldest version that was seen to name the subagent of an event."""
    reports_subagents: bool = False
    """Whether its hooks report the prompt of a subagent as a prompt."""
    programs: tuple[str, ...] = ()
    """How it calls programs that start sessions: the beginnings of the names."""


EVIDENCE: Mapping[str, HostEvidence] = {
    "claude-code": HostEvidence((2, 0, 47), programs=("sdk-py", "sdk-ts", "mcp")),
    "codex": HostEvidence((0, 166), reports_subagents=True, programs=("codex_sdk", "mcp")),
    "copilot": HostEvidence((1, 0, 102), reports_subagents=True),
    "gemini": HostEvidence((0, 61)),
    "opencode": HostEvidence((1, 18)),
    "qwen": HostEvidence((0, 24)),
}
"""`claude -p` is `sdk-cli` and `codex exec` is `codex_exec`: people call them too."""

_UNKNOWN = HostEvidence(())
FEWEST_ALIKE = 3
"""In so many sessions, the same prompt is a template."""
_SHORTEST_TEMPLATE = 20
"""People answer with the same few words in every session: `yes, do that`."""
_MOST_ALIKE = 50
FEWEST_AT_ONCE, _AT_ONCE_MS = 20, 600_000
"""A person does not begin a session every half minute."""
_DELEGATED_MS = 6 * 3_600_000
"""A call is reported when it ends, at most so long after its subagent began."""
_EARLIER_MS = 60_000
_SAME_PROMPT_MS = 600_000


def of_event(event: Event) -> Author:
    """The author of a prompt or an answer as far as its event shows it; empty: unknown."""
    if event.agent:
        return SUBAGENT
    known = EVIDENCE.get(event.host, _UNKNOWN)
    if event.caller and event.caller.startswith(known.programs):
        return PROGRAM
    parts = event.version.split("-")[0].split("+")[0].split(".")
    version = tuple(map(int, parts)) if all(part.isdecimal() for part in parts) else ()
    return PERSON if version and known.tells_since and version >= known.tells_since else ""


def learn(connection: Connection, event: Event) -> bool:
    """Inside a transaction: take over what a transcript shows about a prompt that a hook reported;
    whether it was captured as somebody else's."""
    author = of_event(event)
    stored = _stored_prompt(connection, event) if author else None
    if stored is None or stored.author == author:
        return False
    fields = {"author": author, **({"agent": event.agent} if event.agent else {})}
    for name, value in fields.items():
        connection.execute(
            "UPDATE events SET body = json_set(body, '$.' || ?, ?) WHERE id = ?",
            (name, value, stored.id),
        )
    return author != PERSON


def _stored_prompt(connection: Connection, event: Event) -> Step | None:
    """The prompt with this text that was captured closest to an event. A person may type what a
    subagent is told: what is known to be theirs stays theirs."""
    made_ms = spool.made_ms(event.id)
    rows = connection.execute(
        "SELECT id, session, at, tool, tool_use, body FROM events WHERE session = ? AND event = ?"
        " AND status = ? AND id BETWEEN ? AND ?",
        (
            *(event.session, session_state.PROMPT, STEP),
            *(f"{max(0, made_ms + ms):013d}" for ms in (-_SAME_PROMPT_MS, _SAME_PROMPT_MS)),
        ),
    )
    asked = session_state.line_of(event.text or "")
    alike = [
        step
        for step in map(steps.read, rows)
        if session_state.line_of(step.text) == asked
        and step.author != SUBAGENT
        and not (event.agent and step.author == PERSON)
    ]
    return min(alike, key=lambda step: abs(spool.made_ms(step.id) - made_ms), default=None)


def learn_session(connection: Connection, session: str, lead: str) -> bool:
    """Inside a transaction: record that a session is a subagent of another one; whether that is
    new. It is over, and all that it did was done by the subagent."""
    known = session_state.find(connection, session)
    if known is None or session == lead or team_table.of_session(connection, session):
        return False
    connection.execute(
        "UPDATE events SET body = json_set(body, '$.agent', session) WHERE session = ?"
        " AND status = ? AND json_extract(body, '$.agent') IS NULL",
        (session, STEP),
    )
    team_table.record_subagent(connection, session, lead)
    if known.status == session_state.ACTIVE:
        session_state.end(connection, session, session_state.COMPLETED)
    return True


def steps_of(connection: Connection, session: str) -> list[Step]:
    """The stored steps of a session, each prompt and answer with its author as far as anything
    shows it: an empty author is a person."""
    found = steps.of_session(connection, session)
    if not any(map(_is_open, found)):
        return found
    known = session_state.find(connection, session)
    if known is not None and _is_one_of_many(connection, known):
        return [step._replace(author=PROGRAM) if _is_open(step) else step for step in found]
    given = set(_delegated(found))
    first = next((step.id for step in found if step.kind == "prompt"), "")
    reports = EVIDENCE.get(known.client if known else "", _UNKNOWN).reports_subagents

    def author(step: Step) -> Author:
        if step.kind != "prompt" or not _is_open(step):
            return step.author
        if _is_template(connection, step.text):
            return PROGRAM
        if step.author == PERSON:
            return PERSON
        text = _words(step.text)
        is_given = _was_given(connection, step) if step.id == first else reports and text in given
        return SUBAGENT if is_given else ""

    decided = [step._replace(author=author(step)) for step in found]
    if any(step.id == first and step.author == SUBAGENT for step in decided):
        return [step._replace(agent=step.agent or session) for step in decided]
    return [
        step._replace(agent=step.agent or SUBAGENT) if step.author == SUBAGENT else step
        for step in decided
    ]


def _is_open(step: Step) -> bool:
    """Whether the author of a step matters and may be a person."""
    is_said = step.kind == "prompt" or step.tool in (tool_calls.QUESTION, tool_calls.PLAN)
    return is_said and not step.agent and step.author in ("", PERSON)


def _is_template(connection: Connection, text: str) -> bool:
    if len(text) < _SHORTEST_TEMPLATE:
        return False
    return len(session_table.with_prompt(connection, text, FEWEST_ALIKE)) >= FEWEST_ALIKE


def _is_one_of_many(connection: Connection, session: session_state.Session) -> bool:
    began = session_table.begun(connection, session.folder, *_around(session))
    return len(began) >= FEWEST_AT_ONCE


def _around(session: session_state.Session) -> tuple[str, str]:
    began_ms = clock.parse_iso(session.started_at) or 0
    return clock.iso(began_ms - _AT_ONCE_MS // 2), clock.iso(began_ms + _AT_ONCE_MS // 2)


def _delegated(found: Sequence[Step]) -> Iterator[str]:
    """What subagents were given: a delegation has a description in its first line, or none."""
    for step in found:
        if step.kind == "agent":
            yield _words(step.text)
            yield _words(step.text.partition("\n")[2])


def _was_given(connection: Connection, step: Step) -> bool:
    """Whether the first prompt of a session was given to a subagent of another one."""
    made_ms = spool.made_ms(step.id)
    rows = connection.execute(
        "SELECT id, session, at, tool, tool_use, body FROM events WHERE id BETWEEN ? AND ?"
        ' AND status = ? AND session <> ? AND body LIKE \'{"kind":"agent"%\'',
        (
            *(f"{max(0, made_ms + ms):013d}" for ms in (-_EARLIER_MS, _DELEGATED_MS)),
            *(STEP, step.session),
        ),
    )
    return _words(step.text) in set(_delegated([*map(steps.read, rows)]))


def _words(text: str) -> str:
    return " ".join(text.split())


def of_steps(connection: Connection, step_ids: Sequence[str]) -> Mapping[str, Author]:
    """The authors of stored prompts and answers, as `steps_of` decides them."""
    found: dict[str, Author] = {}
    for session in {step.session for step in steps.with_ids(connection, step_ids)}:
        every = steps_of(connection, session)
        found |= {step.id: SUBAGENT if step.agent else step.author for step in every}
    return {each: found[each] for each in step_ids if each in found}


def alike(connection: Connection, found: Sequence[Step]) -> set[str]:
    """The sessions whose prompts are a program's by the same evidence as those of a session."""
    sessions: set[str] = set()
    for step in found:
        if step.kind == "prompt" and step.author == PROGRAM and not step.agent:
            sessions.update(session_table.with_prompt(connection, step.text, _MOST_ALIKE))
    if sessions and (known := session_state.find(connection, found[0].session)):
        many = session_table.begun(connection, known.folder, *_around(known))
        sessions.update(many if len(many) >= FEWEST_AT_ONCE else ())
    return sessions


def agents_of(connection: Connection) -> dict[str, str]:
    """The sessions that another one's steps name as its subagents, each with that session."""
    rows = connection.execute(
        "SELECT DISTINCT json_extract(body, '$.agent'), session FROM events WHERE status = ?"
        " AND json_extract(body, '$.agent') IN (SELECT id FROM sessions)",
        (STEP,),
    )
    return {agent: session for agent, session in rows if agent != session}
