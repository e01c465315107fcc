"""Staging: the chain of work commits of a session.

Every step is durable when its command returns. A step writes its objects to the local staging
store and then moves the session's ref. Nothing is written to the working tree until a commit.

A chain belongs to the history that it began in. While that is not checked out, the chain is parked:
it is neither shown nor committed, and it returns with its branch.
"""

from collections.abc import Iterable, Sequence

from ctx import clock, redaction
from ctx.errors import CtxError, UsageError
from ctx.ids import ObjectId, SessionId, short
from ctx.objects import commits, refs, trees
from ctx.objects.commits import WorkStep
from ctx.objects.object_store import Object, decode, read_typed, typed
from ctx.objects.object_types import FileVersion, NarrativeRef, StepKind, WorkCommit
from ctx.objects.repository import Repository


def append(
    repository: Repository,
    session: SessionId,
    kind: StepKind,
    objects: Sequence[Object],
    payload: Iterable[ObjectId],
    narrative: Iterable[NarrativeRef] = (),
) -> ObjectId:
    """Add a step to a session, and start the session if needed. The caller holds the lock."""
    name = refs.work(session)
    tip = repository.refs.read(name)
    heads = repository.tips()
    if tip is None:
        if redaction.redact(session).findings:
            raise UsageError("The session's name looks like a secret.", hint="Use another name.")
        bases = heads
    else:
        bases = read_typed(repository.everything, tip, WorkCommit).bases
    made = typed(
        WorkCommit(
            parents=(tip,) if tip else (),
            bases=bases,
            session_id=session,
            created_at=clock.now_s(),
            step_kind=kind,
            payload=tuple(payload),
            narrative_refs=tuple(narrative),
            heads=() if set(heads) == set(bases) else heads,
        )
    )
    repository.staged.write([*objects, made])
    repository.refs.move(name, tip, made.id)
    return made.id


def chain(repository: Repository, session: SessionId) -> list[WorkStep]:
    """The uncommitted steps of a session, newest first."""
    return commits.work_chain(repository.everything, repository.refs.read(refs.work(session)))


def open_steps(
    repository: Repository, session: SessionId, heads: Sequence[ObjectId]
) -> tuple[list[WorkStep], SessionId | None]:
    """The steps that a command continues. The caller holds the lock.

    If the chain began in a history that is not checked out, it is parked as a session of its own,
    so that it is neither lost nor committed on the wrong branch. The second value is that session.
    A parked chain whose history is checked out again is resumed.
    """
    parked = settle(repository, session, heads)
    return chain(repository, session), parked


def settle(
    repository: Repository, session: SessionId, heads: Sequence[ObjectId]
) -> SessionId | None:
    """Park a session's chain if it belongs to another history, and resume the one for this."""
    name = refs.work(session)
    tip = repository.refs.read(name)
    parked = None
    if tip is not None:
        bases = read_typed(repository.everything, tip, WorkCommit).bases
        if commits.contain(repository.objects, heads, bases):
            return None
        parked = SessionId(f"{session[:100]}-{short(tip)}")
        aside = refs.work(parked)
        repository.refs.move(aside, repository.refs.read(aside), tip)
        repository.refs.move(name, tip, None)
    _unpark_chain(repository, session, heads)
    return parked


def _unpark_chain(repository: Repository, session: SessionId, heads: Sequence[ObjectId]) -> None:
    """Resume a parked chain of this session whose history is checked out."""
    prefix = refs.work(SessionId(f"{session[:100]}-"))
    for name in list(repository.refs.names()):
        tip = repository.refs.read(name) if name.startswith(prefix) else None
        if tip is None or name != f"{prefix}{short(tip)}":
            continue
        try:
            last = read_typed(repository.everything, tip, WorkCommit)
        except CtxError:
            # `ctx stage recover` handles it.
            continue
        is_here = commits.contain(repository.objects, heads, last.bases)
        if last.session_id == session and is_here:
            repository.refs.move(refs.work(session), None, tip)
            repository.refs.move(name, tip, None)
            return


def files(repository: Repository, steps: Iterable[WorkStep]) -> dict[str, FileVersion]:
    """The newest version of every file in a chain, by path.

    If a file became a folder or a folder became a file, the newest state counts.
    """
    versions: dict[str, FileVersion] = {}
    folders: set[str] = set()
    for step in steps:
        for id in step.work.payload:
            value = decode(repository.everything.read(id))
            if not isinstance(value, FileVersion) or value.path in folders:
                continue
            above = trees.folders_above(value.path)
            if versions.keys().isdisjoint(above):
                versions.setdefault(value.path, value)
                folders.update(above)
    return versions
