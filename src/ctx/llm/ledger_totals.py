"""Sums over the ledger, for `ctx cost` and others."""

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
    """The sums for one group of calls to one model."""

    what: str
    """The model, day, session, project or purpose."""
    backend: str
    place: str
    model: str
    calls: int
    answered: int
    refused: int
    """Refused calls, which cost nothing."""
    open: int
    """Open, failed or lost calls, which count in full."""
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    counted: int
    cost_micros: int
    """Millionths of a dollar, as far as the cost is recorded."""
    unpriced: int
    """Answered calls without a recorded cost, and their tokens."""
    unpriced_input: int
    unpriced_output: int


class UnsettledCalls(NamedTuple):
    """Calls without a reported usage."""

    calls: int
    tokens: int


class EstimateSample(NamedTuple):
    """For one call, our estimate of its input tokens and the reported number."""

    model: str
    estimate: int
    reported: int


def totals(connection: Connection, since: str, by: GroupBy) -> list[Account]:
    """Calls since a time, grouped, one row per model and server, in order of the first call."""
    rows = connection.execute(_SUMS % _COLUMNS[by], (since,))
    return [Account._make(row) for row in rows]


def open_calls(connection: Connection, since: str) -> UnsettledCalls:
    """Open calls since a time, which may still be answered."""
    return _unsettled_calls(connection, "state = ? AND at >= ?", OPEN, since)


def lost_calls(connection: Connection, day: str, before: str) -> UnsettledCalls:
    """Calls of a day that failed, and open calls from before a time, which are abandoned."""
    where = "at >= ? AND at < ? AND (state = ? OR (state = ? AND at < ?))"
    return _unsettled_calls(connection, where, day, f"{day}U", FAILED, OPEN, before)


def _unsettled_calls(connection: Connection, where: str, *values: str) -> UnsettledCalls:
    sql = f"SELECT count(*), coalesce(sum(counted), 0) FROM calls WHERE {where}"
    return UnsettledCalls(*connection.execute(sql, values).fetchone())


def estimate_samples(connection: Connection, since: str) -> list[EstimateSample]:
    """All calls with a reported input size."""
    rows = connection.execute(
        "SELECT model, estimate, input_tokens FROM calls"
        " WHERE state = ? AND at >= ? AND input_tokens > 0 ORDER BY id",
        (DONE, since),
    )
    return [EstimateSample._make(row) for row in rows]
