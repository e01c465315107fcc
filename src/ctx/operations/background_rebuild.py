"""Rebuild past sessions in the background, after the rules of synthesis have changed.

The worker calls `BackgroundRebuild.advance` when it is idle. Each call prepares a few sessions, for
a few seconds at most. When all are prepared, they are written in one change, after a backup. A file
in the user store says which rules the sessions were made by:

    rebuild.json    {"rules": 3, "through": ["2026-11-02T10:00:00Z", "0c1fb4a8-…"]}

`through` is the last rebuilt session of a large store; it is null when all are rebuilt. If the file
is lost, or the worker is killed, the sessions are prepared again. That changes nothing in sessions
which were already rebuilt. A session that cannot be rebuilt is skipped.
"""

import json
import os
from collections.abc import Sequence
from typing import NamedTuple

from ctx import clock, disk, ids
from ctx.capture import event_table, session_state
from ctx.capture.session_state import Session
from ctx.memory import event_log
from ctx.operations import session_rebuild
from ctx.operations.session_rebuild import SkippedSession
from ctx.operations.worker_round import IdleJob
from ctx.synthesis import session_stores, session_writer
from ctx.synthesis.session_writer import RULES, PreparedSession
from ctx.workspace import Memory

STATE = "rebuild.json"
SESSION = "rebuild"
"""The session of the change. It is not that of the user's commands, so that `ctx undo` without the
id of a change does not revert a rebuild."""

_SLICE_S = 3.0
_MOST_SESSIONS = 200
"""How many sessions one change rebuilds. A larger store is rebuilt in several changes."""


class _Progress(NamedTuple):
    rules: int
    through: tuple[str, str] | None
    """When the last rebuilt session started, and its id; None: all are rebuilt."""


class BackgroundRebuild(IdleJob):
    """The rebuild of one worker: prepares a few sessions at a time, then writes them all."""

    _prepared: Sequence[tuple[PreparedSession, str]] = ()
    """Prepared sessions, each with its last step at that time."""
    _through = "", ""
    _scrubbed = 0

    @property
    def is_under_way(self) -> bool:
        """Whether some sessions are prepared but not written yet."""
        return bool(self._prepared)

    def _advance(self, memory: Memory) -> bool:
        """Whether all sessions are rebuilt."""
        scrubbed = event_log.last_id(memory.local, event_log.SCRUBBED)
        if self._waiting is None or scrubbed != self._scrubbed:
            self._scrubbed, self._prepared = scrubbed, ()
            progress = _read(self._home)
            if progress.rules > RULES or (progress.rules == RULES and not progress.through):
                return True
            self._through = (progress.rules == RULES and progress.through) or ("", "")
            self._waiting = _sessions_after(memory, self._through)
        until_s = clock.monotonic() + _SLICE_S
        while self._waiting and len(self._prepared) < _MOST_SESSIONS:
            if self._is_wanted() or clock.monotonic() > until_s:
                return False
            self._prepare(memory, self._waiting.pop(0))
        if self._prepared:
            self._write(memory)
        _write(self._home, _Progress(RULES, self._through if self._waiting else None))
        return not self._waiting

    def _prepare(self, memory: Memory, session: Session) -> None:
        self._through = session.started_at, session.id
        with self._guard(f"rebuild of {session.id}"):
            made = session_rebuild.prepare(memory, session)
            if not isinstance(made, SkippedSession):
                last = event_table.last_step(memory.local, session.id)
                session_writer.fill_rows(memory.local, session)
                self._prepared = *self._prepared, (session_writer.without_texts(made), last)

    def _write(self, memory: Memory) -> None:
        """Write what is prepared, except sessions that were continued or deleted since."""
        prepared = [
            each
            for each, last in self._prepared
            if last == event_table.last_step(memory.local, each.session.id)
            and (now := session_state.find(memory.local, each.session.id)) is not None
            and now.status != session_state.ACTIVE
        ]
        self._prepared = ()
        environment = memory.environment._replace(session=ids.session_id(SESSION))
        result = session_rebuild.write(
            Memory(memory.user, None, environment, session_stores.AUTHOR, local=memory.local),
            prepared,
        )
        if result.change:
            self._log(
                f"rebuilt {len(result.sessions)} sessions: {result.new} nodes new,"
                f" {result.changed} changed, {result.withdrawn} withdrawn;"
                f" to revert it: ctx undo {result.change}"
            )


def _sessions_after(memory: Memory, through: tuple[str, str]) -> list[Session]:
    """The synthesised sessions that are over, oldest first."""
    found = [
        each
        for each in session_state.all_of(memory.local)
        if each.synthesised
        and each.status != session_state.ACTIVE
        and (each.started_at, each.id) > through
    ]
    return sorted(found, key=lambda each: (each.started_at, each.id))


def _read(home: str) -> _Progress:
    try:
        stored = json.loads(disk.read_or_none(os.path.join(home, STATE)) or b"{}")
        rules, through = int(stored["rules"]), stored["through"]
        return _Progress(rules, (str(through[0]), str(through[1])) if through else None)
    except (ValueError, TypeError, LookupError):
        return _Progress(0, None)


def _write(home: str, progress: _Progress) -> None:
    disk.replace(os.path.join(home, STATE), json.dumps(progress._asdict()).encode())
