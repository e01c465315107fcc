"""Receipts of what sessions were given: one for the store, and a small file for resumed
sessions."""

import json

from ctx.context.contexts import Context, ContextItem
from ctx.hook_files import spool, start_receipts
from ctx.layout import Place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from ctx.agents.runtime.hook import Hook
    from ctx.hosts.hook_events import HookEvent


def build_report(context: Context, took_ms: int) -> "dict[str, Any]":
    """Statistics about how a context was composed."""
    included = dict.fromkeys(item.layer for item in context.items)
    return {
        "layers_included": [*included],
        "layers_skipped": [layer for layer in context.skipped if layer not in included],
        "tokens": context.tokens,
        "build_ms": took_ms,
    }


def receipt(
    hook: "Hook",
    event: "HookEvent",
    place: Place,
    items: "Iterable[ContextItem]",
    tokens: int,
    made: "dict[str, Any] | None" = None,
) -> None:
    """Record which nodes an agent was given, and in which version; for a context, also how it was
    composed."""
    shown = list(items)
    fields = {
        "session": event.session,
        # A context of a session may come with its first prompt.
        "event": spool.EVENTS["session-start" if made else hook.word],
        "project": place.project,
        "tokens": tokens,
        "items": shown,
        **({"context": {**made, "source": event.source, "part": hook.part}} if made else {}),
    }
    hook.put(spool.new_id(hook.now_ms()), spool.RECEIPT, json.dumps(fields).encode())
    if made:
        digests = {item.key: item.digest for item in shown}
        if event.source == "resume":
            start_receipts.note(
                hook.home,
                event.session,
                {**(start_receipts.of_session(hook.home, event.session) or {}), **digests},
            )
        else:
            start_receipts.note_part(hook.home, event.session, hook.part, digests)
