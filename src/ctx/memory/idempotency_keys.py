"""Ensures that a command runs once: it is claimed in the same transaction that carries it out.

The id of a claim identifies a command of an agent by session, message and position. Claims are
kept; the claim of a command that failed also stores the problem.
"""

from sqlite3 import Connection, IntegrityError
from typing import NamedTuple

from ctx import clock
from ctx.memory import pending


class Claim(NamedTuple):
    id: str
    session: str
    name: str
    """The name of the command."""
    notice: str = ""
    """A notice for the agent's next prompt, sent when the command is done."""


class AlreadyDone(Exception):
    """The command has been carried out before."""


def is_taken(connection: Connection, claim_id: str) -> bool:
    rows = connection.execute("SELECT 1 FROM commands WHERE id = ?", (claim_id,))
    return rows.fetchone() is not None


def claim_command(connection: Connection, claim: Claim, problem: str | None = None) -> None:
    """Claim a command, inside a transaction. Raises `AlreadyDone` if it is claimed already."""
    values = (claim.id, claim.session, claim.name, clock.iso(clock.now_ms()), problem)
    try:
        connection.execute(
            "INSERT INTO commands (id, session, name, at, problem) VALUES (?, ?, ?, ?, ?)", values
        )
    except IntegrityError:
        raise AlreadyDone(claim.id) from None
    if claim.notice:
        pending.append(connection, pending.notices(claim.session), claim.notice)


def with_prefix(connection: Connection, session: str, text: str) -> list[str]:
    """The ids of a session's claims with this prefix, in the order they were taken."""
    rows = connection.execute(
        "SELECT id FROM commands WHERE session = ? AND substr(id, 1, ?) = ? ORDER BY rowid",
        (session, len(text), text),
    )
    return [row[0] for row in rows]


def drop(connection: Connection, claim_id: str) -> None:
    """Remove a claim that has a new id now, inside a transaction."""
    connection.execute("DELETE FROM commands WHERE id = ?", (claim_id,))
