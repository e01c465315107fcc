"""What tools said about the code while a session went on: the last word of each goes into a commit.

A snapshot and the edges that follow from it are one step of the session, and stay together. The
snapshot of the code is a tree of one object for each file, so that files which did not change are
the same objects in the next one.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ctx.ids import ObjectId
from ctx.objects import commits, references, trees
from ctx.objects.model import CargoSnapshot, Commit, EdgeBatch, StepKind, Tree
from ctx.objects.repository import Repository
from ctx.objects.store import decode
from ctx.objects.work_chain import WorkStep


class Taken(NamedTuple):
    """What a commit takes over of a chain, as ids of objects."""

    cargo: ObjectId | None = None
    edges: tuple[ObjectId, ...] = ()
    """The batches of edges that came with it."""
    code: ObjectId | None = None
    """The tree of the snapshot of the code."""

    @property
    def named(self) -> tuple[str, ...]:
        """What it is, in words."""
        cargo = "the answer of cargo metadata" if self.cargo else ""
        code = "a snapshot of the code" if self.code else ""
        return tuple(filter(None, (cargo, code)))

    @property
    def lines(self) -> list[str]:
        """As it stands among the changes."""
        return [f"+ {each}" for each in self.named]

    @property
    def told(self) -> str:
        return " and ".join(self.named)


def taken(repository: Repository, steps: Sequence[WorkStep]) -> Taken:
    """What the steps of a chain, newest first, have found out last."""
    found = Taken()
    for step in steps:
        if step.work.step_kind is not StepKind.COMMAND_RUN:
            continue
        said = {id: decode(repository.everything.read(id)) for id in step.work.payload}
        cargo = [id for id, value in said.items() if isinstance(value, CargoSnapshot)]
        code = [id for id, value in said.items() if isinstance(value, Tree)]
        if cargo and found.cargo is None:
            edges = [id for id, value in said.items() if isinstance(value, EdgeBatch)]
            found = found._replace(cargo=cargo[-1], edges=tuple(edges))
        if code and found.code is None:
            found = found._replace(code=code[-1])
        if found.cargo and found.code:
            break
    return found


def brought(repository: Repository, taken: Taken, heads: Sequence[ObjectId]) -> Iterator[ObjectId]:
    """The objects that a commit brings with what it takes over."""
    yield from taken.edges
    if taken.cargo:
        yield taken.cargo
    if taken.code:
        reader = repository.everything
        before = last_committed_code(repository, heads)
        for id in trees.fresh(reader, before, taken.code):
            yield id
            value = decode(reader.read(id))
            if not isinstance(value, Tree):
                yield from references.needed(value)


def last_cargo(
    repository: Repository, steps: Sequence[WorkStep], heads: Sequence[ObjectId]
) -> ObjectId | None:
    """The newest snapshot of the cargo workspaces: staged in this chain, else committed."""
    staged = taken(repository, steps).cargo
    return staged or _first(commit.cargo_snapshot for commit in _history(repository, heads))


def last_code(
    repository: Repository, steps: Sequence[WorkStep], heads: Sequence[ObjectId]
) -> ObjectId | None:
    """The newest snapshot of the code: staged in this chain, else committed."""
    return taken(repository, steps).code or last_committed_code(repository, heads)


def last_committed_code(repository: Repository, heads: Sequence[ObjectId]) -> ObjectId | None:
    return _first(commit.code_snapshot for commit in _history(repository, heads))


def _history(repository: Repository, heads: Sequence[ObjectId]) -> Iterator[Commit]:
    history = commits.walk_past_damage(repository.objects, heads)
    return (commit for _, commit in history if commit)


def _first(ids: Iterable[ObjectId | None]) -> ObjectId | None:
    return next((id for id in ids if id is not None), None)
