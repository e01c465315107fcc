"""Every call to a model: the tokens reserved before it and the tokens used after it.

A call is a row. Before the request is sent, the row holds the most that it can use, and that
counts. When the server reports its usage, that counts instead. A row that is never updated counts
in full for ever: the process may have been killed, or the connection lost, after all of it was
used. So the caps hold in every case and for any number of processes, because the day's sum and the
new row are one transaction.

Reported usage counts, with two exceptions. Impossible numbers, such as negative ones, are ignored,
and the call counts in full. Numbers far below what any tokenizer could produce for the request are
not believed: then a quarter of our estimate counts. A call that counts in full also counts the part
of its answer beyond the reservation.

The ledger is a database of its own in `CTX_HOME`: spending does not depend on the store in use. It
holds numbers and the names of models, projects and sessions, never requests or answers. Days are
UTC; a call belongs to the day on which it was allowed. Without a writable ledger, nothing is sent.
"""

import os
import shlex
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from sqlite3 import Connection
from typing import Any, NamedTuple

from ctx import clock
from ctx.errors import BudgetExceeded, CtxError, DatabaseFailure, DiskFailure
from ctx.llm.prices import Prices
from ctx.llm.protocol import BackendName, Usage
from ctx.redaction.needle import Needle
from ctx.sqlite.connection import execute_script, explain_errors, path_text, size_of, transaction
from ctx.sqlite.truth import check_truth, open_truth, read_truth

APPLICATION_ID = 0x6374786C  # "ctxl"

_BUSY_MS = 30_000
"""A hundred processes may wait for the lock."""
_CREATION_MS = 60_000
"""How long a new ledger may be empty."""
_MOST_TOKENS = 10_000_000
"""More than any model accepts in one request: larger reports are ignored."""
_MOST_MICROS = 10**12
_LONGEST_NAME = 200
_SMALLEST_SHARE = 4
"""At least this fraction of the estimate counts for a request."""

_SCHEMA = """
CREATE TABLE calls (
    id INTEGER PRIMARY KEY,
    at TEXT NOT NULL,
    purpose TEXT NOT NULL,
    session TEXT NOT NULL DEFAULT '',
    project TEXT,
    backend TEXT NOT NULL,
    place TEXT NOT NULL,
    model TEXT NOT NULL,
    state TEXT NOT NULL,
    counted INTEGER NOT NULL,
    reserved INTEGER NOT NULL,
    estimate INTEGER NOT NULL,
    input_tokens INTEGER,
    output_tokens INTEGER,
    cached_tokens INTEGER,
    cost_micros INTEGER,
    duration_ms INTEGER
);
CREATE INDEX idx_calls_at ON calls(at, counted);
CREATE INDEX idx_calls_session ON calls(session, at) WHERE session <> '';
"""

OPEN, DONE, REFUSED, FAILED = "open", "done", "refused", "failed"
"""The states of a call: open (or its process was killed), answered, refused, ended without a usage
report."""


class DailyCapReached(BudgetExceeded):
    """The daily cap is reached."""


class SessionCapReached(BudgetExceeded):
    """The session cap is reached, whatever is left of the daily cap."""


class Caps(NamedTuple):
    """The most tokens that may be used."""

    day: int
    session: int | None = None
    """Per session, over all days."""


class Purpose(NamedTuple):
    """What a call is for."""

    name: str
    """`llm`, `synthesis` or `rerank`."""
    session: str = ""
    project: str | None = None


class ModelTarget(NamedTuple):
    """The model that receives a call."""

    backend: BackendName
    place: str
    model: str


def _m001_calls(connection: Connection) -> None:
    execute_script(connection, _SCHEMA)


_MIGRATIONS = (_m001_calls,)


