"""The state of a session: where it runs, what it was asked for, and its status.

The table `sessions` has one row per session, derived from its events. Events arrive in any order,
some of them days late from a transcript: the final row is the same. The status follows from the
last events:

    active        the session is running
    completed     its client reported the end
    failed        the same, and the last event was an error
    aborted       the same, and the last event was the user stopping the agent
    interrupted   no event for a day, and its client is gone

A session that is resumed is active again.
"""

import json
import os
from collections.abc import Iterable, Sequence
from sqlite3 import Connection
from typing import Any, Literal, NamedTuple

from ctx import checkouts, clock
from ctx.capture import injected_text, private_text
from ctx.capture.steps import ASSISTANT_MESSAGE, NEW, RECAP, STEP, TITLE
from ctx.errors import AmbiguousId, SessionNotFound, UsageError
from ctx.hook_files import live, spool
from ctx.hosts.events import Event
from ctx.layout import Place
from ctx.redaction import redact

Status = Literal["active", "completed", "interrupted", "failed", "aborted"]

ACTIVE: Status = "active"
COMPLETED: Status = "completed"
INTERRUPTED: Status = "interrupted"
FAILED: Status = "failed"
ABORTED: Status = "aborted"
STATUSES: tuple[Status, ...] = (ACTIVE, COMPLETED, INTERRUPTED, FAILED, ABORTED)

PROMPT = "UserPromptSubmit"
END = "SessionEnd"
FAILURE = "StopFailure"
"""The client stopped because the model did not answer."""
INTERRUPT = "UserInterrupt"
"""The user stopped the agent. Only the transcript reports it, no hook does."""

SHORTEST_PREFIX = 4
"""The fewest characters of an id that can name a session."""

SILENCE_MS = 86_400_000
"""After so long without an event a session is considered over."""
QUIET_MS = 20_000
"""How long a session may be quiet before it is processed, or over if its client has ended."""

# Events that may arrive shortly after the end do not reopen a session.
_LATE_EVENTS = frozenset(
    {ASSISTANT_MESSAGE, RECAP, TITLE, "Stop", "SubagentStop", FAILURE, INTERRUPT}
)
_LONGEST_REQUEST = 200
# Today's branch is not the branch of an event from last month.
_NOW_MS = 3_600_000
_COLUMNS = (
    "id, project, folder, repository, branch, head, client, transcript, seen, goes_on_from, status,"
    " started_at, last_at, ended_at, request, synthesised, summary"
)


class Session(NamedTuple):
    id: str
    project: str | None
    folder: str
    """The folder of its first event: the root of the working tree."""
    repository: str | None
    """The git folder that all working trees share."""
    branch: str | None
    head: str | None
    """The commit that was checked out when it began, if that was recorded in time."""
    client: str
    transcript: str
    transcript_read: int
    """How many bytes of the transcript were captured."""
    goes_on_from: str | None
    status: Status
    started_at: str
    last_at: str
    ended_at: str | None
    request: str
    """The first prompt, shortened."""
    synthesised: str
    """The last event that synthesis processed."""
    summary: str | None
    """The id of its summary node."""


def record_event(
    connection: Connection, home: str, event: Event, place: Place, now_ms: int
) -> None:
    """Inside a transaction: update the row of a session with one more event.

    `place` is where the event happened. The event is in the table `events`, or is about to be.
    """
    known = find(connection, event.session)
    if known is None:
        nowhere = Session(
            *(event.session, None, "", None, None, None, event.host, "", 0, None, ACTIVE),
            *(event.at, event.at, None, "", "", None),
        )
        found = nowhere._replace(**_session_place(event, place, now_ms))
    else:
        found = known._replace(
            started_at=min(known.started_at, event.at), last_at=max(known.last_at, event.at)
        )
        if _is_first(connection, known, event):
            found = found._replace(**_session_place(event, place, now_ms))
    if not found.transcript:
        found = found._replace(transcript=event.transcript)
    if not found.goes_on_from and (before := _continued_session(home, event.session)):
        found = found._replace(goes_on_from=before)
    if event.name == PROMPT and (not found.request or _is_first_prompt(connection, event)):
        found = found._replace(request=request_of(event) or found.request)
    _write(connection, _update_status(connection, found, event))


def status_of(names: Iterable[str]) -> Status:
    """The status of a session with these events, newest first."""
    names = iter(names)
    for name in names:
        if name == END:
            return _end_status(names, COMPLETED)
        if name not in _LATE_EVENTS:
            return ACTIVE
    return ACTIVE


def closing_status(connection: Connection, session_id: str) -> Status:
    """The status of a session that ended without reporting it."""
    return _end_status(_names(connection, session_id, ""), INTERRUPTED)


def _end_status(names: Iterable[str], otherwise: Status) -> Status:
    match next((name for name in names if name != END), ""):
        case "StopFailure":
            return FAILED
        case "UserInterrupt":
            return ABORTED
        case "Stop":
            return COMPLETED
        case _:
            return otherwise


