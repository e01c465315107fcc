"""Turn the events of hooks and transcripts into steps.

`take` processes pending events, oldest first. An event and all its consequences are written in one
transaction: its step, its session, the items of code that it changed. So `take` can be interrupted
anywhere and run again.

Each attempt is counted before it starts. An event that ends the process is processed alone next
time, and skipped with a reason after the third attempt, so that it does not block the others.
"""

import os
import sqlite3
from collections.abc import Iterable, Sequence
from sqlite3 import Connection
from typing import NamedTuple

from ctx import clock
from ctx.capture import (
    capture,
    capture_off,
    event_store,
    event_table,
    session_state,
    steps,
    symbol_changes,
    team_table,
)
from ctx.capture.capture import DroppedEvent
from ctx.capture.capture_places import CapturePlaces
from ctx.capture.steps import DROPPED, SKIPPED, STEP, Step, SymbolChange
from ctx.errors import ContentRefused, CtxError, GitFailure, UsageError
from ctx.hook_files import spool
from ctx.hosts.events import Event
from ctx.layout import Place
from ctx.sqlite.connection import transaction
from ctx.workspace import Memory

_BATCH = 64
_MOST_TRIES = 3
_LAST_STEPS = 200
_LONGEST_REASON = 300
_MEGABYTE = 1_000_000
_FAULTS = (
    *(ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError),
    *(TypeError, ValueError, ContentRefused, GitFailure, UsageError),
)
"""Errors that one event can cause. Errors of the disk or the store are not among them."""
_TRIED = "It was tried three times."
_DUPLICATE = "seen before"
_PAUSED = "ctx was paused"
_LEFT_OUT = "the path is excluded"


class CaptureCounts(NamedTuple):
    steps: int = 0
    dropped: int = 0
    skipped: int = 0
    sessions: tuple[str, ...] = ()
    """Sessions with new steps."""


def take(memory: Memory, home: str, tick: clock.Tick = clock.no_tick) -> CaptureCounts:
    """Process all pending events."""
    total = event_table.count_pending(memory.local)
    taking = _CaptureRun(memory, home)
    done, after = 0, ""
    while found := event_store.pending_events(
        memory.local, after, _BATCH, memory.environment.hosts
    ):
        batch = _batch(found)
        taking.take(batch)
        after = batch[-1][0].id
        done += len(batch)
        tick(done, max(done, total))
    symbol_changes.forget()
    return taking.taken


def forget(memory: Memory) -> int:
    """Delete old events, and the oldest if they take too much space; how many were deleted.

    Memory made from them stays. Pending events are never deleted, and events that synthesis has
    processed go first.
    """
    config = memory.environment.user_config
    due = clock.expired_range(config.integer("capture.keep_days"))
    most = config.integer("capture.max_mb") * _MEGABYTE
    with transaction(memory.local):
        gone = memory.local.execute(
            "DELETE FROM events WHERE at >= ? AND at < ? AND status <> 'new'"
            " AND NOT EXISTS (SELECT 1 FROM sessions WHERE id = events.session"
            " AND events.id > synthesised AND events.status = 'step')",
            due,
        ).rowcount
        size = memory.local.execute(
            "SELECT coalesce(sum(length(body)), 0) FROM events WHERE status <> 'new'"
        ).fetchone()[0]
        if size > most:
            gone += memory.local.execute(
                "DELETE FROM events WHERE id IN (SELECT id FROM (SELECT e.id, sum(length(e.body))"
                " OVER (ORDER BY e.id <= coalesce(s.synthesised, '') DESC, e.id)"
                " - length(e.body) AS so_far"
                " FROM events AS e LEFT JOIN sessions AS s ON s.id = e.session"
                " WHERE e.status <> 'new') WHERE so_far < ?)",
                (size - most,),
            ).rowcount
    return int(gone)


def _batch(found: Sequence[tuple[Event, int]]) -> list[tuple[Event, int]]:
    """As many events as can be processed together: one that failed before runs alone."""
    batch: list[tuple[Event, int]] = []
    for each in found:
        if each[1]:
            return batch or [each]
        batch.append(each)
    return batch


