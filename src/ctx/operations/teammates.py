"""Sessions that work for another one as teammates, and their results."""

from collections.abc import Mapping, Sequence
from sqlite3 import Connection
from typing import NamedTuple

from ctx.capture import session_state, steps, team_table
from ctx.capture.session_state import Session, Status
from ctx.capture.team_table import Teammate


class TeammateResult(NamedTuple):
    """A session that worked for another one, and its last message."""

    session: str
    name: str
    status: Status
    result: str


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
    for each in team_table.of_lead(connection, lead):
        if session := session_state.find(connection, each.session):
            result = steps.last_message(connection, session.id)
            found.append(TeammateResult(session.id, each.name, session.status, result))
    return tuple(found)
