"""The table `session_teams`: the sessions of a team of agents, and which of them leads it.

Either side may be captured first. A teammate is linked to its lead as soon as both are known.
"""

from collections.abc import Mapping, Sequence
from sqlite3 import Connection
from typing import NamedTuple

from ctx.capture import session_state, steps
from ctx.capture.session_state import Session, Status
from ctx.hosts.events import Event


class TeammateResult(NamedTuple):
    """A session that worked for another one, and its last message."""

    session: str
    name: str
    status: Status
    result: str


_LONGEST_NAME = 200
_SUBAGENTS = ""
"""The team of the subagents that their host reported as sessions of their own."""


class Teammate(NamedTuple):
    """A session that works for another one."""

    session: str
    lead: str
    name: str


def record_event(connection: Connection, event: Event) -> None:
    """Inside a transaction: remember the team that an event names. Its session is recorded."""
    team, name = event.team[:_LONGEST_NAME], event.teammate[:_LONGEST_NAME]
    if not team or event.agent:
        return
    row = connection.execute(
        "SELECT name, lead FROM session_teams WHERE session = ? AND team = ?", (event.session, team)
    ).fetchone()
    if row and (row[1] or not row[0]):
        return
    lead = (event.lead or _lead_of_team(connection, event.session, team)) if name else ""
    connection.execute(
        "INSERT OR REPLACE INTO session_teams (session, team, name, lead) VALUES (?, ?, ?, ?)",
        (event.session, team, name, lead if lead != event.session else ""),
    )
    if not name:
        connection.execute(
            "UPDATE session_teams SET lead = ?1 WHERE team = ?2 AND name <> '' AND lead = ''"
            " AND session IN (SELECT s.id FROM sessions AS s JOIN sessions AS own ON own.id = ?1"
            " AND s.project IS own.project AND s.started_at >= own.started_at)",
            (event.session, team),
        )


def record_subagent(connection: Connection, session: str, lead: str) -> None:
    """Inside a transaction: remember that a session is a subagent of another one."""
    connection.execute(
        "INSERT OR REPLACE INTO session_teams (session, team, name, lead) VALUES (?, ?, ?, ?)",
        (session, _SUBAGENTS, "", lead),
    )


def _lead_of_team(connection: Connection, session: str, team: str) -> str:
    """The last session of the same project that led a team of this name before a session began."""
    row = connection.execute(
        "SELECT t.session FROM session_teams AS t JOIN sessions AS s ON s.id = t.session"
        " JOIN sessions AS own ON own.id = ?1 AND s.project IS own.project"
        " AND s.started_at <= own.started_at WHERE t.team = ?2 AND t.name = '' AND t.session <> ?1"
        " ORDER BY s.started_at DESC LIMIT 1",
        (session, team),
    ).fetchone()
    return row[0] if row else ""


def teammates(connection: Connection) -> dict[str, Teammate]:
    """All sessions whose lead is known, by id."""
    return {each.session: each for each in _rows(connection, "lead <> ''")}


def of_session(connection: Connection, session: str) -> list[Teammate]:
    """A session as a teammate; empty if it is none, or its lead is unknown."""
    return _rows(connection, "lead <> '' AND session = ?", session)


def of_lead(connection: Connection, lead: str) -> list[Teammate]:
    return _rows(connection, "lead = ?", lead)


def _rows(connection: Connection, where: str, *values: str) -> list[Teammate]:
    rows = connection.execute(
        f"SELECT session, lead, name FROM session_teams WHERE {where} ORDER BY session, team",
        values,
    )
    return [Teammate._make(row) for row in rows]


def forget_session(connection: Connection, session: str) -> None:
    """Inside a transaction. Its teammates are sessions of their own from then on."""
    connection.execute("DELETE FROM session_teams WHERE session = ?", (session,))
    connection.execute("UPDATE session_teams SET lead = '' WHERE lead = ?", (session,))


def sort_below_leads(found: Sequence[Session], teammates: Mapping[str, Teammate]) -> list[Session]:
    """The sessions in their order, with each teammate below its lead."""
    leads = {session.id for session in found if session.id not in teammates}
    below: dict[str, list[Session]] = {}
    for session in found:
        teammate = teammates.get(session.id)
        lead = teammate.lead if teammate and teammate.lead in leads else ""
        below.setdefault(lead, []).append(session)
    return [each for top in below.get("", []) for each in (top, *below.get(top.id, []))]


def results(connection: Connection, lead: str) -> tuple[TeammateResult, ...]:
    found = []
    for each in of_lead(connection, lead):
        if session := session_state.find(connection, each.session):
            result = steps.last_message(connection, session.id)
            found.append(TeammateResult(session.id, each.name, session.status, result))
    return tuple(found)
