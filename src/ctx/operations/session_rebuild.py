"""Make the memory of past sessions anew, by the present rules.

A newer version of ctx finds more in the same steps, and leaves out what an older one stored by
mistake. It also reads more in a transcript: titles, teams, prompts from the queue. Only sessions
with all of their steps are rebuilt, and only nodes that nobody else edited, tagged, linked or
deleted are changed. What a project shares through git is left alone.

All sessions are written in one change, so one `ctx undo` reverts it.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from ctx import clock, disk
from ctx.capture import event_table, pipeline, reconcile, session_state, session_table
from ctx.capture.session_state import Session
from ctx.errors import CtxError, LockConflict
from ctx.memory.graph import USER
from ctx.operations import apply, worker_round
from ctx.sqlite import database_backups
from ctx.sqlite.connection import transaction
from ctx.synthesis import existing_observations, session_stores, session_writer
from ctx.synthesis.session_writer import PreparedSession, SessionWriteResult
from ctx.workspace import Memory

ACTION = "rebuild"

_LOCK_S = 10


class RebuiltSession(NamedTuple):
    """How the memory of a session changes."""

    id: str
    project: str | None
    what: str
    """What it was about."""
    new: int
    changed: int
    """Nodes with other text or metadata, those that it shares with other sessions included."""
    withdrawn: int
    """Nodes that its steps do not support any more."""


class SkippedSession(NamedTuple):
    id: str
    project: str | None
    reason: str


class RebuildSessionsResult(NamedTuple):
    """The answer of `ctx sessions rebuild`."""

    dry_run: bool
    change: str | None
    """To undo it; None if nothing was changed."""
    backup: str | None
    """The backup of the user store that was made before."""
    sessions: tuple[RebuiltSession, ...]
    """Those whose memory changes, oldest first."""
    unchanged: int
    skipped: tuple[SkippedSession, ...]
    new: int
    changed: int
    withdrawn: int


def rebuild(
    memory: Memory,
    texts: Sequence[str],
    project: str | None,
    *,
    dry_run: bool,
    tick: clock.Tick = clock.no_tick,
) -> RebuildSessionsResult:
    """Rebuild the named sessions, else those of a project (None: of all)."""
    home = memory.environment.user_store.home
    with (
        disk.explain_errors("rebuilding sessions"),
        worker_round.hold_sessions(home, _LOCK_S * clock.patience) as held,
    ):
        if not held:
            raise LockConflict(
                "Another process is processing sessions.",
                hint="`ctx worker stop` ends the worker; then run this again.",
            )
        prepared: list[PreparedSession] = []
        skipped: list[SkippedSession] = []
        sessions = _chosen_sessions(memory, texts, project)
        for number, session in enumerate(sessions):
            tick(number, len(sessions))
            made = prepare(memory, session, dry_run=dry_run)
            if isinstance(made, SkippedSession):
                skipped.append(made)
            else:
                prepared.append(made)
        return write(memory, prepared, dry_run=dry_run)._replace(skipped=tuple(skipped))


def prepare(
    memory: Memory, session: Session, *, dry_run: bool = False
) -> PreparedSession | SkippedSession:
    """Compute the new nodes of a session, and store its commands and excerpts.

    A dry run does not read the transcript again.
    """
    reason = _obstacle(memory, session)
    if not reason and not dry_run:
        session = _read_transcript_again(memory, session)
    made = None if reason else session_writer.prepare(memory.local, session, is_over=True)
    if made is None:
        return SkippedSession(session.id, session.project, reason or "no steps are stored")
    if not dry_run:
        session_writer.store_rows(memory.local, made, None)
    return made


def write(
    memory: Memory, prepared: Sequence[PreparedSession], *, dry_run: bool = False
) -> RebuildSessionsResult:
    """Write the nodes of all sessions in one change, after a backup."""
    result = _result(prepared, _write(memory, prepared, dry_run=True)[1])
    if dry_run or not result.sessions:
        return result._replace(dry_run=dry_run)
    backup = database_backups.make(memory.environment.graph_file)
    change, written = _write(memory, prepared, dry_run=False)
    with transaction(memory.local):
        for each, nodes in zip(prepared, written, strict=True):
            session_table.set_synthesised(memory.local, each.session.id, "", nodes.summary)
    folders = dict.fromkeys(each.session.folder for each in prepared)
    apply.refresh(memory, folders, memory.environment.user_store.home)
    result = _result(prepared, written)
    return result._replace(dry_run=False, change=change, backup=backup.path)


def _read_transcript_again(memory: Memory, session: Session) -> Session:
    """Capture what an older version of ctx ignored in a transcript. Known events stay as they are.

    The session does not become active again.
    """
    if not os.path.isfile(session.transcript):
        return session
    connection, home = memory.local, memory.environment.user_store.home
    with transaction(connection):
        session_state.set_transcript_position(connection, session.id, 0)
    try:
        # The steps that are stored suffice without it.
        with suppress(CtxError):
            if reconcile.reconcile(memory, home, session.id):
                pipeline.take(memory, home)
    finally:
        now = session_state.find(connection, session.id) or session
        if now.status == session_state.ACTIVE:
            with transaction(connection):
                session_state.end(connection, session.id, session.status)
    return now


def _chosen_sessions(memory: Memory, texts: Sequence[str], project: str | None) -> list[Session]:
    """The sessions that are meant, oldest first: of two equal observations the first counts."""
    if texts:
        named = {each.id: each for each in (session_state.get(memory.local, it) for it in texts)}
        found = list(named.values())
    else:
        found = session_state.all_of(memory.local, project=project)
    return sorted(found, key=lambda each: (each.started_at, each.id))


def _obstacle(memory: Memory, session: Session) -> str:
    """Why a session cannot be rebuilt; empty if it can."""
    if session.status == session_state.ACTIVE:
        return "it is active"
    first = event_table.first_step(memory.local, session.id)
    if first is None:
        return "no steps are stored"
    known = existing_observations.of_session(memory.user, session.id)
    began = [str(each.metadata.get("first", "")) for each in known if each.key == "summary"]
    first_at = event_table.first_at(memory.local, session.id)
    if first_at is None or first_at > session.started_at or any(it and it < first for it in began):
        return "its first steps have expired"
    try:
        return _sharing_reason(memory, session)
    except CtxError as error:
        return f"its project cannot be opened: {error.message}"


def _sharing_reason(memory: Memory, session: Session) -> str:
    """How git shares what memory has about a session; empty if it does not."""
    with session_stores.session_memory(memory, session) as there:
        shares = there.environment.user_config.text("share.sessions") != "none"
        if shares and (there.project_memory is not None or there.withheld):
            return "it is shared through git (share.sessions)"
        project = there.project_memory
        if project is not None and existing_observations.of_session(project.graph, session.id):
            return "some of its nodes are in the project store"
    return ""


class _DryRun(Exception):
    """Rolls a change back."""


def _write(
    memory: Memory, prepared: Sequence[PreparedSession], *, dry_run: bool
) -> tuple[str, list[SessionWriteResult]]:
    """Write all sessions in one change, and roll it back in a dry run."""
    written: list[SessionWriteResult] = []
    change_id = ""
    try:
        # The session is the one of the command, so that `ctx undo` finds the change.
        with memory.transaction(ACTION, USER, author=session_stores.AUTHOR) as change:
            change_id = change.id
            for each in prepared:
                written.append(session_writer.write(change, change, each, is_rebuilt=True))
                # The next session is compared with what this one wrote.
                change.write()
            if dry_run:
                raise _DryRun
    except _DryRun:
        pass
    return change_id, written


def _result(
    prepared: Sequence[PreparedSession],
    written: Sequence[SessionWriteResult],
) -> RebuildSessionsResult:
    every = [
        RebuiltSession(
            each.session.id,
            each.session.project,
            each.synthesis.summary.title if each.synthesis.summary else each.session.request,
            len(result.new),
            len({*result.changed, *result.seen_again}),
            len(result.withdrawn),
        )
        for each, result in zip(prepared, written, strict=True)
    ]
    sessions = tuple(each for each in every if each.new or each.changed or each.withdrawn)
    return RebuildSessionsResult(
        *(True, None, None, sessions, len(every) - len(sessions), ()),
        sum(each.new for each in every),
        sum(each.changed for each in every),
        sum(each.withdrawn for each in every),
    )
