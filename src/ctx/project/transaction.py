"""The one way to change memory: a transaction over the stores that a command needs.

    with memory.transaction("move", PROJECT, USER) as change:
        change.add_node("fact", "The API speaks OAuth 2.0.", node_id=node_id)
        change.in_scope(USER).delete_node(node_id)

All parts have the same change id, so `ctx undo` reverts all of them. Locks are taken in a fixed
order, the project's before the user store's, so there is no deadlock. Parts become durable in the
order of the scopes. A crash in between leaves only the first part, so the first scope must be the
one whose part can be repeated.

A nested transaction is a part of the outer one: it has the same id and action, and if it fails, the
outer one does not contain any of it.

A command of an agent is executed once. In the user store, one transaction writes the change and the
claim. A project's memory is another store, so the id of its change is derived from the id of the
command: when the command is tried again, even after a crash, the existing change is found.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TYPE_CHECKING

from ctx import ids
from ctx.ids import Ulid
from ctx.memory import idempotency_keys, records
from ctx.memory.changes import Change, ChangeAuthor, changing
from ctx.memory.graph import PROJECT, USER, Graph
from ctx.memory.idempotency_keys import AlreadyDone, Claim
from ctx.sqlite.connection import transaction

if TYPE_CHECKING:
    from ctx.project.project_memory import ProjectMemory

_LOCK_ORDER = (PROJECT, USER)


class Transactions:
    """Changes the user store and the memory of a project, one transaction at a time."""

    def __init__(self, user: Graph, project_memory: "ProjectMemory | None") -> None:
        self._user = user
        self._project_memory = project_memory
        self._open: _OpenTransaction | None = None

    @contextmanager
    def begin(
        self, action: str, who: ChangeAuthor, scopes: Sequence[str], claim: Claim | None = None
    ) -> Iterator[Change]:
        """Make a change, and yield the part of the first scope, which gives access to the others.

        Raises `AlreadyDone` if the command was executed before.
        """
        if self._open:
            if claim:
                raise RuntimeError("only the outermost transaction can take a claim")
            with self._open.part(scopes) as change:
                yield change
        elif claim:
            with self._claimed_change(action, who, scopes, claim) as change:
                yield change
        else:
            with self._stores(action, who, scopes, ids.new_ulid()) as change:
                yield change

    @contextmanager
    def _claimed_change(
        self, action: str, who: ChangeAuthor, scopes: Sequence[str], claim: Claim
    ) -> Iterator[Change]:
        user = self._user.connection
        if idempotency_keys.is_taken(user, claim.id):
            raise AlreadyDone(claim.id)
        is_shared = PROJECT in scopes
        change_id = ids.derived_ulid(0, f"{claim.id} {action}") if is_shared else ids.new_ulid()
        if scopes[-1] == PROJECT:
            with self._stores(action, who, scopes, change_id) as change:
                last = change.in_scope(PROJECT).graph
                is_made = bool(records.of_change(last.connection, change_id))
                if not is_made:
                    yield change
                    if USER in scopes and change.in_scope(PROJECT).is_empty:
                        # Otherwise only the user store would have a trace of the command.
                        idempotency_keys.claim_command(user, claim)
            with transaction(user):
                if not idempotency_keys.is_taken(user, claim.id):
                    idempotency_keys.claim_command(user, claim)
            if is_made:
                raise AlreadyDone(claim.id)
        else:
            with self._stores(action, who, scopes, change_id) as change:
                idempotency_keys.claim_command(user, claim)
                yield change

    @contextmanager
    def _stores(
        self, action: str, who: ChangeAuthor, scopes: Sequence[str], change_id: Ulid
    ) -> Iterator[Change]:
        def store(scope: str) -> AbstractContextManager[Change]:
            if scope == PROJECT and self._project_memory is not None:
                return self._project_memory.changing(action, who, change_id)
            return changing(self._user, action, who, change_id)

        with ExitStack() as joined, ExitStack() as finishing:
            opened = _OpenTransaction(store, joined)
            with ExitStack() as locking:
                for scope in _LOCK_ORDER:
                    if scope in scopes:
                        opened.enter(scope, locking)
                # From here on, they end in another order than that of the locks.
                locking.pop_all()
                for scope in reversed(scopes):
                    finishing.push(opened.stores[scope])
            self._open = opened
            joined.callback(self._close)
            yield opened.changes[scopes[0]]

    def _close(self) -> None:
        self._open = None


class _OpenTransaction:
    """An open transaction."""

    def __init__(
        self, store: Callable[[str], AbstractContextManager[Change]], joined: ExitStack
    ) -> None:
        self.stores: dict[str, AbstractContextManager[Change]] = {}
        self.changes: dict[str, Change] = {}
        self._store = store
        self._joined = joined

    def enter(self, scope: str, stack: ExitStack) -> None:
        self.stores[scope] = self._store(scope)
        change = self.changes[scope] = stack.enter_context(self.stores[scope])
        change.parts = self.changes

    @contextmanager
    def part(self, scopes: Sequence[str]) -> Iterator[Change]:
        """A nested transaction. If it fails, nothing of it stays in the outer one."""
        for scope in _LOCK_ORDER:
            if scope in scopes and scope not in self.changes:
                if scope == PROJECT:
                    raise RuntimeError("the project's lock comes before the user store's")
                self.enter(scope, self._joined)
        for change in self.changes.values():
            if change.records:
                change.write()
        objects = {scope: len(change.objects) for scope, change in self.changes.items()}
        try:
            yield self.changes[scopes[0]]
        except BaseException:
            for scope, change in self.changes.items():
                change.records.clear()
                del change.objects[objects.get(scope, 0) :]
            raise
        for change in self.changes.values():
            change.write()
