"""Compact sessions automatically: by size, by age, and at the end of a task or session.

Staged work is safe, so a problem is reported but stops nothing. Usually there is nothing to do, so
the object store is loaded only when needed.
"""

from sqlite3 import DatabaseError
from typing import TYPE_CHECKING, NamedTuple

from ctx import clock
from ctx.errors import CtxError
from ctx.ids import CLI_SESSION, ObjectId, SessionId, short
from ctx.project import staged_sessions
from ctx.workspace import Memory, Workspace

if TYPE_CHECKING:
    from ctx.project.project_memory import ProjectMemory

_HOUR_MS = 3_600_000
_MOST_TOKENS = 50_000
_MOST_HOURS = 4
"""A session with more than these is compacted."""


class CompactResult(NamedTuple):
    """What became of a session that was to be compacted."""

    session: SessionId
    why: str
    commit: ObjectId | None
    message: str
    steps: int
    problem: str | None
    """Why there is no commit, where something is in the way."""
    deleted_for_good: int = 0
    """Deleted nodes that were never committed: they cannot be restored any more."""

    @property
    def summary(self) -> str:
        if self.problem:
            return f"Session {self.session} could not be compacted ({self.why}): {self.problem}"
        if self.commit is None:
            return f"Compacted session {self.session} ({self.why}): nothing to commit"
        made = f"{short(self.commit)} {self.message.partition(chr(10))[0]}"
        return f"Compacted session {self.session} ({self.why}): {made}"


def compact(beside: "ProjectMemory", session: SessionId, why: str) -> CompactResult | None:
    """Turn the staging of a session into a commit; None if there is none, or if it is parked."""
    try:
        return _compact(beside, session, why)
    except CtxError as error:
        return CompactResult(session, why, None, "", 0, error.message)


def _compact(beside: "ProjectMemory", session: SessionId, why: str) -> CompactResult | None:
    from ctx.operations import commit as committing
    from ctx.project import staging_chains

    if not staging_chains.has_work(beside.repository, session):
        return None
    workspace = Workspace(beside.project, beside.config, beside, session)
    made = committing.commit(workspace, committing.Options(None, auto=True))
    if made.commit is None and not made.deleted_for_good:
        return None
    return CompactResult(
        session, why, made.commit, made.message, made.steps, None, made.deleted_for_good
    )


def at_task_end(memory: Memory) -> CompactResult | None:
    return _compact_joined(memory, "the task has ended")


def at_task_switch(memory: Memory) -> CompactResult | None:
    return _compact_joined(memory, "another task begins")


def _compact_joined(memory: Memory, why: str) -> CompactResult | None:
    beside = memory.project_memory
    return None if beside is None else compact(beside, memory.session, why)


def compact_due(memory: Memory) -> list[CompactResult]:
    """The sessions that took a step here and have become too large, or lasted too long."""
    beside = memory.project_memory
    if beside is None or not beside.stepped:
        return []
    stepped, beside.stepped = beside.stepped, set()
    try:
        known = staged_sessions.sessions(beside.graph.connection)
    except (CtxError, DatabaseError):
        # The commit is done; the index is rebuilt when it is needed.
        return []
    found = [each for each in known if each.session in stepped]
    why = {each.session: _due_reason(each) for each in found if not each.is_parked}
    made = [compact(beside, session, reason) for session, reason in why.items() if reason]
    return [each for each in made if each is not None]


def _due_reason(found: staged_sessions.StagedWork) -> str:
    if found.tokens > _MOST_TOKENS:
        return f"more than {_MOST_TOKENS:,} tokens"
    # What people do on the command line has no end, so it cannot last too long.
    if found.began_ms is None or found.session == CLI_SESSION:
        return ""
    is_old = clock.now_ms() - found.began_ms > _MOST_HOURS * _HOUR_MS
    return f"older than {_MOST_HOURS} h" if is_old else ""


def compact_old(memory: Memory) -> list[CompactResult]:
    """The sessions without activity for a week."""
    beside = memory.project_memory
    if beside is None:
        return []
    home = memory.environment.user_store.home
    old = [
        each
        for each in staged_sessions.stale_sessions(beside.project, home, clock.wall_s())
        if each.is_old
    ]
    made = [
        compact(beside, each.session, f"nothing was added for {clock.age(each.seconds)}")
        for each in old
    ]
    return [each for each in made if each is not None]