def end(connection: Connection, session_id: str, status: Status) -> None:
    """Inside a transaction: mark a session as over."""
    connection.execute(
        "UPDATE sessions SET status = ?, ended_at = last_at WHERE id = ?", (status, session_id)
    )


def silent_sessions(connection: Connection, home: str, now_ms: int) -> list[Session]:
    """Active sessions whose client has ended, or is gone after a day without an event."""
    before, quiet = clock.iso(now_ms - SILENCE_MS), clock.iso(now_ms - QUIET_MS)
    found = _rows(connection, "WHERE status = ? AND last_at < ? ORDER BY last_at", ACTIVE, quiet)
    return [
        each
        for each in found
        if live.is_gone(home, each.id)
        or (each.last_at < before and not live.is_live(home, each.id, clock.wall_s()))
    ]


def find(connection: Connection, session_id: str) -> Session | None:
    return next(iter(_rows(connection, "WHERE id = ?", session_id)), None)


def get(connection: Connection, text: str) -> Session:
    """The session whose id begins with a text."""
    if whole := find(connection, text):
        return whole
    if len(text) < SHORTEST_PREFIX:
        raise UsageError(
            f"{text!r} is too short to name a session.",
            hint=f"Give the first {SHORTEST_PREFIX} characters of its id or more.",
        )
    where = "WHERE substr(id, 1, length(?1)) = ?1 ORDER BY last_at DESC LIMIT 9"
    match _rows(connection, where, text):
        case [only]:
            return only
        case []:
            raise SessionNotFound(f"No session begins with {text!r}.")
        case several:
            named = ", ".join(each.id for each in several[:8])
            raise AmbiguousId(
                f"{text!r} begins several sessions: {named}.", hint="Give more of the id."
            )


def all_of(
    connection: Connection,
    *,
    project: str | None = None,
    statuses: Sequence[Status] = STATUSES,
    since: str = "",
) -> list[Session]:
    """The sessions of a project (None: of all), the most recently active first."""
    marks = ", ".join("?" * len(statuses))
    where = (
        f"WHERE status IN ({marks}) AND last_at >= ? AND (? IS NULL OR project = ?)"
        " ORDER BY last_at DESC, id DESC"
    )
    return _rows(connection, where, *statuses, since, project, project)


class SessionSelection(NamedTuple):
    """Which sessions a list has."""

    project: str | None = None
    """None: those of all projects."""
    host: str = ""
    since: str = ""
    """A time: only sessions that were last active then or later."""
    until: str = ""
    """A time: only sessions that were last active before."""
    text: str = ""
    """What the first prompt, the branch or the id contains."""
    others: Sequence[str] = ()
    """Ids of sessions that match the text elsewhere."""


class SessionCursor(NamedTuple):
    """A position in the list of sessions."""

    last_at: str
    id: str


def before(
    connection: Connection, wanted: SessionSelection, cursor: SessionCursor | None, most: int
) -> list[Session]:
    """The sessions below a position (None: from the top), the most recently active first."""
    where, values = _condition(wanted)
    if cursor:
        where, values = f"{where} AND (last_at, id) < (?, ?)", [*values, *cursor]
    return _rows(connection, f"{where} ORDER BY last_at DESC, id DESC LIMIT ?", *values, most)


def after(
    connection: Connection, wanted: SessionSelection, cursor: SessionCursor, most: int
) -> list[Session]:
    """The sessions directly above a position, the most recently active first."""
    where, values = _condition(wanted)
    where = f"{where} AND (last_at, id) > (?, ?) ORDER BY last_at, id LIMIT ?"
    return _rows(connection, where, *values, *cursor, most)[::-1]


def count(connection: Connection, wanted: SessionSelection) -> int:
    where, values = _condition(wanted)
    return int(connection.execute(f"SELECT count(*) FROM sessions {where}", values).fetchone()[0])


def _condition(wanted: SessionSelection) -> tuple[str, list[object]]:
    """Only conditions that apply, so that SQLite can use an index."""
    parts, values = ["1"], list[object]()
    for condition, value in (
        ("project = ?", wanted.project),
        ("client = ?", wanted.host or None),
        ("last_at >= ?", wanted.since or None),
        ("last_at < ?", wanted.until or None),
    ):
        if value is not None:
            parts.append(condition)
            values.append(value)
    if wanted.text:
        parts.append(
            "(instr(lower(request), ?) OR instr(lower(coalesce(branch, '')), ?)"
            " OR instr(id, ?) = 1 OR id IN (SELECT value FROM json_each(?)))"
        )
        text = wanted.text.lower()
        values += [text, text, text, json.dumps(list(wanted.others))]
    return f"WHERE {' AND '.join(parts)}", values


def set_transcript_position(connection: Connection, session_id: str, seen: int) -> None:
    """Inside a transaction: record how much of its transcript was captured."""
    connection.execute("UPDATE sessions SET seen = ? WHERE id = ?", (seen, session_id))


