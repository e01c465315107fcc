"""Staging: the chain of work commits of a session.

Every step is durable when its command returns. A step writes its objects to the local staging
store and then moves the session's ref; until a commit takes the chain over, nothing of it is
in the working tree.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ctx import clock
from ctx.ids import ObjectId, SessionId
from ctx.objects import refs
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


def files(repository: Repository, steps: Iterable[Step]) -> dict[str, FileVersion]:
    """The newest version of every file in a chain, by path."""
    found: dict[str, FileVersion] = {}
    for step in steps:
        for id in step.work.payload:
            value = decode(repository.everything.read(id))
            if isinstance(value, FileVersion):
                found.setdefault(value.path, value)
    return found
