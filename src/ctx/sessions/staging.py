"""Staging: the chain of work commits of a session.

Every step is durable when its command returns. A step writes its objects to the local staging
store and then moves the session's ref; until a commit takes the chain over, nothing of it is
in the working tree.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ctx import clock, redaction
from ctx.errors import StagingConflict, UsageError
from ctx.ids import ObjectId, SessionId
from ctx.objects import commits, refs
from ctx.objects.model import FileVersion, StepKind, WorkCommit
from ctx.objects.repository import Repository
from ctx.objects.store import Object, decode, read_typed, typed


class Step(NamedTuple):
    id: ObjectId
    work: WorkCommit


def append(
    repository: Repository, session: SessionId, kind: StepKind, objects: Sequence[Object],
    payload: Iterable[ObjectId],
) -> ObjectId:  # fmt: skip
    """Add a step to a session, which begins with it if need be. The caller holds the lock."""
    name = refs.work(session)
    tip = repository.refs.read(name)
    if tip is None:
        if redaction.redact(session).findings:
            raise UsageError("The session's name looks like a secret.", hint="Name it otherwise.")
        bases = tuple(id for id, _ in repository.current())
    else:
        bases = read_typed(repository.everything, tip, WorkCommit).bases
    work = typed(
        WorkCommit(
            parents=(tip,) if tip else (),
            bases=bases,
            session_id=session,
            created_at=clock.now_s(),
            step_kind=kind,
            payload=tuple(payload),
        )
    )
    repository.staged.write([*objects, work])
    repository.refs.move(name, tip, work.id)
    return work.id


def chain(repository: Repository, session: SessionId) -> list[Step]:
    """The steps of a session that no commit has taken over, newest first."""
    steps = []
    id = repository.refs.read(refs.work(session))
    while id is not None:
        work = read_typed(repository.everything, id, WorkCommit)
        steps.append(Step(id, work))
        id = work.parents[0] if work.parents else None
    return steps


def require_here(
    repository: Repository, session: SessionId, steps: Sequence[Step], heads: Iterable[ObjectId]
) -> None:
    """Refuse a chain that began on a branch whose history is not checked out now."""
    if steps and not commits.contain(repository.objects, heads, steps[0].work.bases):
        raise StagingConflict(
            f"What session {session} has staged belongs to another branch.",
            hint="Switch back to that branch and commit it there, or use another --session.",
        )


def files(repository: Repository, steps: Iterable[Step]) -> dict[str, FileVersion]:
    """The newest version of every file in a chain, by path.

    A file that became a folder in between, or a folder that became a file, is what it is now.
    """
    found: dict[str, FileVersion] = {}
    folders: set[str] = set()
    for step in steps:
        for id in step.work.payload:
            value = decode(repository.everything.read(id))
            if not isinstance(value, FileVersion) or value.path in folders:
                continue
            above = [value.path[:end] for end in range(len(value.path)) if value.path[end] == "/"]
            if not any(folder in found for folder in above):
                found.setdefault(value.path, value)
                folders.update(above)
    return found
