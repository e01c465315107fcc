"""What sessions were given: a receipt for the store, and a small file for whoever resumes one."""

import json

from ctx.agents.claude_code.hook import Hook
from ctx.layout import Place
from ctx.retrieval.contexts import MOST_PARTS, Item
from ctx.sessions import live, spool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


def before(hook: Hook, session: str) -> "dict[str, str]":
    """What a session was given when it started, all parts of it."""
    known: dict[str, str] = {}
    for part in range(1, MOST_PARTS + 1):
        try:
            given = json.loads(live.read(hook.home, _name(session, part)) or "{}")
        except ValueError:
            continue
        known.update(given if isinstance(given, dict) else {})
    return known


def note(hook: Hook, session: str, given: "dict[str, str]") -> None:
    """Remember all of it in one place, instead of what the parts remember."""
    for part in range(2, MOST_PARTS + 1):
        live.remove(hook.home, _name(session, part))
    live.write(hook.home, _name(session, 1), json.dumps(given))


def receipt(
    hook: Hook, event: "dict[str, Any]", place: Place, items: "Iterable[Item]", tokens: int
) -> None:
    """Note which nodes an agent was given, and in which state."""
    given = list(items)
    session = event["session_id"]
    told = {
        "session": session,
        "event": spool.EVENTS[hook.word],
        "project": place.project,
        "tokens": tokens,
        "items": given,
    }
    spool.put(hook.home, spool.new_id(hook.now_ms()), spool.RECEIPT, json.dumps(told).encode())
    if hook.word == "session-start":
        digests: dict[str, str] = {each.id: each.digest for each in given}
        if event.get("source") == "resume":
            note(hook, session, {**before(hook, session), **digests})
        else:
            # A conversation that begins anew has forgotten what it was given before.
            live.write(hook.home, _name(session, hook.part), json.dumps(digests))


def _name(session: str, part: int) -> str:
    # Parts are given at the same time: each has a file of its own.
    return f"{session}.receipt" if part == 1 else f"{session}.receipt-{part}"
