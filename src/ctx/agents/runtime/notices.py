"""Messages to the user at session start: what the agent was given, what is captured, and what is
wrong. If ctx is broken, a hook may be the only part that can report it."""

import os
import sqlite3
from contextlib import closing

from ctx.agents.runtime.hook_store import for_reading
from ctx.context import contexts, hook_queries
from ctx.context.contexts import ContextItem
from ctx.hook_files import spool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctx.agents.runtime.hook import Hook

CAPTURED = (
    "ctx records your prompts, the answers of agents, the files they read and change, and the"
    " commands they run. It stays on this machine, and secrets are removed. `ctx sessions list`"
    " shows it, `ctx pause` stops it, and <private>…</private> excludes a part of a prompt."
)
PAUSED = "ctx: capture is paused here; `ctx resume` resumes it"

_FIRST_RUN = "first-run"
_MORE = "see `ctx doctor`"
_HOUR_MS = 3_600_000


def notice(
    hook: "Hook", text: str, items: "Sequence[ContextItem]", tokens: int, *, is_paused: bool
) -> str:
    """All messages, one per line."""
    lines = [_summary(text, items, tokens)]
    if is_paused:
        lines.append(PAUSED)
    elif hook.refused:
        lines.append(f"ctx: this session cannot be recorded: {hook.refused}; {_MORE}")
    elif _is_first_run(hook):
        lines.append(f"ctx: from now on, {CAPTURED}")
    elif spool.waits_long(hook.waiting(), hook.now_ms() - _HOUR_MS):
        # After an hour, events from before the machine was switched off have been processed.
        lines.append(f"ctx: events have been waiting for more than an hour; {_MORE}")
    return "\n".join(filter(None, lines))


def unreadable(hook: "Hook", error: sqlite3.Error) -> str:
    """Why the agent gets no memory; empty if the next session will get it."""
    if getattr(error, "sqlite_errorname", "").startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return ""
    if str(error).startswith("no such"):
        return _of_another_version(hook)
    return f"ctx: the store cannot be read ({error}), so agents get no memory; {_MORE}"


def _of_another_version(hook: "Hook") -> str:
    """The message for a store with another schema. An older schema is migrated; a newer one needs a
    newer ctx."""
    from ctx.memory.migrations import MIGRATIONS

    try:
        with closing(for_reading(hook)) as connection:
            version = hook_queries.schema_version(connection)
    except sqlite3.Error:
        version = None
    if version is None and not os.path.getsize(hook.database):
        # It is being created.
        return ""
    if version is None:
        return f"ctx: the store belongs to another program, so agents get no memory; {_MORE}"
    if version <= len(MIGRATIONS):
        return ""
    return f"ctx: the store was written by a newer ctx, so agents get no memory; {_MORE}"


def _summary(text: str, items: "Sequence[ContextItem]", tokens: int) -> str:
    if items:
        # A message or a command is an item, but not a node.
        word = "node" if all(item.id for item in items) else "item"
        what = f"1 {word}" if len(items) == 1 else f"{len(items):,} {word}s"
        return f"ctx: {what}, {tokens:,} tokens; `ctx why` lists them"
    return "ctx: memory is empty here" if contexts.EMPTY_MEMORY in text else ""


def _is_first_run(hook: "Hook") -> bool:
    """Whether to explain what is captured. Returns true only once."""
    mark = f"{hook.home}/{_FIRST_RUN}"
    if os.path.lexists(mark) or not hook.flag("capture.enabled", default=True):
        return False
    try:
        os.close(os.open(mark, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except OSError:
        return False
    return True
