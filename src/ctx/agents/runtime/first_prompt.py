"""What earlier sessions said about the first prompt of a session.

At its start nobody knows what a session is for; its first prompt says so. The hook searches the
store itself, within a time limit of its own, so that the answer does not need a running worker.
The limit is for processor time: on a busy machine the answer comes later, but it comes.
"""

import sqlite3
from sqlite3 import Connection

from ctx import clock
from ctx.agents.runtime import run_apply, session_context
from ctx.context import contexts, excerpt_search, hook_queries
from ctx.context.contexts import NOTHING, Context, ProjectStoreState
from ctx.hook_files import start_receipts
from ctx.layout import Place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ctx.agents.runtime.hook import Hook
    from ctx.context.excerpt_search import Hit
    from ctx.hosts.hook_events import HookEvent

_BUDGET = 700
_MODEL_S = 1.0
"""How long to wait for the order of a model."""
_MOST_ORDERED = 40
_LONGEST_PROMPT = 4_000
_LIMIT_S = 0.5
_LONGEST_WAIT = 4
"""So many times the limit may pass if other processes use the processors."""
# How many steps of SQLite's machine lie between two looks at the clock.
_STEPS = 10_000


def relevant_excerpts(
    hook: "Hook", connection: Connection, own: ProjectStoreState, place: Place, event: "HookEvent"
) -> Context | None:
    """None if the project has no excerpts that could be searched."""
    budget = _budget(hook)
    if not budget:
        return NOTHING
    seconds = _LIMIT_S * clock.patience
    busy_until, until = clock.process_time() + seconds, hook.began + _LONGEST_WAIT * seconds
    hook.limit = max(hook.limit, (_LONGEST_WAIT + 1) * _LIMIT_S)
    connection.set_progress_handler(
        lambda: clock.process_time() > busy_until or clock.monotonic() > until, _STEPS
    )
    try:
        stores = session_context.stores_of(own, connection)
        key = contexts.key_of(place, hook.home, hook.environment, 1, own)
        ready = contexts.valid_context(connection, key)
        hits = excerpt_search.choose(
            *(stores, place.project, event.prompt, budget),
            session=event.session,
            given=start_receipts.given(hook.home, event.session),
            given_text=ready.text if ready else "",
            order=_order_by_model(hook, event, place),
        ).hits
        if not hits and not hook_queries.sessions_with_excerpts(connection, place.project):
            return None
    except sqlite3.DatabaseError as error:
        # The time is up, it is a store of an older ctx, or the table is damaged.
        hook.log(f"the first prompt was not searched for: {error}")
        return None
    finally:
        connection.set_progress_handler(None, 0)
    return excerpt_search.context_from_hits(hits)


def _order_by_model(
    hook: "Hook", event: "HookEvent", place: Place
) -> "Callable[[Sequence[Hit]], Sequence[Hit]] | None":
    """Lets a model order the first hits, if it answers in time; None if the user wants none."""
    if not hook.flag("llm.rerank", default=False) or hook.is_paused(event.raw):
        return None
    hook.limit += _MODEL_S

    def order(hits: "Sequence[Hit]") -> "Sequence[Hit]":
        first = hits[:_MOST_ORDERED]
        if len(first) < 2:
            return hits
        question = {
            "session": event.session,
            "project": place.project,
            "prompt": event.prompt[:_LONGEST_PROMPT],
            "texts": [hit.text for hit in first],
        }
        reply = run_apply.ask(hook, "/api/order", question, _MODEL_S * clock.patience)
        numbers = reply.get("order") if reply else None
        if not isinstance(numbers, list):
            return hits
        places = [each for each in numbers if type(each) is int and 0 <= each < len(first)]
        return [*dict.fromkeys([*(first[each] for each in places), *hits])]

    return order


def _budget(hook: "Hook") -> int:
    """The tokens for the answer."""
    if contexts.is_default(contexts.settings(hook.home, hook.environment)):
        return _BUDGET
    return hook.config().integer("context.prompt_budget")
