"""Where a call works: the folder, the session, and the memory there."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from sqlite3 import Connection
from typing import Any, NamedTuple

from ctx import ids
from ctx.errors import CtxError
from ctx.workspace import Environment, Memory, open_agent_memory

AUTHOR = "mcp"


class AgentPlace(NamedTuple):
    """The agent of one call."""

    environment: Environment

    @contextmanager
    def open(self, *, writing: bool) -> Iterator[Memory]:
        """The memory as this agent may see it. After a change, staged work that is due is
        committed, as after any other command."""
        with open_agent_memory(self.environment, writing=writing, author=AUTHOR) as memory:
            yield memory
            if writing and memory.project_memory and memory.project_memory.stepped:
                from ctx.operations import compact

                compact.compact_due(memory)


def agent_place(
    environment: Environment,
    session_in_call: Callable[[Mapping[str, Any]], str],
    meta: Mapping[str, Any],
) -> AgentPlace:
    """The place of a call. Its metadata may name the session; other values are ignored."""
    named = session_in_call(meta)
    try:
        session = ids.session_id(named) if named else environment.session
    except CtxError:
        session = environment.session
    return AgentPlace(environment._replace(session=session))


def connections(memory: Memory) -> tuple[Connection, ...]:
    """What can be interrupted."""
    return memory.graph.connections
