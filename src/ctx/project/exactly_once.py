"""A change to a project's memory for a command of an agent, made exactly once.

In the user store, a change and the claim of its command are one transaction. A project's memory is
another store, so there the change itself is the claim: its id is derived from the command's id. A
second attempt, even after a crash, finds the change.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from ctx import ids
from ctx.memory import idempotency_keys, records
from ctx.memory.changes import Change, Who
from ctx.memory.graph import Graph
from ctx.memory.idempotency_keys import AlreadyDone, Claim
from ctx.project.project_memory import ProjectMemory
from ctx.sqlite.connection import transaction


@contextmanager
def changing_once(beside: ProjectMemory, user: Graph, action: str, who: Who) -> Iterator[Change]:
    """Make a change in a project. A change for a command is made only once."""
    claim = who.once
    if claim is None:
        with beside.changing(action, who) as change:
            yield change
        return
    change_id = ids.derived_ulid(0, f"{claim.id} {action}")
    if idempotency_keys.is_taken(user.connection, claim.id):
        raise AlreadyDone(claim.id)
    with beside.changing(action, who._replace(once=None), change_id) as change:
        if records.of_change(change.graph.connection, change_id):
            _take(user, claim)
            raise AlreadyDone(claim.id)
        yield change
    _take(user, claim)


def _take(user: Graph, claim: Claim) -> None:
    with transaction(user.connection):
        if not idempotency_keys.is_taken(user.connection, claim.id):
            idempotency_keys.take(user.connection, claim)
