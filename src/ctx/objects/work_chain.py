"""The uncommitted work of a session: a chain of work commits."""

from typing import NamedTuple

from ctx.ids import ObjectId
from ctx.objects.object_store import Reader, read_typed
from ctx.objects.object_types import WorkCommit


class WorkStep(NamedTuple):
    id: ObjectId
    work: WorkCommit


def chain(reader: Reader, tip: ObjectId | None) -> list[WorkStep]:
    """The steps up to a work commit, newest first."""
    steps = []
    while tip is not None:
        work = read_typed(reader, tip, WorkCommit)
        steps.append(WorkStep(tip, work))
        tip = work.parents[0] if work.parents else None
    return steps