def request_of(event: Event) -> str:
    """The request in a prompt, shortened; empty if the user did not write it."""
    is_asked = event.name == PROMPT and event.speaker == "user" and not event.agent
    return line_of(event.text or "") if is_asked else ""


def line_of(prompt: str) -> str:
    """The beginning of a prompt as one line."""
    text = injected_text.without_injected(private_text.without_private(prompt))
    line = " ".join(redact(text).text.split())
    return line if len(line) <= _LONGEST_REQUEST else f"{line[: _LONGEST_REQUEST - 1]}…"


def _continued_session(home: str, session: str) -> str:
    """The session that this one continues, if any. Only plain files are opened."""
    is_there = os.path.isfile(live.path_of(home, f"{session}.before"))
    return live.continued_session(home, session) if is_there else ""


def _session_place(event: Event, place: Place, now_ms: int) -> dict[str, Any]:
    """Where a session runs, according to its first event."""
    if not os.path.isabs(event.folder):
        return {}
    checkout = checkouts.find_checkout(place.folder)
    branch = event.branch if event.branch not in ("", "HEAD") else None
    head = None
    if checkout and abs(now_ms - spool.made_ms(event.id)) < _NOW_MS:
        checked_out, head = checkouts.branch_and_commit(checkout)
        branch = checked_out or branch
    return {
        "project": place.project,
        "folder": place.folder,
        "repository": checkout.common_dir if checkout else None,
        "branch": branch,
        "head": head,
    }


def _is_first(connection: Connection, known: Session, event: Event) -> bool:
    """Whether no earlier event shows where a session runs.

    Earlier events may be deleted by now: then there is no later one than this either.
    """
    if not os.path.isabs(event.folder):
        return False
    earlier, later = connection.execute(
        "SELECT EXISTS (SELECT 1 FROM events WHERE session = ?1 AND id < ?2 AND folder LIKE '/%'),"
        " EXISTS (SELECT 1 FROM events WHERE session = ?1 AND id > ?2 AND folder LIKE '/%')",
        (event.session, event.id),
    ).fetchone()
    return not earlier and (bool(later) or not known.folder)


def _is_first_prompt(connection: Connection, event: Event) -> bool:
    """Whether no earlier prompt is a step; one that is still pending checks the same later."""
    # The first prompt of a session is near its beginning, so the index on the session is best: the
    # plus keeps SQLite from using the one on the status.
    first = connection.execute(
        "SELECT id FROM events WHERE session = ? AND event = ? AND +status = ? ORDER BY id LIMIT 1",
        (event.session, PROMPT, STEP),
    ).fetchone()
    return first is None or event.id < first[0]


def _update_status(connection: Connection, found: Session, event: Event) -> Session:
    status = status_of(_names(connection, event.session, event.id, event.name))
    if status != ACTIVE:
        return found._replace(status=status, ended_at=_ended_at(connection, event))
    if found.status != ACTIVE and _was_ended_unreported(connection, found, event):
        return found._replace(ended_at=found.last_at)
    return found._replace(status=ACTIVE, ended_at=None)


def _was_ended_unreported(connection: Connection, found: Session, event: Event) -> bool:
    """Whether a session was ended without a report of its client, and this event is older."""
    said_goodbye, later = connection.execute(
        "SELECT EXISTS (SELECT 1 FROM events WHERE session = ?1 AND event = ?2 AND at = ?3),"
        " EXISTS (SELECT 1 FROM events WHERE session = ?1 AND id > ?4 AND status <> ?5)",
        (event.session, END, found.ended_at, event.id, NEW),
    ).fetchone()
    return bool(later and not said_goodbye)


def _ended_at(connection: Connection, event: Event) -> str:
    """When the client last reported the end of the session."""
    row = connection.execute(
        "SELECT at FROM events WHERE session = ? AND event = ? ORDER BY id DESC LIMIT 1",
        (event.session, END),
    ).fetchone()
    at: str = row[0] if row else ""
    return max(at, event.at) if event.name == END else at


def _names(connection: Connection, session_id: str, event_id: str, name: str = "") -> Iterable[str]:
    """The names of the events of a session, newest first, with one more in its place."""
    rows = connection.execute(
        "SELECT id, event FROM events WHERE session = ? AND id <> ? ORDER BY id DESC",
        (session_id, event_id),
    )
    for other_id, other in rows:
        if name and event_id > other_id:
            yield name
            name = ""
        yield other
    if name:
        yield name


def _rows(connection: Connection, where: str, *values: object) -> list[Session]:
    rows = connection.execute(f"SELECT {_COLUMNS} FROM sessions {where}", values)
    return [Session._make(row) for row in rows]


def _write(connection: Connection, session: Session) -> None:
    marks = ", ".join("?" * len(Session._fields))
    connection.execute(f"INSERT OR REPLACE INTO sessions ({_COLUMNS}) VALUES ({marks})", session)
