"""What memory knows about a file that an agent reads or is about to edit."""

import os
from sqlite3 import Connection
from zlib import crc32

from ctx.agents.runtime import session_context
from ctx.agents.runtime.host_hooks import field
from ctx.context import before_edit
from ctx.context.before_edit import AboutFile
from ctx.context.contexts import NOTHING, Context, ProjectStoreState
from ctx.hook_files import anchored_files, live, start_receipts
from ctx.layout import Place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctx.agents.runtime.hook import Hook
    from ctx.hosts.hook_events import HookEvent

_A_SESSION_MS = 30 * 86_400_000


def about_file(
    hook: "Hook",
    connection: Connection,
    own: ProjectStoreState,
    place: Place,
    event: "HookEvent",
    file: str,
) -> Context:
    """Once for each file and agent of a session. What it got at its start is not repeated."""
    listed = anchored_files.find(hook.home, file)
    if listed is None:
        return NOTHING
    path, item_ids = listed
    agent = field(event.raw, hook.host.agent_key)
    name = f"{event.session}.edit-{crc32(os.fsencode(file + agent)):08x}"
    if not live.claim(hook.home, name, hook.now_ms(), _A_SESSION_MS):
        return NOTHING
    return before_edit.context(
        session_context.stores_of(own, connection),
        place.project,
        AboutFile(path, item_ids, event.raw.decode("utf-8", "replace")),
        session=event.session,
        given=start_receipts.given(hook.home, event.session),
    )