class Ledger:
    """The ledger, for one thread. Close it or use it as a context manager."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.open_calls: set[int] = set()
        """Open calls of this process."""
        with _explain_ledger_errors(path):
            _refuse_emptied_file(path)
            self._connection = open_truth(
                path, application_id=APPLICATION_ID, migrations=_MIGRATIONS, busy_ms=_BUSY_MS
            )

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        # The open calls will not be answered any more. They count in full, as before.
        if self.open_calls:
            with suppress(CtxError), self.writing() as connection:
                connection.executemany(
                    "UPDATE calls SET state = ? WHERE id = ? AND state = ?",
                    [(FAILED, number, OPEN) for number in self.open_calls],
                )
        self._connection.close()

    @property
    def connection(self) -> Connection:
        return self._connection

    def meter(
        self, purpose: Purpose, target: ModelTarget, caps: Caps, prices: Prices
    ) -> "CappedMeter":
        return CappedMeter(self, purpose, target, caps, prices)

    def counted_on(self, day: str) -> int:
        """Tokens that count for a day, `2026-11-15`."""
        return counted_on(self._connection, day)

    def counted_in(self, purpose: Purpose) -> int:
        """Tokens that count for a session and purpose."""
        sql = "SELECT coalesce(sum(counted), 0) FROM calls WHERE session = ? AND purpose = ?"
        row = self._connection.execute(sql, (purpose.session, purpose.name)).fetchone()
        return int(row[0])

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        with _explain_ledger_errors(self.path), transaction(self._connection):
            yield self._connection


def counted_on(connection: Connection, day: str) -> int:
    sql = "SELECT coalesce(sum(counted), 0) FROM calls WHERE at >= ? AND at < ?"
    return int(connection.execute(sql, (day, f"{day}U")).fetchone()[0])


@contextmanager
def reading(path: str) -> Iterator[Connection | None]:
    """Open the ledger for reading; None if no model was ever called."""
    with _explain_ledger_errors(path):
        _refuse_emptied_file(path)
    if not os.path.exists(path) or not size_of(path):
        yield None
        return
    with _explain_ledger_errors(path):
        connection = read_truth(path, application_id=APPLICATION_ID, migrations=_MIGRATIONS)
        with closing(connection):
            yield connection


def problem(path: str) -> CtxError | None:
    """What is wrong with the ledger; None if nothing is, or if there is no ledger yet."""
    try:
        with reading(path) as connection:
            problems = []
            if connection:
                counted_on(connection, "")
                problems = check_truth(path)
    except CtxError as error:
        return error
    return (
        DatabaseFailure(f"{path_text(path)}: {problems[0]}", hint=_start_over_hint(path))
        if problems
        else None
    )


def count_matching(path: str, needle: Needle) -> int:
    """How many calls have a name that matches."""
    with reading(path) as connection:
        return len(_matching_rows(connection, needle)) if connection else 0


def scrub(path: str, needle: Needle) -> None:
    """Remove matches from the names, also from SQLite's free pages. Token counts stay."""
    with Ledger(path) as opened:
        with opened.writing() as connection:
            for number, *names in _matching_rows(connection, needle):
                connection.execute(
                    "UPDATE calls SET session = ?, project = ?, place = ?, model = ? WHERE id = ?",
                    (*(name and needle.name(name) for name in names), number),
                )
        with _explain_ledger_errors(path):
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _matching_rows(connection: Connection, needle: Needle) -> list[tuple[Any, ...]]:
    rows = connection.execute("SELECT id, session, project, place, model FROM calls")
    return [row for row in rows if any(value and needle.is_in(value) for value in row[1:])]


@contextmanager
def _explain_ledger_errors(path: str) -> Iterator[None]:
    """Add to a database error that models cannot be used without the ledger."""
    try:
        with explain_errors(path):
            yield
    except (DatabaseFailure, DiskFailure) as error:
        hint = error.hint
        # The hints for a store do not apply here.
        if "`ctx store" in (hint or ""):
            hint = _start_over_hint(path)
        message = (
            f"{error.message} It is the ledger of model usage: without it, ctx sends no requests."
        )
        raise type(error)(message, hint=hint) from error


def _refuse_emptied_file(path: str) -> None:
    """An empty file may be in creation; if it is older, its content was lost."""
    try:
        status = os.stat(path)
    except OSError:
        return
    is_empty = stat.S_ISREG(status.st_mode) and not status.st_size and not size_of(f"{path}-wal")
    if is_empty and clock.wall_ms() - status.st_mtime * 1000 > _CREATION_MS:
        raise DatabaseFailure(f"{path_text(path)} is empty.", hint=_start_over_hint(path))


def _start_over_hint(path: str) -> str:
    name = shlex.quote(path_text(path))
    return f"`mv {name} {name}.damaged` starts a new one, without the usage of today."


