"""What is known of a session: where it works, what it was begun for, and how it stands.

One row for each in the table `sessions`, made of the events that were heard of it. Events come in
any order, some of them days late from a transcript: the row is the same in the end. How a session
stands follows from the last things that were heard of it, which `event_store` has.

    active        it goes on
    completed     its client said that it is over
    failed        the same, and the last thing was an error that nobody got past
    aborted       the same, and the last thing was a person who stopped the agent
    interrupted   nothing was heard of it for a day, and its client is gone

A session that is resumed is active again.
"""

import os
from collections.abc import Iterable, Sequence
from sqlite3 import Connection
from typing import Any, Literal, NamedTuple

from ctx import checkouts, clock
from ctx.capture import injected_text, private_text
from ctx.capture.steps import NEW, SAID, STEP
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
"""The client could not go on: the model did not answer."""
INTERRUPT = "UserInterrupt"
"""A person stopped the agent. No hook reports it, the transcript does."""

SHORTEST_PREFIX = 4
"""Characters of an id by which a person may name a session."""

SILENCE_MS = 86_400_000
"""After so long without a word a session is no longer waited for."""

# What comes a moment after the end, or was on its way, does not begin a session again.
_AFTERMATH = frozenset({SAID, "Stop", "SubagentStop", FAILURE, INTERRUPT})
_LONGEST_REQUEST = 200
# The branch of today says nothing about work of last month.
_NOW_MS = 3_600_000
_COLUMNS = (
    "id, project, folder, repository, branch, head, client, transcript, seen, goes_on_from, status,"
    " started_at, last_at, ended_at, request, synthesised, summary"
)


class Session(NamedTuple):
    id: str
    project: str | None
    folder: str
    """Where its first event was: the top of the working tree."""
    repository: str | None
    """The git folder that all working trees share."""
    branch: str | None
    head: str | None
    """The commit that was checked out when it began, where somebody looked in time."""
    client: str
    transcript: str
    seen: int
    """How many bytes of the transcript were taken in."""
    goes_on_from: str | None
    status: Status
    started_at: str
    last_at: str
    ended_at: str | None
    request: str
    """The first thing that it was asked for."""
    synthesised: str
    """The last event that memory was made of."""
    summary: str | None
    """The node that tells it."""


def heard(connection: Connection, home: str, event: Event, place: Place, now_ms: int) -> None:
    """Inside a transaction: bring the row of a session to what one more event says.

    `place` is where the event was. The event is in `events`, or is about to be.
    """
    known = find(connection, event.session)
    if known is None:
        found = _begun(event, place, now_ms)
    else:
        found = known._replace(
            started_at=min(known.started_at, event.at), last_at=max(known.last_at, event.at)
        )
        if _is_first(connection, known, event):
            found = found._replace(**_where(event, place, now_ms))
    if not found.transcript:
        found = found._replace(transcript=event.transcript)
    if not found.goes_on_from and (before := _before(home, event.session)):
        found = found._replace(goes_on_from=before)
    if event.name == PROMPT and (not found.request or _is_first_prompt(connection, event)):
        found = found._replace(request=request_of(event) or found.request)
    _write(connection, _standing(connection, found, event))


def status_of(names: Iterable[str]) -> Status:
    """How a session stands of which these events were heard, the newest first."""
    names = iter(names)
    for name in names:
        if name == END:
            return _ending(names, COMPLETED)
        if name not in _AFTERMATH:
            return ACTIVE
    return ACTIVE


def closing_status(connection: Connection, session_id: str) -> Status:
    """How a session stands that said no goodbye and is over all the same."""
    return _ending(_names(connection, session_id, ""), INTERRUPTED)


def _ending(names: Iterable[str], otherwise: Status) -> Status:
    match next((name for name in names if name != END), ""):
        case "StopFailure":
            return FAILED
        case "UserInterrupt":
            return ABORTED
        case _:
            return otherwise


def end(connection: Connection, session_id: str, status: Status) -> None:
    """Inside a transaction: nothing more is expected of a session."""
    connection.execute(
        "UPDATE sessions SET status = ?, ended_at = last_at WHERE id = ?", (status, session_id)
    )


def silent(connection: Connection, home: str, now_ms: int) -> list[Session]:
    """Those that are active by what was heard, which is long ago, and whose client is gone."""
    before = clock.iso(now_ms - SILENCE_MS)
    found = _rows(connection, "WHERE status = ? AND last_at < ? ORDER BY last_at", ACTIVE, before)
    return [each for each in found if not live.is_live(home, each.id, clock.wall_s())]


def find(connection: Connection, session_id: str) -> Session | None:
    return next(iter(_rows(connection, "WHERE id = ?", session_id)), None)


