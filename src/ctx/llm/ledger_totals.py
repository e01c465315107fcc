"""What is in the ledger, added up: for `ctx cost` and whoever else wants to know."""

from collections.abc import Mapping
from sqlite3 import Connection
from typing import Literal, NamedTuple

from ctx.llm.ledger import DONE, FAILED, OPEN, REFUSED

GroupBy = Literal["model", "day", "session", "project", "purpose"]

_COLUMNS: Mapping[GroupBy, str] = {
    "model": "model",
    "day": "substr(at, 1, 10)",
    "session": "session",
    "project": "coalesce(project, '')",
    "purpose": "purpose",
}
GROUPINGS = tuple(_COLUMNS)

_SUMS = f"""
SELECT %s, backend, place, model, count(*),
    sum(state = '{DONE}'), sum(state = '{REFUSED}'), sum(state IN ('{OPEN}', '{FAILED}')),
    coalesce(sum(input_tokens), 0), coalesce(sum(output_tokens), 0),
    coalesce(sum(cached_tokens), 0), sum(counted), coalesce(sum(cost_micros), 0),
    sum(state = '{DONE}' AND cost_micros IS NULL),
    coalesce(sum(CASE WHEN cost_micros IS NULL THEN input_tokens END), 0),
    coalesce(sum(CASE WHEN cost_micros IS NULL THEN output_tokens END), 0)
FROM calls WHERE at >= ? GROUP BY 1, 2, 3, 4 ORDER BY min(id)
"""


class Account(NamedTuple):
    """What the calls of one kind to one model came to."""

    what: str
    """The model, day, session, project or purpose."""
    backend: str
    place: str
    model: str
    calls: int
    answered: int
    refused: int
    """Not carried out: they cost nothing."""
    open: int
    """Under way, failed or lost: they count in full."""
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    counted: int
    cost_micros: int
    """Millionths of a dollar, as far as they were written down."""
    unpriced: int
    """Answered calls about whose money nothing is written down, and their tokens."""
    unpriced_input: int
    unpriced_output: int


class UnsettledCalls(NamedTuple):
    """Calls of which nobody has said what they used."""

    calls: int
    tokens: int


class EstimateSample(NamedTuple):
    """Of one call, our own estimate of its input and what the server said."""

    model: str
    estimate: int
    reported: int


def totals(connection: Connection, since: str, by: GroupBy) -> list[Account]:
    """Those since a moment, each model and server by itself, in the order of their first calls."""
    rows = connection.execute(_SUMS % _COLUMNS[by], (since,))
    return [Account._make(row) for row in rows]


def open_calls(connection: Connection, since: str) -> UnsettledCalls:
    """Those since a moment that somebody may still wait for."""
    return _unsettled(connection, "state = ? AND at >= ?", OPEN, since)


def lost_calls(connection: Connection, day: str, before: str) -> UnsettledCalls:
    """Those of a day that failed, and those from before a moment that nobody waits for any more."""
    where = "at >= ? AND at < ? AND (state = ? OR (state = ? AND at < ?))"
    return _unsettled(connection, where, day, f"{day}U", FAILED, OPEN, before)


def _unsettled(connection: Connection, where: str, *values: str) -> UnsettledCalls:
    sql = f"SELECT count(*), coalesce(sum(counted), 0) FROM calls WHERE {where}"
    return UnsettledCalls(*connection.execute(sql, values).fetchone())


def estimate_samples(connection: Connection, since: str) -> list[EstimateSample]:
    """Every call of which a server said how large it was."""
    rows = connection.execute(
        "SELECT model, estimate, input_tokens FROM calls"
        " WHERE state = ? AND at >= ? AND input_tokens > 0 ORDER BY id",
        (DONE, since),
    )
    return [EstimateSample._make(row) for row in rows]