class _CaptureRun:
    """One run of the pipeline, with its caches of places and sessions."""

    def __init__(self, memory: Memory, home: str) -> None:
        self._connection = memory.local
        self._home = home
        self._hosts = memory.environment.hosts
        self._places = CapturePlaces(memory, home)
        self._homes: dict[str, Place] = {}
        self._seen: dict[str, _RecentSteps] = {}
        self._sessions: dict[str, None] = {}
        self._counts = dict.fromkeys((STEP, DROPPED, SKIPPED), 0)

    @property
    def taken(self) -> CaptureCounts:
        counts = self._counts
        return CaptureCounts(counts[STEP], counts[DROPPED], counts[SKIPPED], tuple(self._sessions))

    def take(self, batch: Sequence[tuple[Event, int]]) -> None:
        self._count(batch, 1)
        try:
            made = [(event, tries, self._process_event(event, tries)) for event, tries in batch]
            with transaction(self._connection):
                for event, tries, step in made:
                    if step is not None:
                        self._keep_alone(event, tries, step)
        except (sqlite3.Error, OSError, CtxError):
            # No event caused this, so the attempt does not count.
            self._count(batch, -1)
            raise

    def _count(self, batch: Sequence[tuple[Event, int]], more: int) -> None:
        with transaction(self._connection):
            self._connection.executemany(
                "UPDATE events SET attempts = attempts + ? WHERE id = ?",
                [(more, event.id) for event, _ in batch],
            )

    def _process_event(self, event: Event, tries: int) -> "Step | DroppedEvent | _Skip | None":
        """The result for an event; None if it is to be tried again."""
        if tries >= _MOST_TRIES:
            return _Skip(_TRIED)
        try:
            return self._step(event)
        except _FAULTS as error:
            return _skip_after_retries(error, tries)

    def _step(self, event: Event) -> Step | DroppedEvent:
        # Raises for an unknown host.
        self._hosts.named(event.host)
        if self._places.is_paused(event.folder, spool.made_ms(event.id)):
            return DroppedEvent(_PAUSED)
        here, home = self._places.at(event.folder), self._home_of(event)
        if closed := self._places.rules(home).closed:
            return DroppedEvent(closed)
        if self._places.leaves_out(event):
            return DroppedEvent(_LEFT_OUT)
        step = capture.step_of(event, self._places.rules(here), here.folder)
        if not isinstance(step, Step):
            return step
        if step.path and home.project not in (None, here.project):
            # A path in another project is stored in full.
            return step._replace(path=os.path.join(here.folder, step.path))
        return self._places.in_project(step, here)

    def _home_of(self, event: Event) -> Place:
        """Where the session of an event runs."""
        if event.session not in self._homes:
            session = session_state.find(self._connection, event.session)
            folder = session.folder if session and session.folder else event.folder
            self._homes[event.session] = self._places.at(folder)
        return self._homes[event.session]

    def _keep_alone(self, event: Event, tries: int, made: "Step | DroppedEvent | _Skip") -> None:
        """Inside a transaction: store the result for an event, all of it or nothing."""
        self._connection.execute("SAVEPOINT event")
        try:
            self._keep(event, made)
        except _FAULTS as error:
            self._connection.execute("ROLLBACK TO event")
            if given_up := _skip_after_retries(error, tries):
                self._end(event, SKIPPED, given_up.reason)
        self._connection.execute("RELEASE event")

    def _keep(self, event: Event, made: "Step | DroppedEvent | _Skip") -> None:
        if isinstance(made, _Skip):
            self._end(event, SKIPPED, made.reason)
            return
        here = self._places.at(event.folder)
        is_closed = (
            self._places.rules(here).closed or self._places.rules(self._home_of(event)).closed
        )
        if is_closed:
            # The transcript may be read when capture is on again.
            capture_off.close(self._home, event.session, spool.made_ms(event.id))
        elif made != DroppedEvent(_PAUSED):
            capture_off.reopen(self._home, event.session, spool.made_ms(event.id))
            session_state.record_event(self._connection, self._home, event, here, clock.now_ms())
            team_table.record_event(self._connection, event)
        if isinstance(made, Step) and not self._recent_steps(event.session).is_news(made):
            made = DroppedEvent(_DUPLICATE)
        if isinstance(made, DroppedEvent):
            self._end(event, DROPPED, made.reason)
            return
        # Symbol changes name a file by its path in its own project, whichever session made them.
        inside = made.path.removeprefix(f"{here.folder.rstrip('/')}/")
        _change_symbols(self._connection, made._replace(path=inside), here.project)
        self._end(event, STEP, None, steps.body(made))
        self._sessions[event.session] = None

    def _end(self, event: Event, status: str, reason: str | None, body: str = "") -> None:
        self._connection.execute(
            "UPDATE events SET status = ?, body = ?, reason = ? WHERE id = ?",
            (status, body, reason, event.id),
        )
        self._counts[status] += 1

    def _recent_steps(self, session: str) -> "_RecentSteps":
        if session not in self._seen:
            self._seen[session] = _RecentSteps(_last_steps(self._connection, session))
        return self._seen[session]


