"""Repairs staging chains that have missing or damaged objects.

A disk error, a manual edit or a partial backup can break a chain. The remaining steps are in the
staging store, and every step names its session and its parent. The intact steps are joined to a
chain again, in order; the losses are reported.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from ctx import clock
from ctx.errors import CtxError
from ctx.ids import ObjectId, SessionId, short
from ctx.objects import commits, references, refs
from ctx.objects.commits import WorkStep
from ctx.objects.object_store import Object, decode, read_typed, typed
from ctx.objects.object_types import Commit, NarrativeRef, WorkCommit
from ctx.objects.repository import Repository


class RepairedChain(NamedTuple):
    """The result of a repair."""

    session: str
    steps: int
    """How many steps it has now."""
    lost: tuple[str, ...]
    """What is lost, as far as known."""
    set_aside: str | None = None
    """The ref that keeps the old chain, if nothing could be saved."""


class _SavedStep(NamedTuple):
    """A step with its intact objects."""

    id: ObjectId
    work: WorkCommit
    payload: tuple[ObjectId, ...]
    narrative: tuple[NarrativeRef, ...]

    @property
    def is_whole(self) -> bool:
        same = self.narrative == self.work.narrative_refs
        return self.payload == self.work.payload and same

    @property
    def is_empty(self) -> bool:
        had = self.work.payload or self.work.narrative_refs
        return bool(had) and not (self.payload or self.narrative)


def broken_refs(repository: Repository) -> list[str]:
    """The refs of broken chains, in order."""
    names = (name for name in repository.refs.names() if _is_chain(name))
    return [name for name in names if not _is_whole(repository, name)]


def repair_chain(repository: Repository, name: str, *, dry_run: bool) -> RepairedChain:
    """Save the intact part of a broken chain. Unless it is a dry run, the caller holds the lock."""
    shown = name.rpartition("/")[2]
    path = _path(repository, name)
    below: list[WorkStep] = []
    if path.gap is not None or not path.steps:
        below = _steps_below_gap(repository, name, path)
    steps = [_saved_step(repository, step) for step in (*below, *reversed(path.steps))]
    kept = [step for step in steps if not step.is_empty]
    lost = [f"step {short(path.gap)}"] if path.gap else []
    lost += [_loss(step) for step in steps if not step.is_whole]
    if dry_run:
        return RepairedChain(shown, len(kept), tuple(lost))
    if not kept:
        return RepairedChain(shown, 0, tuple(lost), repository.refs.set_aside(name))
    made, tip = _join_steps(kept)
    repository.staged.write(made)
    repository.refs.put(name, tip)
    return RepairedChain(shown, len(kept), tuple(lost))


def _is_chain(name: str) -> bool:
    return bool(refs.session_of(name) or refs.aborted_name(name))


def _is_whole(repository: Repository, name: str) -> bool:
    try:
        steps = commits.work_chain(repository.everything, repository.refs.require(name))
    except CtxError:
        return False
    return all(_saved_step(repository, step).is_whole for step in steps)


def _saved_step(repository: Repository, step: WorkStep) -> _SavedStep:
    payload = tuple(id for id in step.work.payload if _is_sound(repository, [id]))
    narrative = tuple(
        ref for ref in step.work.narrative_refs if _is_sound(repository, [ref.blob_id])
    )
    return _SavedStep(step.id, step.work, payload, narrative)


def _is_sound(repository: Repository, wanted: Iterable[ObjectId]) -> bool:
    """Whether objects and everything they refer to are intact."""
    waiting = list(wanted)
    try:
        while waiting:
            value = decode(repository.everything.read(waiting.pop()))
            waiting += references.required_ids(value)
    except CtxError:
        return False
    return True


class _Path(NamedTuple):
    """A chain from its tip down to the gap."""

    session: SessionId
    steps: Sequence[WorkStep]
    """Newest first."""
    gap: ObjectId | None
    """The first unreadable step; None if there is none or the ref is unreadable."""


def _path(repository: Repository, name: str) -> _Path:
    session = SessionId(name.rpartition("/")[2])
    steps: list[WorkStep] = []
    tip = _tip(repository, name)
    while tip is not None:
        try:
            step = read_typed(repository.everything, tip, WorkCommit)
        except CtxError:
            break
        session = step.session_id
        steps.append(WorkStep(tip, step))
        tip = step.parents[0] if step.parents else None
    return _Path(session, steps, tip)


def _steps_below_gap(repository: Repository, name: str, path: _Path) -> list[WorkStep]:
    """The steps of a session below a gap, oldest first.

    They are in no commit and in no other chain. A step with the same content as a step above it is
    skipped: an earlier repair rewrote it.
    """
    every = _work_of(repository, path.session)
    taken = {content for step in path.steps for content in _contents(step.work)}
    done = [
        commit.compacted
        for _, commit in commits.walk(repository.objects, _heads(repository))
        if commit and commit.compacted
    ]
    others = [other for other in repository.refs.names() if _is_chain(other) and other != name]
    above = [step.id for step in path.steps[:1]]
    for tip in (*done, *above, *(_tip(repository, other) for other in others)):
        while tip is not None and (gone := every.pop(tip, None)):
            tip = gone.parents[0] if gone.parents else None
    bases = path.steps[0].work.bases if path.steps else _newest(every)
    here = {id: step for id, step in every.items() if step.bases == bases}
    steps = []
    for step in reversed(_in_order(here)):
        contents = _contents(step.work)
        if not contents or not taken.issuperset(contents):
            steps.append(step)
        taken.update(contents)
    return steps[::-1]


def _work_of(repository: Repository, session: SessionId) -> dict[ObjectId, WorkCommit]:
    """All readable steps of a session in the staging store."""
    works = {}
    for id in repository.staged.ids():
        try:
            value = decode(repository.staged.read(id))
        except CtxError:
            continue
        if isinstance(value, WorkCommit) and value.session_id == session:
            works[id] = value
    return works


def _contents(step: WorkCommit) -> set[ObjectId]:
    return {*step.payload, *(ref.blob_id for ref in step.narrative_refs)}


def _newest(steps: Mapping[ObjectId, WorkCommit]) -> tuple[ObjectId, ...]:
    """The bases of the newest step. All steps of a chain have the same bases."""
    last = max(steps, key=lambda id: (steps[id].created_at, id), default=None)
    return steps[last].bases if last else ()


def _heads(repository: Repository) -> list[ObjectId]:
    last = repository.refs.read(refs.MAIN)
    heads = list(repository.named_heads())
    if last is not None and last not in heads:
        try:
            read_typed(repository.objects, last, Commit)
            heads.append(last)
        except CtxError:
            # It is on another branch.
            pass
    return heads


def _tip(repository: Repository, name: str) -> ObjectId | None:
    try:
        return repository.refs.read(name)
    except CtxError:
        return None


def _in_order(steps: Mapping[ObjectId, WorkCommit]) -> list[WorkStep]:
    """The steps of a chain, oldest first.

    If two steps have the same parent, a process may have been killed before one of them took
    effect. It is unknown which one, so both are kept.
    """
    following: dict[ObjectId, list[ObjectId]] = {}
    starts = []
    for id in sorted(steps, key=lambda e: (steps[e].created_at, bool(steps[e].parents), e)):
        parents = [parent for parent in steps[id].parents if parent in steps]
        for parent in parents:
            following.setdefault(parent, []).append(id)
        if not parents:
            starts.append(id)
    ordered = []
    waiting = starts[::-1]
    while waiting:
        id = waiting.pop()
        ordered.append(WorkStep(id, steps[id]))
        waiting += reversed(following.get(id, []))
    return ordered


def _join_steps(steps: Sequence[_SavedStep]) -> tuple[list[Object], ObjectId]:
    """One chain of intact steps: the steps above a gap are rewritten onto those below."""
    made: list[Object] = []
    tip: ObjectId | None = None
    bases = steps[-1].work.bases
    for step in steps:
        parents = (tip,) if tip else ()
        if step.is_whole and step.work.parents == parents and step.work.bases == bases:
            tip = step.id
            continue
        again = typed(
            msgspec.structs.replace(
                step.work,
                parents=parents,
                bases=bases,
                payload=step.payload,
                narrative_refs=step.narrative,
            )
        )
        made.append(again)
        tip = again.id
    assert tip is not None
    return made, tip


def _loss(step: _SavedStep) -> str:
    had = len(step.work.payload) + len(step.work.narrative_refs)
    left = len(step.payload) + len(step.narrative)
    at = clock.iso(step.work.created_at * 1000)
    what = f"{had - left} of {had} objects of step {short(step.id)}"
    return f"{what} ({step.work.step_kind}, {at})"