def get(connection: Connection, text: str) -> Session:
    """The session that a person means by the beginning of its id."""
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
    limit: int = -1,
) -> list[Session]:
    """The sessions of a project (None: of all), the one that was heard of last first."""
    marks = ", ".join("?" * len(statuses))
    where = (
        f"WHERE status IN ({marks}) AND last_at >= ? AND (? IS NULL OR project = ?)"
        " ORDER BY last_at DESC, id DESC LIMIT ?"
    )
    return _rows(connection, where, *statuses, since, project, project, limit)


def saw(connection: Connection, session_id: str, seen: int) -> None:
    """Inside a transaction: so much of its transcript was taken in."""
    connection.execute("UPDATE sessions SET seen = ? WHERE id = ?", (seen, session_id))


def request_of(event: Event) -> str:
    """The beginning of what was asked for; empty where a person asked for nothing."""
    return line_of(event.text or "") if event.name == PROMPT and event.speaker == "user" else ""


def line_of(prompt: str) -> str:
    """The beginning of a prompt, as it can stand in a line."""
    text = injected_text.without_injected(private_text.without_private(prompt))
    line = " ".join(redact(text).text.split())
    return line if len(line) <= _LONGEST_REQUEST else f"{line[: _LONGEST_REQUEST - 1]}…"


def _before(home: str, session: str) -> str:
    """The session that this one goes on from, if any. Nobody waits for a pipe."""
    is_there = os.path.isfile(live.path_of(home, f"{session}.before"))
    return live.before(home, session) if is_there else ""


def _begun(event: Event, place: Place, now_ms: int) -> Session:
    nowhere = Session(
        *(event.session, None, "", None, None, None, event.host, "", 0, None, ACTIVE),
        *(event.at, event.at, None, "", "", None),
    )
    return nowhere._replace(**_where(event, place, now_ms))


def _where(event: Event, place: Place, now_ms: int) -> dict[str, Any]:
    """What the first event of a session says about where it works."""
    if not os.path.isabs(event.folder):
        return {}
    checkout = checkouts.find_checkout(place.folder)
    branch = event.branch if event.branch not in ("", "HEAD") else None
    head = None
    if checkout and abs(now_ms - spool.made_ms(event.id)) < _NOW_MS:
        checked_out, head = checkouts.standing(checkout)
        branch = checked_out or branch
    return {
        "project": place.project,
        "folder": place.folder,
        "repository": checkout.common_dir if checkout else None,
        "branch": branch,
        "head": head,
    }


def _is_first(connection: Connection, known: Session, event: Event) -> bool:
    """Whether nothing earlier says where a session works.

    What was earlier may be forgotten by now: then there is nothing later than this either.
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
    """Whether no earlier prompt was taken in; one that still waits will say so itself."""
    # The first one of a session stands near its beginning; all that has this status lies anywhere,
    # and the plus keeps SQLite from looking there.
    first = connection.execute(
        "SELECT id FROM events WHERE session = ? AND event = ? AND +status = ? ORDER BY id LIMIT 1",
        (event.session, PROMPT, STEP),
    ).fetchone()
    return first is None or event.id < first[0]


def _standing(connection: Connection, found: Session, event: Event) -> Session:
    status = status_of(_names(connection, event.session, event.id, event.name))
    if status != ACTIVE:
        return found._replace(status=status, ended_at=_ended_at(connection, event))
    if found.status != ACTIVE and _was_given_up(connection, found, event):
        return found._replace(ended_at=found.last_at)
    return found._replace(status=ACTIVE, ended_at=None)


def _was_given_up(connection: Connection, found: Session, event: Event) -> bool:
    """Whether a session was ended without a word of its client, and this is from before then."""
    said_goodbye, later = connection.execute(
        "SELECT EXISTS (SELECT 1 FROM events WHERE session = ?1 AND event = ?2 AND at = ?3),"
        " EXISTS (SELECT 1 FROM events WHERE session = ?1 AND id > ?4 AND status <> ?5)",
        (event.session, END, found.ended_at, event.id, NEW),
    ).fetchone()
    return bool(later and not said_goodbye)


def _ended_at(connection: Connection, event: Event) -> str:
    """When the client last said that the session is over."""
    row = connection.execute(
        "SELECT at FROM events WHERE session = ? AND event = ? ORDER BY id DESC LIMIT 1",
        (event.session, END),
    ).fetchone()
    at: str = row[0] if row else ""
    return max(at, event.at) if event.name == END else at


def _names(connection: Connection, session_id: str, event_id: str, name: str = "") -> Iterable[str]:
    """The names of the events that were heard of a session, newest first, one more among them."""
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