class _Skip(NamedTuple):
    reason: str


def _skip_after_retries(error: Exception, tries: int) -> _Skip | None:
    """Skip an event after enough attempts; None before that."""
    if tries + 1 < _MOST_TRIES:
        return None
    return _Skip(f"{type(error).__name__}: {error}"[:_LONGEST_REASON])


def _last_steps(connection: Connection, session: str) -> list[Step]:
    rows = connection.execute(
        "SELECT id, session, at, tool, tool_use, body FROM events"
        " WHERE session = ? AND status = ? ORDER BY id DESC LIMIT ?",
        (session, STEP, _LAST_STEPS),
    ).fetchall()
    return [steps.read(row) for row in reversed(rows)]


class _RecentSteps:
    """The last steps of a session, to recognise a step that adds nothing."""

    def __init__(self, before: Iterable[Step]) -> None:
        self._files: dict[tuple[str, str], str] = {}
        """Files that were read and not written since."""
        self._said: dict[str, str] = {}
        self._last: dict[str, Step] = {}
        for step in before:
            self._add(step)

    def is_news(self, step: Step) -> bool:
        """Whether a step is new; if so it is remembered."""
        last = self._last.get(step.kind)
        match step.kind:
            case "read":
                is_known = (step.path, step.text) in self._files
            case "say":
                # The transcript contains the parts of a last message.
                words = _words(step.text)
                is_known = words in self._said or (last and words in _words(last.text)) or False
            case "command":
                is_known = last is not None and _content(last) == _content(step)
            case "title" | "name":
                # The client writes them again from time to time.
                is_known = last is not None and last.text == step.text
            case "prompt" | "mark":
                # Two hooks got the same event, unless there is time between them.
                is_known = (
                    last is not None
                    and (last.text, last.agent) == (step.text, step.agent)
                    and _are_simultaneous(last, step)
                )
            case _:
                is_known = False
        if not is_known:
            self._add(step)
        return not is_known

    def _add(self, step: Step) -> None:
        self._last[step.kind] = step
        if step.kind == "read":
            self._files[step.path, step.text] = step.id
        elif step.kind == "write":
            self._files = {key: at for key, at in self._files.items() if key[0] != step.path}
            # After a write, the same command may end differently.
            self._last.pop("command", None)
        elif step.kind == "say":
            self._said[_words(step.text)] = step.id


def _words(text: str) -> str:
    return " ".join(text.split())


def _content(step: Step) -> tuple[object, ...]:
    return step.text, step.ok, step.exit_code, step.output, step.passed


def _are_simultaneous(one: Step, other: Step) -> bool:
    return abs(spool.made_ms(one.id) - spool.made_ms(other.id)) <= event_store.SAME_MS


def _change_symbols(connection: Connection, step: Step, project: str | None) -> None:
    """Update the symbol changes of a session with one more write."""
    for each in step.changes:
        key = (step.session, step.path, each.name, each.kind)
        row = connection.execute(
            "SELECT change FROM symbol_changes WHERE session = ? AND path = ? AND name = ?"
            " AND kind = ?",
            key,
        ).fetchone()
        change = _joined_change(row[0] if row else None, each)
        if change is None:
            connection.execute(
                "DELETE FROM symbol_changes WHERE session = ? AND path = ? AND name = ?"
                " AND kind = ?",
                key,
            )
        else:
            connection.execute(
                "INSERT OR REPLACE INTO symbol_changes"
                " (session, path, name, kind, change, signature, line, project, at)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (*key, change, each.signature, each.line, project, step.at),
            )


def _joined_change(before: str | None, each: SymbolChange) -> str | None:
    """The change of an item since the session began; None if it was added and deleted."""
    match before, each.change:
        case "new", "deleted":
            return None
        case "new", _:
            return "new"
        case "deleted", "new":
            return "modified"
        case _:
            return each.change
