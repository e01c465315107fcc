"""Staging: the chain of work commits of a session.

Every step is durable when its command returns. A step writes its objects to the local staging
store and then moves the session's ref; until a commit takes the chain over, nothing of it is
in the working tree.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ctx import clock, redaction
from ctx.errors import UsageError
from ctx.ids import ObjectId, SessionId, short
from ctx.objects import commits, refs, trees
from ctx.objects.commits import Head
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


def open_steps(
    repository: Repository, session: SessionId, heads: Sequence[Head]
) -> tuple[list[Step], SessionId | None]:
    """The steps that a command goes on with. The caller holds the lock.

    A chain that began on a branch whose history is not checked out now is set aside as a
    session of its own, so that it neither gets lost nor lands on the wrong branch. The second
    value is that session.
    """
    steps = chain(repository, session)
    ids = [head.id for head in heads]
    if not steps or commits.contain(repository.objects, ids, steps[0].work.bases):
        return steps, None
    parked = SessionId(f"{session[:100]}-{short(steps[0].id)}")
    repository.refs.move(refs.work(parked), repository.refs.read(refs.work(parked)), steps[0].id)
    repository.refs.move(refs.work(session), steps[0].id, None)
    return [], parked


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
            above = trees.folders_above(value.path)
            if found.keys().isdisjoint(above):
                found.setdefault(value.path, value)
                folders.update(above)
    return found
