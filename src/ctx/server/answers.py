"""What each route answers. Each is called in a thread, and opens the memory for itself."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from ctx import clock, ids
from ctx.capture import event_table
from ctx.errors import CtxError, UsageError
from ctx.operations.apply import AUTHOR
from ctx.workspace import Memory, Surroundings, for_agents, open_memory

if TYPE_CHECKING:
    from ctx.operations.capture_queue import CaptureQueue

_MOST = 1_000
_USUAL = 20
_RELEVANT_S = 0.08
"""Of the time that a hook waits at a prompt, what the question itself may take."""


class Asked(NamedTuple):
    surroundings: Surroundings
    parameters: dict[str, str]
    """What stands in the address."""
    said: dict[str, Any]
    """What came with it."""

    def text(self, name: str) -> str:
        found = self.parameters.get(name) or self.said.get(name) or ""
        return found if isinstance(found, str) else ""

    def required(self, name: str) -> str:
        if not (found := self.text(name)):
            raise UsageError(f"`{name}` is missing.", hint=f"Give it in the address: ?{name}=…")
        return found

    def number(self, name: str, default: int, most: int = _MOST) -> int:
        found = self.text(name) or str(default)
        if not (found.isascii() and found.isdecimal() and len(found) < 10):
            raise UsageError(f"`{name}` is no whole number: {found[:40]!r}.")
        return min(int(found), most)


Answer = Callable[[Asked], Any]


class Context(NamedTuple):
    """What a session that starts in a folder would be given."""

    context: str
    tokens: int
    layers: tuple[str, ...]
    build_ms: int


class Events(NamedTuple):
    events: tuple[event_table.EventRow, ...]
    total: int


class Standing(NamedTuple):
    status: str
    """`ok`, or what is wrong with the store."""
    queue: "CaptureQueue"


def standing(asked: Asked) -> Standing:
    from ctx.operations import capture_queue

    try:
        with _reading(asked) as memory:
            return Standing("ok", capture_queue.capture_queue(memory))
    except CtxError as error:
        home = asked.surroundings.user_store.home
        return Standing(error.message, capture_queue.without_store(home))


def context(asked: Asked) -> Context:
    from ctx.operations import context

    with _there(asked, asked.required("project_path"), asked.text("session_id")) as memory:
        made = context.context(memory)
    layers = tuple(each.name for each in made.layers if each.shown)
    return Context(made.text, made.tokens, layers, made.build_ms)


def search(asked: Asked) -> Any:
    from ctx.memory.query.compile import Scope
    from ctx.memory.query.parse import parse_words
    from ctx.operations.query import find

    with _there(asked, asked.text("project_path")) as memory:
        query = parse_words(asked.required("q"), [])
        return find(memory.graph, query, Scope(), asked.number("limit", _USUAL))


def query(asked: Asked) -> Any:
    from ctx.operations import pack

    budget = asked.number("budget", 0, 10_000_000) or None
    with _there(asked, asked.text("project_path")) as memory:
        return pack.pack(memory, pack.Options(asked.required("q"), budget))


def sessions(asked: Asked) -> Any:
    from ctx.capture import state

    with _reading(asked) as memory:
        project = asked.text("project") or None
        limit = asked.number("limit", _USUAL)
        found = state.all_of(memory.user.connection, project=project, limit=limit)
    return {"sessions": found}


def events(asked: Asked) -> Events:
    """The newest first, without what they say."""
    wanted = {name: asked.text(name) for name in ("session", "status") if asked.text(name)}
    with _reading(asked) as memory:
        limit = asked.number("limit", _USUAL)
        found, count = event_table.newest(memory.user.connection, wanted, limit)
    return Events(tuple(found), count)


def nodes(asked: Asked) -> Any:
    from ctx.operations.list import Options, list_nodes

    types = [asked.text("type")] if asked.text("type") else []
    tags = [asked.text("tag")] if asked.text("tag") else []
    with _there(asked, asked.text("project_path")) as memory:
        wanted = Options(types, tags, limit=asked.number("limit", _USUAL))
        return list_nodes(memory.graph, wanted)


def apply(asked: Asked) -> Any:
    """Do what agents asked for. A hook waits for this, so it is nothing else."""
    from ctx.hook_files import spool
    from ctx.operations import apply, worker_round

    home = asked.surroundings.user_store.home
    with apply.hold_spool(home) as held:
        if not held:
            return apply.NOTHING._replace(waiting=len(spool.waiting(home)))
        with open_memory(asked.surroundings, writing=True) as memory:
            return apply.commands(memory, home, worker_round.transcript_timeout_s(memory))


def prompt(asked: Asked) -> Any:
    """What memory has to say to a prompt, and has not said to this session yet."""
    from ctx.operations.prompt_hints import prompt_hints

    folder, session = asked.required("folder"), asked.required("session")
    _check_folder(folder)
    deadline = clock.monotonic_after(_RELEVANT_S)
    with _reading(asked) as memory:
        return prompt_hints(memory, folder, session, asked.required("prompt"), deadline)


@contextmanager
def _reading(asked: Asked) -> Iterator[Memory]:
    """The user store alone."""
    with open_memory(asked.surroundings, writing=False, author=AUTHOR) as memory:
        yield memory


@contextmanager
def _there(asked: Asked, folder: str, session: str = "") -> Iterator[Memory]:
    """The memory from where an agent works; the user store alone where no folder is named."""
    with _reading(asked) as memory:
        if not folder:
            yield memory
            return
        _check_folder(folder)
        joined = ids.session_id(session) if session else memory.session
        with for_agents(memory, folder, joined, AUTHOR) as there:
            yield there


def _check_folder(folder: str) -> None:
    if not os.path.isabs(folder) or "\0" in folder:
        raise UsageError(f"{folder[:200]!r} is not the whole path of a folder.")


READING: dict[str, Answer] = {
    "context": context,
    "search": search,
    "query": query,
    "sessions": sessions,
    "events": events,
    "nodes": nodes,
}
DOING: dict[str, Answer] = {"apply": apply, "prompt": prompt}
