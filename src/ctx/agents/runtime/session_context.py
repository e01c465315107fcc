"""The context that a session gets at start, and the state that is saved before compaction.

A prepared context is used as it is. Otherwise `context.layers` composes it, with modules that a
hook can afford to import; the text is the same.
"""

import json
from sqlite3 import Connection

from ctx.agents.runtime import run_apply
from ctx.context import contexts, hook_queries
from ctx.context.contexts import Context, ContextKey, ProjectStoreState
from ctx.hook_files import live, start_receipts
from ctx.layout import Place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ctx.agents.runtime.hook import Hook
    from ctx.context.layers import CompactionState
    from ctx.hosts.hook_events import HookEvent

_DEFAULT_BUDGET = 2_000


def stores_of(own: ProjectStoreState, user: Connection) -> "Sequence[Connection]":
    """The stores to read, the project's first."""
    return [user] if own.connection is None else [own.connection, user]


def start_context(
    hook: "Hook",
    connection: Connection,
    own: ProjectStoreState,
    place: Place,
    event: "HookEvent",
) -> Context:
    """The context for a session. A resumed session that still has its context gets only what
    changed."""
    source, session = event.source, event.session
    key = contexts.key_of(place, hook.home, hook.environment, hook.part, own)
    goes_on = source in ("resume", "compact")
    if not goes_on and (ready := contexts.valid_context(connection, key)):
        return ready
    from ctx.context import layers

    stores = stores_of(own, connection)
    wanted = layers.ContextRequest(
        place.project,
        task_of(connection, place),
        _budget(hook, key),
        hook.part,
        contexts.notice(key, own),
        session=session if goes_on else "",
    )
    before = start_receipts.of_session(hook.home, session) if source == "resume" else None
    if before is not None and hook.host.remembers(event):
        if hook.part > 1:
            return contexts.NOTHING
        still = layers.still_valid(stores, before)
        if not own.is_current:
            # The index is out of date: nodes that it does not contain may still exist.
            return layers.changed_context(stores, wanted, still)
        context = layers.changed_context(stores, wanted, before)
        # Deleted nodes are reported once.
        try:
            start_receipts.note(hook.home, session, still)
        except OSError as error:
            hook.log(f"{type(error).__name__}: {error}")
        return context
    if source == "compact" and hook.part == 1:
        now = _compaction_state(stores, place, wanted.task, session)
        return layers.context(stores, wanted, _merge_saved_state(hook, session, now))
    if hook.part == 1:
        # The worker prepares the context for the next session.
        run_apply.start(hook)
    return layers.context(stores, wanted)


def save_compaction_state(
    hook: "Hook", stores: "Sequence[Connection]", place: Place, session: str
) -> None:
    """Save what an agent is working on before its conversation is compacted."""
    now = _compaction_state(stores, place, task_of(stores[-1], place), session)
    live.write(hook.home, f"{session}.state", json.dumps(now))


def task_of(connection: Connection, place: Place) -> "str | None":
    return hook_queries.pending(connection, place.task_key)


def _compaction_state(
    stores: "Sequence[Connection]", place: Place, task: "str | None", session: str
) -> "CompactionState":
    from ctx.context import compaction_state, layers

    nodes = layers.state(stores, place.project, task, session)
    return layers.CompactionState(nodes, compaction_state.lines(stores[-1], session))


def _merge_saved_state(hook: "Hook", session: str, now: "CompactionState") -> "CompactionState":
    """The state that was saved before compaction, merged with the current one."""
    try:
        saved = json.loads(live.read(hook.home, f"{session}.state") or "[]")
    except ValueError:
        saved = []
    live.remove(hook.home, f"{session}.state")
    nodes, lines = saved if isinstance(saved, list) and len(saved) == 2 else ([], [])
    saved_nodes = (
        [node for node in nodes if isinstance(node, str)] if isinstance(nodes, list) else []
    )
    known = [line for line in lines if isinstance(line, str)] if isinstance(lines, list) else []
    every: dict[Any, None] = dict.fromkeys([*saved_nodes, *now.nodes])
    return now._replace(
        nodes=list(every),
        # The current lines are right, unless nothing is known about the session any more.
        lines=now.lines or known,
    )


def _budget(hook: "Hook", key: ContextKey) -> int:
    if contexts.is_default(key.settings):
        return _DEFAULT_BUDGET
    return hook.config().integer("context.budget")
