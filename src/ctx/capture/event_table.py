"""Queries about the stored events: how many there are, which is the last, what is pending.

`event_store` writes them and `pipeline` makes steps of them; the three own the table.
"""

from sqlite3 import Connection
from typing import NamedTuple

_PAUSE_EVENTS = ("Stop", "PreCompact", "SessionEnd", "SubagentStop")
"""After these events the agent waits, so a summary is worth making."""


class SkipReason(NamedTuple):
    """Events that were skipped for one reason, with the last of them."""

    reason: str
    events: int
    at: str
    session: str
    event: str
    tool: str | None


class ChangedItem(NamedTuple):
    """How a session changed an item of code."""

    path: str
    name: str
    kind: str
    change: str


class StepCounts(NamedTuple):
    """What a session did, in numbers."""

    steps: int
    prompts: int
    files: int
    """Files that it wrote."""
    failures: int
    """Commands that failed, and checks that did not pass."""


# All of them


def count_pending(connection: Connection) -> int:
    """How many events are not processed yet."""
    # SQLite uses the partial index only for this exact condition.
    return _number(connection, "SELECT count(*) FROM events WHERE status = 'new'")


def count_skipped(connection: Connection, since: str = "") -> int:
    """How many were skipped."""
    # The `+` keeps SQLite from scanning all events by time.
    sql = "SELECT count(*) FROM events WHERE status = 'skipped' AND +at >= ?"
    return _number(connection, sql, since)


def skip_reasons(connection: Connection, most: int) -> list[SkipReason]:
    # In SQLite, bare columns next to `max` come from the same row.
    rows = connection.execute(
        "SELECT coalesce(reason, ''), count(*), max(at), session, event, tool FROM events"
        " WHERE status = 'skipped' GROUP BY 1 ORDER BY 3 DESC LIMIT ?",
        (most,),
    )
    return [SkipReason._make(row) for row in rows]


def last_at(connection: Connection) -> str | None:
    """The time of the newest event."""
    found: str | None = connection.execute("SELECT max(at) FROM events").fetchone()[0]
    return found


# Those of a session


def count_steps(connection: Connection, session: str) -> int:
    sql = "SELECT count(*) FROM events WHERE session = ? AND +status = 'step'"
    return _number(connection, sql, session)


def step_counts(connection: Connection, session: str) -> StepCounts:
    """It is called for each session of a list, so it parses no more bodies than it must.

    A body begins with its kind, and a quote inside of a text is escaped.
    """
    found = connection.execute(
        'SELECT count(*), total(body LIKE \'{"kind":"prompt"%\'),'
        ' count(DISTINCT CASE WHEN body LIKE \'{"kind":"write"%\''
        " THEN json_extract(body, '$.path') END),"
        ' total(body LIKE \'{"kind":"command"%\' AND'
        " (instr(body, ',\"ok\":false') OR instr(body, ',\"passed\":false')))"
        " FROM events WHERE session = ? AND +status = 'step'",
        (session,),
    )
    return StepCounts._make(map(int, found.fetchone()))


def by_status(connection: Connection, session: str) -> dict[str, int]:
    rows = connection.execute(
        "SELECT status, count(*) FROM events WHERE session = ? GROUP BY status", (session,)
    )
    return dict(rows.fetchall())


def first_step(connection: Connection, session: str, after: str = "") -> str | None:
    """The id of the first step after an event, or None."""
    sql = "SELECT min(id) FROM events WHERE session = ? AND id > ? AND +status = 'step'"
    found: str | None = connection.execute(sql, (session, after)).fetchone()[0]
    return found


def last_step(connection: Connection, session: str) -> str:
    sql = "SELECT max(id) FROM events WHERE session = ? AND +status = 'step'"
    return connection.execute(sql, (session,)).fetchone()[0] or ""


def last(connection: Connection, session: str) -> str:
    """The id of the last event."""
    sql = "SELECT max(id) FROM events WHERE session = ?"
    return connection.execute(sql, (session,)).fetchone()[0] or ""


def last_name(connection: Connection, session: str) -> str:
    """The name of the last event; empty if there is none."""
    row = connection.execute(
        "SELECT event FROM events WHERE session = ? ORDER BY id DESC LIMIT 1", (session,)
    ).fetchone()
    return row[0] if row else ""


def first_at(connection: Connection, session: str) -> str | None:
    """The time of the first stored event."""
    row = connection.execute(
        "SELECT at FROM events WHERE session = ? ORDER BY id LIMIT 1", (session,)
    ).fetchone()
    return row[0] if row else None


def has_rested(connection: Connection, session: str, since: str) -> bool:
    """Whether the agent has waited, or a check has passed, since an event."""
    marks = ", ".join("?" * len(_PAUSE_EVENTS))
    found = connection.execute(
        "SELECT 1 FROM events WHERE session = ? AND id >= ?"
        f" AND (event IN ({marks}) OR body LIKE '%\"passed\":true%') LIMIT 1",
        (session, since, *_PAUSE_EVENTS),
    )
    return found.fetchone() is not None


def changed_items(connection: Connection, session: str) -> tuple[ChangedItem, ...]:
    rows = connection.execute(
        "SELECT path, name, kind, change FROM symbol_changes WHERE session = ? ORDER BY path, line",
        (session,),
    )
    return tuple(ChangedItem._make(row) for row in rows)


def forget_session(connection: Connection, session: str) -> None:
    """Inside a transaction: delete everything captured from a session."""
    for table in ("events", "symbol_changes"):
        connection.execute(f"DELETE FROM {table} WHERE session = ?", (session,))


def _number(connection: Connection, sql: str, *values: str) -> int:
    return int(connection.execute(sql, values).fetchone()[0])
