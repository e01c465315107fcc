"""Which stores the nodes of a session are written to.

They go to the user store, unless the session is shared: `share.sessions` says so, or the session is
staged in its project.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from ctx import clock, ids
from ctx.capture.session_state import Session
from ctx.memory.graph import PROJECT, USER
from ctx.project import captured_staging
from ctx.project.captured_staging import SessionStaging
from ctx.synthesis import existing_observations
from ctx.workspace import Memory, for_agents

AUTHOR = "synthesis"
SUMMARY = "summary"
"""The type of the node that summarises a session, and its key."""


@contextmanager
def session_memory(memory: Memory, session: Session) -> Iterator[Memory]:
    """Memory opened for the session's folder and for the staging session that it belongs to."""
    name = ids.session_id(session.id)
    environment = memory.environment._replace(session=name)
    if not os.path.isabs(session.folder):
        yield Memory(memory.user, None, environment, AUTHOR, local=memory.local)
        return
    with for_agents(memory, session.folder, name, AUTHOR) as there:
        staged = staging_of(there, session)
        if staged is not None and staged.chain != name:
            environment = there.environment._replace(session=staged.chain)
            there = Memory(
                there.user,
                there.project_memory,
                environment,
                AUTHOR,
                there.withheld,
                there.local,
                is_for_agents=True,
            )
        yield there


def staging_of(there: Memory, session: Session) -> SessionStaging | None:
    """How the work of a session is staged in its project; None if it is not."""
    if there.project_memory is None:
        return None
    name, repository = ids.session_id(session.id), there.project_memory.repository
    # The time of an event is stored in whole seconds.
    last_ms = (clock.parse_iso(session.last_at) or 0) + 999
    staged = captured_staging.find(there.local, repository, name, last_ms)
    if staged is None and there.environment.user_config.text("share.sessions") == "all":
        return SessionStaging(name, 0)
    return staged


def scopes(there: Memory, session: Session) -> tuple[str, str]:
    """The scopes for observations and for summaries.

    Where the first ones of a session are written, later ones are too.
    """
    project = there.project_memory
    if project is None:
        return USER, USER
    graphs = {USER: there.user, PROJECT: project.graph}
    known = {
        scope: {each.key == SUMMARY for each in existing_observations.of_session(graph, session.id)}
        for scope, graph in graphs.items()
    }
    is_staged = staging_of(there, session) is not None
    shared = "all" if is_staged else there.environment.user_config.text("share.sessions")

    def scope_of(is_summary: bool, wanted: str) -> str:
        there_already = [scope for scope in graphs if is_summary in known[scope]]
        return there_already[0] if there_already else wanted

    return (
        scope_of(False, PROJECT if shared == "all" else USER),
        scope_of(True, USER if shared == "none" else PROJECT),
    )
