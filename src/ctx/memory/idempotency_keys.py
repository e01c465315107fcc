"""That something is done once: whoever does it claims it first, in the same transaction.

The name of a claim says which command of an agent it is: session, message and place. A claim
stays, with what was wrong with the command if it was not done.
"""

from sqlite3 import Connection, IntegrityError
from typing import NamedTuple

from ctx import clock
from ctx.memory import pending


class Claim(NamedTuple):
    id: str
    session: str
    name: str
    """What the command is called."""
    notice: str = ""
    """What the agent is told with its next prompt, once the command is done."""


class AlreadyDone(Exception):
    """Somebody has done it before; nothing is to be done."""


def is_taken(connection: Connection, claim_id: str) -> bool:
    found = connection.execute("SELECT 1 FROM commands WHERE id = ?", (claim_id,))
    return found.fetchone() is not None


def take(connection: Connection, claim: Claim, problem: str | None = None) -> None:
    """Inside a transaction. Raises `AlreadyDone` where somebody was first."""
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
    """The ids of a session's claims that begin so, in the order in which they were taken."""
    rows = connection.execute(
        "SELECT id FROM commands WHERE session = ? AND substr(id, 1, ?) = ? ORDER BY rowid",
        (session, len(text), text),
    )
    return [row[0] for row in rows]


def drop(connection: Connection, claim_id: str) -> None:
    """Inside a transaction: it has another name now."""
    connection.execute("DELETE FROM commands WHERE id = ?", (claim_id,))
