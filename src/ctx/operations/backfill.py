"""Import past sessions from the transcripts of a host.

A transcript takes the same way as events of hooks: events, steps, observations, a summary. The
oldest session comes first. Each is durable before the next begins, and what is already stored is
not imported again: interrupting loses nothing, and a second run changes nothing.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from ctx import clock, disk, ids, interrupts, layout
from ctx.capture import (
    capture_off,
    capture_rules,
    event_table,
    pipeline,
    reconcile,
    session_state,
    session_table,
)
from ctx.capture.session_state import Session
from ctx.capture.steps import ASSISTANT_MESSAGE
from ctx.errors import ContentRefused, CtxError, GitFailure, LockConflict, UsageError
from ctx.hook_files import live
from ctx.hosts.host_adapter import Transcripts
from ctx.hosts.host_registry import FIRST
from ctx.layout import Place
from ctx.memory import event_log, records
from ctx.memory.query import time_filters
from ctx.operations import apply, learnings, worker_round
from ctx.packs import node_vectors
from ctx.project import trust_check
from ctx.sqlite.connection import transaction
from ctx.synthesis import session_writer
from ctx.workspace import Memory

_PREVIEW_BYTES = 256 * 1024
# After such a long silence, no client waits for an answer.
_QUIET_MS = 900_000
_LOCK_S = 60.0
_FILL_S = 30.0
_FAULTS = (
    *(ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError),
    *(TypeError, ValueError, ContentRefused, GitFailure, UsageError),
)
"""What may be wrong with one session, and with no other. What a disk or a store refuses is not."""


class Options(NamedTuple):
    folder: str
    """Where the host keeps its files."""
    paths: tuple[str, ...] = ()
    """Transcripts, or folders of them, instead of those."""
    since: str | None = None
    project: str | None = None
    """A name, or a folder."""
    dry_run: bool = False
    host: str = FIRST
    is_automatic: bool = False
    """Whether nobody asked for it, so that `ctx undo` does not choose it."""


class PastSession(NamedTuple):
    """A session of which there is a transcript."""

    session: str
    path: str
    size: int
    changed_ms: int
    began: str
    folder: str
    project: str | None
    copied: int = 0
    """How much of it may be of another session, to find out which of two was first."""


class ImportedSession(NamedTuple):
    """A session that was imported, or would be."""

    session: str
    project: str | None
    began: str
    what: str
    """What it was about."""
    is_known: bool
    """Whether it was imported before and has only continued."""
    steps: int
    observations: int


class SkippedTranscript(NamedTuple):
    path: str
    reason: str


class BackfillResult(NamedTuple):
    """The answer of `ctx import --transcripts`, and of `ctx import --from` another host."""

    dry_run: bool
    sessions: tuple[ImportedSession, ...]
    unchanged: int
    """Sessions of which nothing is new."""
    left_out: int
    """Sessions excluded by --since, --project or a setting, deleted or active ones, and files
    without a session."""
    steps: int
    observations: int
    learnings: int
    """New ones."""
    size: int
    """Bytes that were read."""
    seconds: float
    skipped: tuple[SkippedTranscript, ...]
    """What is damaged, and why."""
    change: str | None = None
    """What `ctx undo` takes to undo it; None if no new session was imported."""


def backfill(memory: Memory, wanted: Options, tick: clock.Tick = clock.no_tick) -> BackfillResult:
    """All sessions of which there are transcripts, the oldest first."""
    began_s = clock.monotonic()
    work = _Backfill(memory, wanted)
    found = sorted(
        work.wanted_transcripts(),
        key=lambda past: (past.began, past.copied, past.changed_ms, past.session),
    )
    for number, past in enumerate(found):
        tick(number, len(found))
        work.take(past)
    tick(len(found), len(found))
    if not wanted.dry_run:
        work.finish({past.project for past in found})
    return work.done(clock.monotonic() - began_s)


class _Backfill:
    def __init__(self, memory: Memory, wanted: Options) -> None:
        self._memory = memory
        self._connection = memory.local
        self._wanted = wanted
        self._transcripts = memory.environment.hosts.named(wanted.host).transcripts
        self._home = memory.environment.user_store.home
        self._config = memory.environment.user_config
        self._now_ms = clock.now_ms()
        self._since_ms = time_filters.moment(wanted.since, self._now_ms) if wanted.since else 0
        self._places: dict[str, Place] = {}
        self._sessions: list[ImportedSession] = []
        self._folders: dict[str, None] = {}
        self._skipped: list[SkippedTranscript] = []
        self._unchanged = self._left_out = self._learnings = self._size = 0
        self._id = ids.new_ulid()

    def done(self, seconds: float) -> BackfillResult:
        return BackfillResult(
            self._wanted.dry_run,
            tuple(self._sessions),
            self._unchanged,
            self._left_out,
            sum(each.steps for each in self._sessions),
            sum(each.observations for each in self._sessions),
            self._learnings,
            self._size,
            round(seconds, 3),
            tuple(dict.fromkeys(self._skipped)),
            None
            if self._wanted.dry_run or all(each.is_known for each in self._sessions)
            else self._id,
        )

    def wanted_transcripts(self) -> Iterator[PastSession]:
        """The transcripts that are wanted."""
        for path in transcripts(self._wanted, self._transcripts):
            try:
                past = self._past_session(path)
            except OSError as error:
                self._skipped.append(
                    SkippedTranscript(path, f"it cannot be read: {error.strerror}")
                )
                continue
            if self._is_wanted(past):
                yield past
            else:
                self._left_out += 1

    def _past_session(self, path: str) -> PastSession:
        size, changed_ms = self._transcripts.stamp(path)
        folder, began_ms, copied = self._transcripts.beginning(path)
        session = self._transcripts.session_of(path)
        began = clock.iso(began_ms if began_ms is not None else changed_ms)
        project = self._place(folder).project
        return PastSession(session, path, size, changed_ms, began, folder, project, copied)

    def _is_wanted(self, past: PastSession) -> bool:
        if past.changed_ms < self._since_ms:
            return False
        if asked := self._wanted.project:
            inside = f"{past.folder}/".startswith(f"{os.path.abspath(asked).rstrip('/')}/")
            if asked != past.project and not (os.path.isabs(asked) and inside):
                return False
        person = self._memory.environment.variables.get("HOME", "")
        if capture_rules.rules(self._config, self._place(past.folder), self._home, person).closed:
            return False
        return not live.is_live(self._home, past.session, clock.wall_s())

    def _place(self, folder: str) -> Place:
        if folder not in self._places:
            place = Place(folder, None, "")
            if folder:
                place = layout.place(
                    folder,
                    self._home,
                    lambda project: trust_check.verify(self._home, project).is_trusted,
                )
            if folder and place.project is None and not os.path.isdir(folder):
                # What is known of a project that is gone is not everybody's.
                place = place._replace(project=layout.tag_name(os.path.basename(folder)))
            self._places[folder] = place
        return self._places[folder]

    def take(self, past: PastSession) -> None:
        if self._is_done(past):
            self._unchanged += 1
        elif past.changed_ms <= session_table.at_ms(
            self._home, past.session
        ) or self._was_capture_off(past):
            self._left_out += 1
        elif self._wanted.dry_run:
            self._preview_session(past)
        else:
            interrupts.next_part()
            with hold_sessions(self._home):
                self._import_session(past)

    def _was_capture_off(self, past: PastSession) -> bool:
        began_ms = clock.parse_iso(past.began) or past.changed_ms
        return capture_off.was_always_off(self._home, past.session, began_ms)

    def _is_done(self, past: PastSession) -> bool:
        known = session_state.find(self._connection, past.session)
        if known and self._transcripts.is_rewritten and known.client != self._wanted.host:
            # Its host reported it, and knows more.
            return True
        if known is None or (known.transcript, known.transcript_read) != (past.path, past.size):
            return False
        return not self._has_more(known)

    def _has_more(self, known: Session) -> bool:
        """Whether there are steps of which nothing was made."""
        found = event_table.first_step(self._connection, known.id, known.synthesised)
        return found is not None

    def _preview_session(self, past: PastSession) -> None:
        known = session_state.find(self._connection, past.session)
        start = self._transcripts.events(past.path, 0, most=_PREVIEW_BYTES).events
        own = [each for each in start if each.session == past.session]
        if not own and past.size <= _PREVIEW_BYTES:
            self._left_out += 1
            return
        asked = map(session_state.request_of, own)
        what = next(filter(None, asked), "")
        self._sessions.append(
            ImportedSession(past.session, past.project, past.began, what, known is not None, 0, 0)
        )

    def _import_session(self, past: PastSession) -> None:
        before = session_state.find(self._connection, past.session)
        news = steps = 0
        for piece in reconcile.ingest_transcript(
            self._memory, self._home, past.session, past.path, self._wanted.host
        ):
            steps += pipeline.take(self._memory, self._home).steps
            news += piece.events
            self._size += piece.size
            if piece.problem:
                self._skipped.append(SkippedTranscript(past.path, piece.problem))
        session = self._session_in_project(past)
        if session is None:
            # There is nothing in it, or nothing of the session that it is named after.
            self._left_out += 1
            return
        if not (news or self._has_more(session)):
            self._unchanged += 1
            return
        since = records.last_stamp(self._memory.user.connection)
        is_over = session.last_at < clock.iso(self._now_ms - _QUIET_MS)
        if is_over and session.status == session_state.ACTIVE:
            with transaction(self._connection):
                session_state.end(self._connection, session.id, self._end_status(session.id))
        try:
            written = session_writer.synthesise(self._memory, session.id, is_over=is_over)
        except _FAULTS as error:
            self._skipped.append(
                SkippedTranscript(past.path, f"{type(error).__name__}: {error}"[:300])
            )
            return
        if before is None:
            self._log("synthesise", since, session.id)
        self._folders[session.folder] = None
        summaries = written.summary in written.new
        self._sessions.append(
            ImportedSession(
                *(session.id, session.project, past.began, session.request),
                *(before is not None, steps, len(written.new) - summaries),
            )
        )

    def _session_in_project(self, past: PastSession) -> Session | None:
        """The session as it is now, of the project that its folder belonged to."""
        session = session_state.find(self._connection, past.session)
        if session is None or session.project or not past.project:
            return session
        with transaction(self._connection):
            for table, column in (
                ("sessions", "id"),
                ("symbol_changes", "session"),
                ("excerpts", "session"),
            ):
                self._connection.execute(
                    f"UPDATE {table} SET project = ? WHERE {column} = ? AND project IS NULL",
                    (past.project, session.id),
                )
        return session._replace(project=past.project)

    def _end_status(self, session_id: str) -> session_state.Status:
        """How a session ended if no hook reported it."""
        if event_table.last_name(self._connection, session_id) in (ASSISTANT_MESSAGE, "Stop"):
            return session_state.COMPLETED
        return session_state.closing_status(self._connection, session_id)

    def _log(self, action: str, since: int, session: str = "") -> None:
        """Note what was imported, so that it can be undone as a whole."""
        changes = records.changes_since(self._memory.user.connection, since, action)
        by = "" if self._wanted.is_automatic else self._memory.session
        data = {"by": by, "host": self._wanted.host, "session": session, "changes": changes}
        event_log.add(self._memory.local, event_log.IMPORTED, self._id, data)

    def finish(self, projects: set[str | None]) -> None:
        """What is made of several sessions, also of those that an interrupted run took in."""
        for project in sorted(projects, key=str):
            with hold_sessions(self._home):
                since = records.last_stamp(self._memory.user.connection)
                self._learnings += learnings.learn(self._memory, project).new
                self._log("learn", since)
        apply.refresh(self._memory, filter(os.path.isdir, self._folders), self._home)
        # What is not done in this time, the worker does later.
        with suppress(CtxError):
            node_vectors.fill_slice(self._memory, _FILL_S)


def transcripts(wanted: Options, of_host: Transcripts) -> list[str]:
    """The files of sessions, in the folders that were named or in that of the host.

    Of several files, those that are no sessions are left out: a pattern also finds subagents.
    """
    roots = wanted.paths or (of_host.folder(wanted.folder),)
    found: dict[str, None] = {}
    for root in roots:
        files = of_host.files(root)
        is_one_of_many = len(roots) > 1 and os.path.isfile(root)
        if wanted.paths and not files and not (is_one_of_many or os.path.isdir(root)):
            raise UsageError(
                f"{root} is neither a transcript nor a folder of transcripts.",
                hint=f"Transcripts are named {of_host.file_names}.",
            )
        found |= dict.fromkeys(files)
    return list(found)


@contextmanager
def hold_sessions(home: str) -> Iterator[None]:
    """While no other process works on sessions. A round of the worker is waited for."""
    with (
        disk.explain_errors("importing sessions"),
        worker_round.hold_sessions(home, _LOCK_S * clock.patience) as held,
    ):
        if not held:
            raise LockConflict(
                "Another process is processing sessions.",
                hint="`ctx worker stop` ends the worker; then run this again.",
            )
        yield
