"""Sessions in the order of time, a page at a time, with what each did in numbers.

`ctx sessions list` shows the same sessions. This is for a front end that shows thousands of them:
a page costs the same at the top of the list and at its end.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import NamedTuple

from ctx import clock
from ctx.capture import event_table, session_state, session_table, team_table
from ctx.capture.event_table import StepCounts
from ctx.capture.session_state import Session, SessionCursor, SessionSelection, Status
from ctx.capture.team_table import Teammate
from ctx.errors import UsageError
from ctx.memory import lookups
from ctx.operations.sessions import title_of
from ctx.workspace import Memory

DEFAULT_LIMIT = 50

_TAG = "session:"
_BETWEEN = "~"


class Options(NamedTuple):
    project: str | None
    """None: the sessions of all projects."""
    host: str = ""
    text: str = ""
    """What the title, the first prompt, the summary or the branch contains."""
    until: str = ""
    """A day: only sessions that were last active on it or before."""
    before: str = ""
    """Only sessions below this position, which an earlier page named as `older`."""
    after: str = ""
    """Only sessions directly above this position, which an earlier page named as `newer`."""
    limit: int = DEFAULT_LIMIT
    since: str = ""
    """A day: only sessions that were last active on it or after."""
    zone: tzinfo = UTC
    """Of the days."""


class SessionEntry(NamedTuple):
    """One session."""

    id: str
    title: str
    """Empty if nothing was said in it."""
    host: str
    project: str | None
    branch: str | None
    status: Status
    started_at: str
    last_at: str
    lead: str | None
    """The session that it works for as a teammate."""
    teammate: str
    """Its name in the team; empty if it is not a teammate."""
    counts: StepCounts
    memory: Mapping[str, int]
    """How many nodes of which kind memory has from it."""


class SessionPage(NamedTuple):
    """A page of sessions, the most recently active first."""

    sessions: tuple[SessionEntry, ...]
    project: str | None
    total: int
    """How many sessions match on all pages."""
    hosts: Mapping[str, int]
    """All hosts with the number of their sessions, whichever host is wanted."""
    newer: str
    """The position of the page before; empty if there is none."""
    older: str
    """The position of the next page; empty if there is none."""


def list_page(memory: Memory, options: Options) -> SessionPage:
    wanted = SessionSelection(
        options.project,
        options.host,
        _begin_of_day(options.since, options.zone),
        _begin_of_day(options.until, options.zone, timedelta(days=1)),
        text := options.text.strip(),
        lookups.sessions_summarised_with(memory.user.connection, text) if text else (),
    )
    if options.after:
        listed = session_state.after(
            memory.local, wanted, _cursor(options.after), options.limit + 1
        )
        has_newer, listed = len(listed) > options.limit, listed[-options.limit :]
        has_older = True
    else:
        cursor = _cursor(options.before) if options.before else None
        listed = session_state.before(memory.local, wanted, cursor, options.limit + 1)
        has_older, listed = len(listed) > options.limit, listed[: options.limit]
        has_newer = cursor is not None
    return SessionPage(
        tuple(_entries(memory, listed)),
        options.project,
        session_state.count(memory.local, wanted),
        session_table.hosts(memory.local, options.project),
        _position(listed[0]) if listed and has_newer else "",
        _position(listed[-1]) if listed and has_older else "",
    )


def _entries(memory: Memory, listed: Sequence[Session]) -> list[SessionEntry]:
    teammates = team_table.teammates(memory.local)
    kinds = _kinds(memory, listed)
    return [_entry(memory, each, teammates.get(each.id), kinds.get(each.id, {})) for each in listed]


def _entry(
    memory: Memory, session: Session, teammate: Teammate | None, kinds: Mapping[str, int]
) -> SessionEntry:
    return SessionEntry(
        session.id,
        title_of(memory, session, teammate),
        session.client,
        *(session.project, session.branch, session.status, session.started_at, session.last_at),
        teammate.lead if teammate else None,
        teammate.name if teammate else "",
        event_table.step_counts(memory.local, session.id),
        kinds,
    )


def _kinds(memory: Memory, listed: Sequence[Session]) -> dict[str, dict[str, int]]:
    """The kinds of the nodes from each session, in all open stores; summaries do not count."""
    found: dict[str, dict[str, int]] = {}
    tags = [f"{_TAG}{each.id}" for each in listed]
    for connection in memory.graph.connections:
        for tag, kinds in lookups.kinds_with_tag(connection, tags).items():
            known = found.setdefault(tag.removeprefix(_TAG), {})
            for kind, number in kinds.items():
                if kind != "summary":
                    known[kind] = known.get(kind, 0) + number
    return found


def _begin_of_day(text: str, zone: tzinfo, later: timedelta = timedelta()) -> str:
    """When a day begins, or one that is later; empty without a day."""
    if not text:
        return ""
    try:
        day = datetime.strptime(text.strip(), "%Y-%m-%d").replace(tzinfo=zone) + later
        return clock.iso(int(day.timestamp()) * 1000)
    except (OverflowError, ValueError):
        raise UsageError(f"{text[:40]!r} is not a day.", hint="Write 2026-11-15.") from None


def _position(session: Session) -> str:
    return f"{session.last_at}{_BETWEEN}{session.id}"


def _cursor(text: str) -> SessionCursor:
    last_at, between, session = text.partition(_BETWEEN)
    if not between:
        raise UsageError(f"{text[:80]!r} is not a position in the list of sessions.")
    return SessionCursor(last_at, session)
