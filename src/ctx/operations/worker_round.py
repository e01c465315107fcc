"""From the spool to memory: one round that processes what hooks reported.

    drain      run commands of agents, store the events of hooks           `apply`
    remember   steps, events from transcripts, observations, summaries,    `capture`, `reconcile`,
               learnings; then new contexts                                `synthesise`, `learnings`
    upkeep     sessions that hooks could not report, retention, the        `unreported_sessions`,
               daily backup, blocks in AGENTS.md, the health check         `backups`, `projection`
    freshen    the code index of live sessions, vectors, and rows that
               sessions of an older version of ctx lack

The worker runs all parts after each wake; without a worker, `ctx hook apply` runs the first three.
Each part can be interrupted anywhere and run again. An error in one does not stop the others: the
caller passes a guard around each part, which handles its errors.

Nothing heavy is imported before it is needed: a worker drains before it loads the rest.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
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
"""A context manager around a part, called with its name, that handles errors."""

_LOCK = "tend.lock"
_RECENT_MS = 2 * 86_400_000
_MOST_TRIES = 3
_UPKEEP_S = 3_600
_FRESH_S = 60
_SLICE_S = 0.5
_FILLED_AT_ONCE = 20
"""How many sessions of an older version of ctx get their commands and excerpts at a time."""
_FEW_NODES = 200
"""In a store of this size, search by words is enough."""


class RoundResult(NamedTuple):
    """The result of a round."""

    applied: ApplyResult
    steps: int
    """Events that became steps, were dropped, or given up."""
    sessions: tuple[str, ...]
    """Sessions that were synthesised."""


class WorkerRounds:
    """The rounds of one process, with what one round remembers for the next."""

    def __init__(
        self,
        home: str,
        guard: Guard,
        is_stopping: Callable[[], bool] = lambda: False,
        catch_up: Callable[[Memory], object] = lambda _: None,
        *,
        is_worker: bool = False,
    ) -> None:
        self._home = home
        self._catch_up = catch_up
        """Imports sessions that hooks could not report."""
        self._guard = guard
        self._is_stopping = is_stopping
        self._is_worker = is_worker
        """Whether this process updates the blocks in AGENTS.md."""
        self._reported: set[str] = set()
        """Why blocks could not be updated. It is logged once."""
        self.is_behind = False
        """Whether another process held the lock; the next round comes soon."""
        self._tries: dict[tuple[str, str], int] = {}
        """How often synthesis of a session failed, by session and last step."""
        self._is_first = True
        self._upkept_s: float | None = None
        self._freshened: dict[str, tuple[str, float]] = {}
        """By session, the last event and the time of the last check of its code."""
        self._unfilled: list[Session] | None = None
        """Sessions of an older version of ctx without commands and excerpts; None: not read yet."""

    def round(self, memory: Memory) -> RoundResult:
        """Run the first three parts."""
        applied = NOTHING
        with self._guard("the spool"):
            applied = drain(memory, self._home)
        result = self.remember(memory)._replace(applied=applied)
        self.upkeep(memory)
        return result

    def remember(self, memory: Memory) -> RoundResult:
        """Turn stored events into memory. Only one process does so at a time."""
        with hold_sessions(self._home) as held:
            self.is_behind = not held
            if not held:
                return RoundResult(NOTHING, 0, ())
            steps = self._process_events(memory)
            due = self._due_sessions(memory)
            if self._reconcile(memory, due):
                steps += self._process_events(memory)
            synthesised = self._synthesise(memory, due)
        if synthesised:
            folders = dict.fromkeys(each.folder for each in synthesised)
            with self._guard("sessions that have ended"):
                apply.compact_ended(memory, folders, self._home)
            with self._guard("contexts"):
                apply.refresh(memory, folders, self._home)
            self._refresh_projections(memory, folders)
        return RoundResult(NOTHING, steps, tuple(each.id for each in synthesised))

    def _process_events(self, memory: Memory) -> int:
        counts = [0]
        with self._guard("steps"):
            from ctx.capture import pipeline

            with transaction(memory.local):
                session_table.request_synthesis_of_late_events(memory.local)
            taken = pipeline.take(memory, self._home)
            counts = [taken.steps, taken.dropped, taken.skipped]
        return sum(counts)

    def _due_sessions(self, memory: Memory) -> list[Session]:
        """The sessions with something new to synthesise."""
        connection, now_ms = memory.local, clock.now_ms()
        due: list[Session] = []
        with self._guard("sessions"):
            for each in session_state.silent_sessions(connection, self._home, now_ms):
                with transaction(connection):
                    session_state.end(
                        connection, each.id, session_state.closing_status(connection, each.id)
                    )
                due.append(each)
            since = "" if self._is_first else clock.iso(now_ms - _RECENT_MS)
            known = {each.id for each in due}
            due += [
                each
                for each in session_state.all_of(connection, since=since)
                if each.id not in known and self._is_due(connection, each, now_ms)
            ]
            self._is_first = False
        return due

    def _is_due(self, connection: Connection, session: Session, now_ms: int) -> bool:
        first = event_table.first_step(connection, session.id, session.synthesised)
        if first is None:
            return False
        if session.status != "active":
            return True
        if event_table.has_rested(connection, session.id, first):
            return True
        is_quiet = session.last_at < clock.iso(now_ms - session_state.QUIET_MS)
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
        made: list[Session] = []
        for session in due:
            tried = session.id, event_table.last_step(memory.local, session.id)
            if self._is_stopping() or self._tries.get(tried, 0) >= _MOST_TRIES:
                continue
            self._tries[tried] = self._tries.get(tried, 0) + 1
            if not self._stage(memory, session) and self._tries[tried] < _MOST_TRIES:
                # Both are tried again in the next round.
                continue
            with self._guard(f"synthesis of {session.id}"):
                from ctx.synthesis import session_writer

                now = session_state.find(memory.local, session.id) or session
                is_over = now.status != session_state.ACTIVE
                session_writer.synthesise(memory, session.id, is_over=is_over)
                del self._tries[tried]
                made.append(now)
        self._learn(memory, {each.project for each in made if each.status != session_state.ACTIVE})
        return made

    def _stage(self, memory: Memory, session: Session) -> bool:
        """Stage the work of a session in its project, if it is to be; whether that succeeded."""
        has_failed = True
        with self._guard(f"staging of {session.id}"):
            from ctx.operations import stage_captured

            stage_captured.stage_captured(memory, session)
            has_failed = False
        return not has_failed

    def _learn(self, memory: Memory, projects: set[str | None]) -> None:
        for project in sorted(projects, key=str):
            if not self._is_stopping():
                with self._guard(f"learnings of {project}"):
                    from ctx.operations import learnings

                    learnings.learn(memory, project)

    def upkeep(self, memory: Memory) -> None:
        """Run the hourly maintenance."""
        now_s = clock.monotonic()
        if self._upkept_s is not None and now_s - self._upkept_s < _UPKEEP_S:
            return
        self._upkept_s = now_s
        with self._guard("sessions that hooks could not report"):
            self._catch_up(memory)
        with self._guard("retention"):
            from ctx.capture import pipeline
            from ctx.operations import model_questions
            from ctx.synthesis import excerpt_table

            pipeline.forget(memory)
            with transaction(memory.local):
                keep_days = memory.environment.user_config.integer("capture.keep_days")
                excerpt_table.forget_old(memory.local, keep_days)
            model_questions.forget(memory.local)
        with self._guard("the daily backup"):
            from ctx.operations import store_backups

            config = memory.environment.user_config
            # A backup of an empty store would be the only one for a day.
            if stats.has_nodes(memory.user.connection) and not memory.environment.is_single_store:
                store_backups.make_daily_backup(
                    memory.environment.graph_file, config.integer("backup.keep")
                )
        self._refresh_projections(memory)
        self._note_health(memory)

    def _refresh_projections(self, memory: Memory, folders: Iterable[str] | None = None) -> None:
        if not self._is_worker:
            return
        with self._guard("the blocks in AGENTS.md"):
            from ctx.operations import projection

            for problem in projection.refresh(memory, folders):
                if str(problem) not in self._reported:
                    self._reported.add(str(problem))
                    with self._guard("the block in a file"):
                        raise problem

    def _note_health(self, memory: Memory) -> None:
        with self._guard("the health check"):
            health.note(self._home, health.health(memory))

    def freshen(self, memory: Memory) -> None:
        """Update derived data while nothing else is waiting."""
        self._note_health(memory)
        with self._guard("the code index"):
            self._freshen_code(memory)
        with self._guard("vectors"):
            nodes = stats.count_nodes(memory.user.connection)
            if nodes > _FEW_NODES and memory.environment.user_config.flag("search.vectors"):
                from ctx.packs import node_vectors

                node_vectors.fill_slice(memory, _SLICE_S)
        self._fill_old_sessions(memory)

    def _freshen_code(self, memory: Memory) -> None:
        """Refresh existing code indexes of live sessions with new events."""
        now_s = clock.monotonic()
        for session in live.sessions(self._home):
            last = event_table.last(memory.local, session)
            before, at_s = self._freshened.get(session, ("", 0))
            if last == before or now_s - at_s < _FRESH_S:
                continue
            if not live.is_live(self._home, session, clock.wall_s()):
                continue
            self._freshened[session] = last, now_s
            folder = live.folder_of(self._home, session)
            if os.path.isdir(folder):
                from ctx.codebase import background_refresh, indexing

                codebase = indexing.codebase_at(memory.environment._replace(folder=folder))
                if os.path.exists(codebase.place.database):
                    background_refresh.start(codebase)

    def _fill_old_sessions(self, memory: Memory) -> None:
        """Store the commands and excerpts of a few sessions that an older ctx synthesised.

        Each session is tried once. Nodes do not change: that is `ctx sessions rebuild`.
        """
        if self._unfilled == []:
            return
        from ctx.synthesis import session_writer

        with hold_sessions(self._home) as held:
            if not held:
                return
            if self._unfilled is None:
                with self._guard("commands and excerpts of old sessions"):
                    self._unfilled = session_writer.sessions_without_rows(memory.local)
            for _ in range(_FILLED_AT_ONCE):
                if not self._unfilled or self._is_stopping():
                    break
                session = self._unfilled.pop(0)
                with self._guard(f"commands and excerpts of {session.id}"):
                    session_writer.fill_rows(memory.local, session)


def drain(memory: Memory, home: str) -> ApplyResult:
    """Process the spool, unless another process does."""
    with apply.hold_spool(home) as held:
        if not held:
            return NOTHING._replace(waiting=len(spool.pending_names(home)))
        timeout_s = transcript_timeout_s(memory)
        done = apply.commands(memory, home, timeout_s)
        more = apply.events(memory, home, timeout_s)
    stops, refused = (*done.stops, *more.stops), (*done.refused, *more.refused)
    return more._replace(stops=stops, refused=refused)


def transcript_timeout_s(memory: Memory) -> float:
    return memory.environment.user_config.number("hooks.transcript_timeout_seconds")


def problems(applied: ApplyResult) -> list[str]:
    """Messages about problems that the user should know."""
    messages = [
        f"{each.kind} {each.event} was not stored: {each.reason}" for each in applied.refused
    ]
    for stop in applied.stops:
        if stop.large:
            messages.append(f"a command of {stop.session} has {stop.large:,} characters of content")
        if stop.problem:
            messages.append(f"the answer of {stop.session} could not be fully read: {stop.problem}")
    return messages


@contextmanager
def hold_sessions(home: str, seconds: float = 0) -> Iterator[bool]:
    """Hold the lock for synthesis; yields False if another process holds it."""
    with locks.try_hold(f"{home}/{_LOCK}", seconds) as fd:
        yield fd is not None


class IdleJob:
    """What a worker does about all sessions when it is idle, in slices.

    Another process must not process sessions meanwhile. If it fails, the next worker tries again.
    """

    def __init__(
        self,
        home: str,
        guard: Guard,
        is_stopping: Callable[[], bool],
        log: Callable[[str], None],
    ) -> None:
        self._home = home
        self._guard = guard
        self._is_stopping = is_stopping
        self._log = log
        self._is_done = False
        self._waiting: list[Session] | None = None
        """The sessions that are left; None: not read yet."""

    def advance(self, memory: Memory) -> None:
        """Do one slice."""
        if self._is_done:
            return
        with hold_sessions(self._home) as held:
            if held:
                self._is_done = True
                self._is_done = self._advance(memory)

    def _advance(self, memory: Memory) -> bool:
        """Do one slice; whether it was the last."""
        raise NotImplementedError

    def _is_wanted(self) -> bool:
        """Whether the worker has something else to do."""
        return self._is_stopping() or bool(spool.pending_names(self._home))
