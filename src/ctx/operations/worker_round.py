"""From the spool to memory: one round of looking after what hooks reported.

    drain      do what agents asked for, keep what hooks reported          `apply`
    remember   steps, what transcripts add, observations and summaries,    `capture`, `reconcile`,
               learnings; then contexts anew                               `synthesise`, `learnings`
    upkeep     retention, the daily backup, whether all is well            `backups`, `health`
    freshen    the code index that agents work on, vectors, and what
               sessions of an older version of ctx lack

The worker does all of it after each wake, and `ctx hook apply` the first three where there is no
worker. Each part may be interrupted anywhere and run again, and what is wrong with one is no harm
to the others: whoever calls says what becomes of an error, by a guard around each.

Nothing heavy is imported before it is needed: a worker drains before it loads the rest.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from sqlite3 import Connection
from typing import NamedTuple

from ctx import clock, locks
from ctx.capture import event_table, session_state, session_table
from ctx.capture.session_state import Session
from ctx.hook_files import live, spool
from ctx.memory import stats
from ctx.operations import apply, health
from ctx.operations.apply import NOTHING, ApplyResult
from ctx.sqlite.connection import transaction
from ctx.workspace import Memory

Guard = Callable[[str], AbstractContextManager[None]]
"""Around a part, which it is given in words: what becomes of an error there."""

_LOCK = "tend.lock"
_QUIET_S = 20
_RECENT_MS = 2 * 86_400_000
_MOST_TRIES = 3
_UPKEEP_S = 3_600
_FRESH_S = 60
_SLICE_S = 0.5
_FILLED_AT_ONCE = 20
"""How many sessions of an older version of ctx get their commands and excerpts at a time."""
_FEW_NODES = 200
"""Among so many, words alone find what there is."""


class RoundResult(NamedTuple):
    """What a round has done."""

    applied: ApplyResult
    steps: int
    """Events that became steps, were dropped, or given up."""
    missed: int
    """Events that no hook reported, and a transcript did."""
    sessions: tuple[str, ...]
    """Sessions of which memory was made."""


class WorkerRounds:
    """Rounds of one process: what was tried in one is known in the next."""

    def __init__(
        self, home: str, guard: Guard, is_stopping: Callable[[], bool] = lambda: False
    ) -> None:
        self._home = home
        self._guard = guard
        self._is_stopping = is_stopping
        self.is_behind = False
        """Whether another process was at it: what is left is looked at again in a moment."""
        self._tries: dict[tuple[str, str], int] = {}
        """How often synthesis of a session failed, by the last event it was to be made of."""
        self._is_first = True
        self._upkept_s: float | None = None
        self._freshened: dict[str, tuple[str, float]] = {}
        """For a session, the last event and the time at which its code was looked at."""
        self._unfilled: list[Session] | None = None
        """Sessions of an older version of ctx, without commands and excerpts; None: not known."""

    def round(self, memory: Memory) -> RoundResult:
        """The first three parts."""
        applied = NOTHING
        with self._guard("the spool"):
            applied = drain(memory, self._home)
        tended = self.remember(memory)._replace(applied=applied)
        self.upkeep(memory)
        return tended

    def remember(self, memory: Memory) -> RoundResult:
        """Make memory of what is in the store. One process at a time is enough."""
        with hold_sessions(self._home) as held:
            self.is_behind = not held
            if not held:
                return RoundResult(NOTHING, 0, 0, ())
            steps = self._take(memory)
            due = self._due(memory)
            missed = self._reconcile(memory, due)
            if missed:
                steps += self._take(memory)
            made = self._synthesise(memory, due)
        if made:
            with self._guard("contexts"):
                apply.refresh(memory, dict.fromkeys(each.folder for each in made), self._home)
        return RoundResult(NOTHING, steps, missed, tuple(each.id for each in made))

    def _take(self, memory: Memory) -> int:
        counts = [0]
        with self._guard("steps"):
            from ctx.capture import pipeline

            with transaction(memory.user.connection):
                session_table.request_synthesis_of_late_events(memory.user.connection)
            found = pipeline.take(memory, self._home)
            counts = [found.steps, found.dropped, found.skipped]
        return sum(counts)

    def _due(self, memory: Memory) -> list[Session]:
        """The sessions of which something new can be told."""
        connection, now_ms = memory.user.connection, clock.now_ms()
        found: list[Session] = []
        with self._guard("sessions"):
            for each in session_state.silent(connection, self._home, now_ms):
                with transaction(connection):
                    session_state.end(
                        connection, each.id, session_state.closing_status(connection, each.id)
                    )
                found.append(each)
            since = "" if self._is_first else clock.iso(now_ms - _RECENT_MS)
            known = {each.id for each in found}
            found += [
                each
                for each in session_state.all_of(connection, since=since)
                if each.id not in known and self._is_due(connection, each, now_ms)
            ]
            self._is_first = False
        return found

    def _is_due(self, connection: Connection, session: Session, now_ms: int) -> bool:
        first = event_table.first_step(connection, session.id, session.synthesised)
        if first is None:
            return False
        if session.status != "active":
            return True
        if event_table.has_rested(connection, session.id, first):
            return True
        is_quiet = session.last_at < clock.iso(now_ms - _QUIET_S * 1000)
        return is_quiet and not live.is_live(self._home, session.id, clock.wall_s())

    def _reconcile(self, memory: Memory, due: Sequence[Session]) -> int:
        missed = 0
        for session in due:
            if self._is_stopping():
                break
            with self._guard(f"the transcript of {session.id}"):
                from ctx.capture import reconcile

                missed += reconcile.reconcile(
                    memory, self._home, session.id, lambda: not self._is_stopping()
                )
        return missed

    def _synthesise(self, memory: Memory, due: Sequence[Session]) -> list[Session]:
        connection = memory.user.connection
        made: list[Session] = []
        for session in due:
            tried = session.id, event_table.last_step(connection, session.id)
            if self._is_stopping() or self._tries.get(tried, 0) >= _MOST_TRIES:
                continue
            self._tries[tried] = self._tries.get(tried, 0) + 1
            with self._guard(f"synthesis of {session.id}"):
                from ctx.synthesis import session_writer

                now = session_state.find(connection, session.id) or session
                is_over = now.status != session_state.ACTIVE
                session_writer.synthesise(memory, session.id, is_over=is_over)
                del self._tries[tried]
                made.append(now)
        self._learn(memory, {each.project for each in made if each.status != session_state.ACTIVE})
        return made

    def _learn(self, memory: Memory, projects: set[str | None]) -> None:
        for project in sorted(projects, key=str):
            if not self._is_stopping():
                with self._guard(f"learnings of {project}"):
                    from ctx.operations import learnings

                    learnings.learn(memory, project)

    def upkeep(self, memory: Memory) -> None:
        """What is to be done once in a while."""
        now_s = clock.monotonic()
        if self._upkept_s is not None and now_s - self._upkept_s < _UPKEEP_S:
            return
        self._upkept_s = now_s
        with self._guard("retention"):
            from ctx.capture import pipeline
            from ctx.operations import model_questions
            from ctx.synthesis import excerpt_table

            pipeline.forget(memory)
            with transaction(memory.user.connection):
                keep_days = memory.environment.user_config.integer("capture.keep_days")
                excerpt_table.forget_old(memory.user.connection, keep_days)
            model_questions.forget(memory.user.connection)
        with self._guard("the daily backup"):
            from ctx.operations import store_backups

            config = memory.environment.user_config
            # A copy of nothing would be the only one for a day.
            if stats.has_nodes(memory.user.connection) and not memory.environment.is_single_store:
                store_backups.daily(memory.environment.graph_file, config.integer("backup.keep"))
        self._note_health(memory)

    def _note_health(self, memory: Memory) -> None:
        with self._guard("the health check"):
            health.note(self._home, health.health(memory))

    def freshen(self, memory: Memory) -> None:
        """Bring what is derived up to date, while nobody waits for anything else."""
        self._note_health(memory)
        with self._guard("the code index"):
            self._freshen_code(memory)
        with self._guard("vectors"):
            self._fill_vectors(memory)
        self._fill_old_sessions(memory)

    def _freshen_code(self, memory: Memory) -> None:
        """Where a session is live, has done something, and somebody once asked for the index."""
        now_s = clock.monotonic()
        for session in live.sessions(self._home):
            last = event_table.last(memory.user.connection, session)
            before, at_s = self._freshened.get(session, ("", 0))
            if last == before or now_s - at_s < _FRESH_S:
                continue
            if not live.is_live(self._home, session, clock.wall_s()):
                continue
            self._freshened[session] = last, now_s
            folder = live.folder_of(self._home, session)
            if os.path.isdir(folder):
                _freshen_code_at(memory, folder)

    def _fill_vectors(self, memory: Memory) -> None:
        nodes = stats.count_nodes(memory.user.connection)
        if nodes > _FEW_NODES and memory.environment.user_config.flag("search.vectors"):
            from ctx.packs import node_vectors

            node_vectors.fill_slice(memory, _SLICE_S)

    def _fill_old_sessions(self, memory: Memory) -> None:
        """Store the commands and excerpts of a few sessions that an older ctx synthesised.

        Each session is tried once. Nodes do not change: that is `ctx sessions rebuild`.
        """
        if self._unfilled == []:
            return
        from ctx.synthesis import session_writer

        connection = memory.user.connection
        with hold_sessions(self._home) as held:
            if not held:
                return
            if self._unfilled is None:
                with self._guard("commands and excerpts of old sessions"):
                    self._unfilled = session_writer.sessions_without_rows(connection)
            for _ in range(_FILLED_AT_ONCE):
                if not self._unfilled or self._is_stopping():
                    break
                session = self._unfilled.pop(0)
                with self._guard(f"commands and excerpts of {session.id}"):
                    session_writer.fill_rows(connection, session)


def drain(memory: Memory, home: str) -> ApplyResult:
    """Empty the spool, as far as nobody else is at it."""
    with apply.hold_spool(home) as held:
        if not held:
            return NOTHING._replace(waiting=len(spool.waiting(home)))
        timeout_s = transcript_timeout_s(memory)
        done = apply.commands(memory, home, timeout_s)
        more = apply.events(memory, home, timeout_s)
    stops, refused = (*done.stops, *more.stops), (*done.refused, *more.refused)
    return more._replace(stops=stops, refused=refused)


def transcript_timeout_s(memory: Memory) -> float:
    return memory.environment.user_config.number("hooks.transcript_timeout_seconds")


def problems(applied: ApplyResult) -> list[str]:
    """What a person should know about, in sentences."""
    told = [f"{each.kind} {each.event} was not stored: {each.reason}" for each in applied.refused]
    for stop in applied.stops:
        if stop.large:
            told.append(f"a command of {stop.session} has {stop.large:,} characters of content")
        if stop.problem:
            told.append(f"the answer of {stop.session} could not be fully read: {stop.problem}")
    return told


@contextmanager
def hold_sessions(home: str, seconds: float = 0) -> Iterator[bool]:
    """Whether nobody else makes memory of sessions, until the block ends. A round is waited for."""
    with locks.try_hold(f"{home}/{_LOCK}", seconds) as fd:
        yield fd is not None


def _freshen_code_at(memory: Memory, folder: str) -> None:
    from ctx.codebase import background_refresh, code_index

    codebase = code_index.codebase_at(memory.environment._replace(folder=folder))
    if os.path.exists(codebase.place.database):
        background_refresh.start(codebase)