class CappedMeter:
    """Allows calls for one purpose within the caps."""

    def __init__(
        self, ledger: Ledger, purpose: Purpose, target: ModelTarget, caps: Caps, prices: Prices
    ) -> None:
        self._ledger = ledger
        self._purpose = purpose
        self._target = target
        self._caps = caps
        self._prices = prices

    def reserve(self, tokens: int, estimate: int) -> "LedgerCall":
        purpose, caps = self._purpose, self._caps
        with self._ledger.writing() as connection:
            # In the transaction: a process that waited past midnight uses the new day.
            at = clock.iso(clock.now_ms())
            used = self._ledger.counted_on(at[:10])
            if used + tokens > caps.day:
                raise _cap_error("day", caps.day, used, tokens)
            if caps.session is not None and purpose.session:
                used = self._ledger.counted_in(purpose)
                if used + tokens > caps.session:
                    raise _cap_error("session", caps.session, used, tokens)
            row = connection.execute(
                "INSERT INTO calls (at, purpose, session, project, backend, place, model, state,"
                " counted, reserved, estimate) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (at, *purpose, *self._target, OPEN, tokens, tokens, estimate),
            )
            number = row.lastrowid
        assert number is not None
        self._ledger.open_calls.add(number)
        return LedgerCall(self._ledger, number, self._prices)


class LedgerCall:
    """One request with reserved tokens.

    If an update cannot be written because the disk is full, the call counts in full, and the answer
    is still returned.
    """

    def __init__(self, ledger: Ledger, number: int, prices: Prices) -> None:
        self._ledger = ledger
        self._number = number
        self._prices = prices
        self._began = clock.monotonic()

    def settle(self, usage: Usage, model: str) -> None:
        if not _is_plausible(usage):
            return
        # A server may report any model name.
        model = model[:_LONGEST_NAME].encode("utf-8", "replace").decode("utf-8")
        cost = usage.cost_micros
        if type(cost) is not int or not 0 <= cost <= _MOST_MICROS:
            cost = self._prices.cost_micros(model, usage)
        took_ms = round((clock.monotonic() - self._began) * 1000)
        cached = min(max(0, usage.cached_tokens), usage.input_tokens)
        with suppress(CtxError), self._ledger.writing() as connection:
            connection.execute(
                "UPDATE calls SET state = ?, counted = max(?, estimate / ?),"
                " model = coalesce(nullif(?, ''), model), input_tokens = ?, output_tokens = ?,"
                " cached_tokens = ?, cost_micros = ?, duration_ms = ? WHERE id = ? AND state = ?",
                (
                    *(DONE, usage.tokens, _SMALLEST_SHARE, model),
                    *(usage.input_tokens, usage.output_tokens, cached, cost, took_ms),
                    *(self._number, OPEN),
                ),
            )
            self._ledger.open_calls.discard(self._number)

    def exceed(self, tokens: int) -> None:
        with suppress(CtxError), self._ledger.writing() as connection:
            connection.execute(
                "UPDATE calls SET counted = reserved + ? WHERE id = ? AND state = ?",
                (min(tokens, _MOST_TOKENS), self._number, OPEN),
            )

    def release(self) -> None:
        with suppress(CtxError), self._ledger.writing() as connection:
            connection.execute(
                "UPDATE calls SET state = ?, counted = 0 WHERE id = ? AND state = ?",
                (REFUSED, self._number, OPEN),
            )
            self._ledger.open_calls.discard(self._number)


def _is_plausible(usage: Usage) -> bool:
    """Whether reported numbers are possible. They may be of any type."""
    counts = (usage.input_tokens, usage.output_tokens, usage.cached_tokens)
    # Exact: JSON's `true` is an int to isinstance.
    return all(type(count) is int and 0 <= count <= _MOST_TOKENS for count in counts)


def _cap_error(what: str, cap: int, used: int, wanted: int) -> BudgetExceeded:
    error = SessionCapReached if what == "session" else DailyCapReached
    when = {"day": "today", "session": "in this session"}[what]
    setting = {"day": "llm.daily_token_cap", "session": "llm.session_token_cap"}[what]
    return error(
        f"The model may use {cap:,} tokens a {what}: {used:,} are used or reserved {when}, and"
        f" this request may take {wanted:,}.",
        hint=f"`ctx cost` shows the usage; `ctx config set {setting} N` allows more.",
    )
