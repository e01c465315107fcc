"""What a person reads when a session starts: what its agent was given, what is captured, and what
is wrong. Whoever could tell them otherwise may not run when ctx is broken; a hook does."""

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
    """One line for each thing that there is to say."""
    lines = [_summary(text, items, tokens)]
    if is_paused:
        lines.append(PAUSED)
    elif hook.refused:
        lines.append(f"ctx: this session cannot be recorded: {hook.refused}; {_MORE}")
    elif _is_first_run(hook):
        lines.append(f"ctx: from now on, {CAPTURED}")
    elif spool.waits_long(hook.waiting(), hook.now_ms() - _HOUR_MS):
        # An hour: what a machine left that was switched off is taken in by now.
        lines.append(f"ctx: events have been waiting for more than an hour; {_MORE}")
    return "\n".join(filter(None, lines))


def unreadable(hook: "Hook", error: sqlite3.Error) -> str:
    """Why nothing is given; nothing where the next session will be."""
    if getattr(error, "sqlite_errorname", "").startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return ""
    if str(error).startswith("no such"):
        return _of_another_version(hook)
    return f"ctx: the store cannot be read ({error}), so agents get no memory; {_MORE}"


def _of_another_version(hook: "Hook") -> str:
    """A store of an older ctx is brought up to date; for one of a newer ctx, another is needed."""
    from ctx.memory.migrations import MIGRATIONS

    try:
        with closing(for_reading(hook)) as connection:
            version = hook_queries.schema_version(connection)
    except sqlite3.Error:
        version = None
    if version is None and not os.path.getsize(hook.database):
        # It is made now.
        return ""
    if version is None:
        return f"ctx: the store belongs to another program, so agents get no memory; {_MORE}"
    if version <= len(MIGRATIONS):
        return ""
    return f"ctx: the store was written by a newer ctx, so agents get no memory; {_MORE}"


def _summary(text: str, items: "Sequence[ContextItem]", tokens: int) -> str:
    if items:
        # A file in which code has changed is no node.
        word = "node" if all(item.id for item in items) else "item"
        what = f"1 {word}" if len(items) == 1 else f"{len(items):,} {word}s"
        return f"ctx: {what}, {tokens:,} tokens; `ctx why` lists them"
    return "ctx: memory is empty here" if contexts.NOTHING_YET in text else ""


def _is_first_run(hook: "Hook") -> bool:
    """Whether nobody was told yet what is captured, and it is; they are told then."""
    mark = f"{hook.home}/{_FIRST_RUN}"
    if os.path.lexists(mark) or not hook.flag("capture.enabled", default=True):
        return False
    try:
        os.close(os.open(mark, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except OSError:
        return False
    return True
