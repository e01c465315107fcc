"""Results that wait for a session in the store. Each is delivered once, within the host's limit.

`ctx hook apply` stores them in the table `pending` when it has run an agent's commands:

    command_problems:<session>   texts that say what was wrong with a command, or was left out
    recall_results:<session>     for each question a head, items (each with its text), and a tail
    status_output:<session>      a text
    expand_nodes:<session>       ids of nodes
"""

import json
from sqlite3 import Connection

from ctx import clock
from ctx.agents.runtime import hook_store
from ctx.context import layers
from ctx.context.contexts import RECALLED, ContextItem
from ctx.hook_files import live

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ctx.agents.runtime.hook import Hook

_KINDS = ("command_problems", "recall_results", "status_output", "expand_nodes")
_LONGEST_CHAIN = 8
_KEPT_MS = 86_400_000
_ALWAYS = "9999"
_EXPANDED = "## Expanded\n\nThe nodes that the summary was made from:\n\n"


def take(
    hook: "Hook", stores: "Sequence[Connection]", session: str
) -> "tuple[str, list[ContextItem]]":
    """Take all pending results as one text, with the nodes in it. If two processes try, one gets
    them.

    They are in the last store, the user's. The nodes may be in any store.
    """
    taken = _take(hook, stores[-1], session, _KINDS)
    text, items = _as_text(hook, stores, taken, hook.host.largest_answer)
    return text, [item._replace(layer=RECALLED) for item in items]


def take_expanded(
    hook: "Hook", stores: "Sequence[Connection]", session: str, before: str
) -> "tuple[str, list[ContextItem]]":
    """Take the nodes that an agent asked to expand, to append them to a text."""
    taken = _take(hook, stores[-1], session, ("expand_nodes",))
    room = hook.host.largest_answer - hook.host.length(before) - 1
    text, items = _as_text(hook, stores, taken, room)
    return (f"\n{text}" if text else ""), items


def _as_text(
    hook: "Hook", stores: "Sequence[Connection]", taken: "list[tuple[str, str]]", room: int
) -> "tuple[str, list[ContextItem]]":
    blocks = [block for kind, value in taken for block in _blocks(stores, kind, value)]
    text, shown = layers.fit_blocks(
        [text for text, _ in blocks], room, _omission_note, hook.host.length
    )
    return text, [item for _, items in blocks[:shown] for item in items]


def _take(
    hook: "Hook", connection: Connection, session: str, kinds: "tuple[str, ...]"
) -> "list[tuple[str, str]]":
    taken: list[tuple[str, str]] = []
    oldest = clock.iso(hook.now_ms() - _KEPT_MS)
    for ancestor, until in _chain(hook, session):
        keys = [f"{kind}:{ancestor}" for kind in kinds]
        rows = hook_store.take_pending(hook, connection, keys, oldest, until)
        taken += [(key.partition(":")[0], value) for key, value in rows]
    return sorted(taken, key=lambda row: kinds.index(row[0]))


def _chain(hook: "Hook", session: str) -> "list[tuple[str, str]]":
    """The sessions that this one continues, the oldest first, and itself.

    Each has the time when it was cleared or forked. Results from before that time move on to the
    next session; later ones do not.
    """
    chain = [(session, _ALWAYS)]
    while len(chain) < _LONGEST_CHAIN and (
        before := live.continued_session(hook.home, chain[0][0])
    ):
        if before in [name for name, _ in chain]:
            break
        moved_ms = live.written_ms(hook.home, f"{chain[0][0]}.before")
        chain.insert(0, (before, min(clock.iso(moved_ms), chain[0][1])))
    return chain


def _blocks(
    stores: "Sequence[Connection]", kind: str, value: str
) -> "list[tuple[str, list[ContextItem]]]":
    """The result as blocks, which can be dropped from the end."""
    if kind == "status_output":
        return [(f"## Memory status\n\n```\n{value.rstrip()}\n```\n\n", [])]
    parsed: list[Any] = json.loads(value)
    blocks: list[tuple[str, list[ContextItem]]] = []
    if kind == "command_problems":
        blocks = [(text, []) for text in parsed]
    elif kind == "recall_results":
        for group in parsed:
            blocks.append((group["head"], []))
            blocks += [(text, [ContextItem(*item)]) for item, text in group["items"]]
            blocks.append((group["tail"], []))
    elif items := layers.items_of(stores, parsed):
        blocks.append((_EXPANDED, []))
        blocks += [(f"{text}\n\n", [item]) for item, text in items]
    return blocks


def _omission_note(parts: int) -> str:
    what = "1 more part" if parts == 1 else f"{parts:,} more parts"
    return (
        f"… {what} did not fit here. `ctx recall WORDS`, `ctx query FILTERS` or `ctx show ID` in a"
        " shell shows the rest.\n"
    )
