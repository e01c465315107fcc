"""The functions behind the routes. Each runs in a thread and opens the memory itself."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from ctx import clock, ids
from ctx.errors import CtxError, UsageError
from ctx.operations.apply import AUTHOR
from ctx.workspace import Environment, Memory, for_agents, open_memory

if TYPE_CHECKING:
    from ctx.operations.capture_status import CaptureQueue

_MAX_LIMIT = 1_000
_DEFAULT_LIMIT = 20
_RELEVANT_S = 0.08
"""The part of a hook's wait at a prompt that the search may take."""


class RouteRequest(NamedTuple):
    environment: Environment
    parameters: dict[str, str]
    """The query parameters."""
    body: dict[str, Any]
    """The JSON body."""
    variables: Mapping[str, str] = {}
    """The whole environment."""

    def text(self, name: str) -> str:
        value = self.parameters.get(name) or self.body.get(name) or ""
        return value if isinstance(value, str) else ""

    def required(self, name: str) -> str:
        if not (value := self.text(name)):
            raise UsageError(f"`{name}` is missing.", hint=f"Give it in the address: ?{name}=…")
        return value

    def limit(self) -> int:
        value = self.text("limit") or str(_DEFAULT_LIMIT)
        if not (value.isascii() and value.isdecimal() and len(value) < 10):
            raise UsageError(f"`limit` is not a whole number: {value[:40]!r}.")
        return min(int(value), _MAX_LIMIT)


RouteFunction = Callable[[RouteRequest], Any]


class ContextAnswer(NamedTuple):
    """The context for a session that starts in a folder."""

    context: str
    tokens: int
    layers: tuple[str, ...]
    build_ms: int


class ServerHealth(NamedTuple):
    status: str
    """`ok`, or what is wrong with the store."""
    queue: "CaptureQueue"


def health(request: RouteRequest) -> ServerHealth:
    from ctx.operations import capture_status

    try:
        with _user_memory(request) as memory:
            return ServerHealth("ok", capture_status.capture_queue(memory))
    except CtxError as error:
        home = request.environment.user_store.home
        return ServerHealth(error.message, capture_status.without_store(home))


def context(request: RouteRequest) -> ContextAnswer:
    from ctx.operations import context

    with _memory_at(
        request, request.required("project_path"), request.text("session_id")
    ) as memory:
        made = context.context(memory)
    layers = tuple(layer.name for layer in made.layers if layer.shown)
    return ContextAnswer(made.text, made.tokens, layers, made.build_ms)


def search(request: RouteRequest) -> Any:
    from ctx.memory.query.query_parser import parse_words
    from ctx.operations.query import find
    from ctx.operations.visible_nodes import VisibleNodes, list_scope, visible_to_agent

    folder = request.text("project_path")
    with _memory_at(request, folder) as memory:
        query = parse_words(request.required("q"), [])
        visible = visible_to_agent(memory) if folder else VisibleNodes(all_projects=True)
        return find(memory.graph, query, list_scope(memory, visible), request.limit())


def apply(request: RouteRequest) -> Any:
    """Run the commands of agents. A hook waits for this, so it does nothing else."""
    from ctx.hook_files import spool
    from ctx.operations import apply, worker_round

    home = request.environment.user_store.home
    with apply.hold_spool(home) as held:
        if not held:
            return apply.NOTHING._replace(waiting=len(spool.pending_names(home)))
        with open_memory(request.environment, writing=True) as memory:
            return apply.commands(memory, home, worker_round.transcript_timeout_s(memory))


def prompt(request: RouteRequest) -> Any:
    """What is relevant to a prompt and was not shown to this session yet."""
    from ctx.operations.prompt_hints import prompt_hints

    folder, session = request.required("folder"), request.required("session")
    _check_folder(folder)
    deadline = clock.monotonic_after(_RELEVANT_S)
    with _user_memory(request) as memory:
        return prompt_hints(memory, folder, session, request.required("prompt"), deadline)


def order(request: RouteRequest) -> Any:
    """The order that a model gives to texts for a prompt; empty if it does not answer in time."""
    from ctx.operations.prompt_order import order_by_model

    texts = request.body.get("texts")
    known = [each for each in texts if isinstance(each, str)] if isinstance(texts, list) else []
    session, project = request.text("session"), request.text("project") or None
    places = order_by_model(
        *(request.environment, request.variables, session, project),
        *(request.required("prompt"), known),
    )
    return {"order": places}


@contextmanager
def _user_memory(request: RouteRequest) -> Iterator[Memory]:
    """The user store alone."""
    with open_memory(request.environment, writing=False, author=AUTHOR) as memory:
        yield memory


@contextmanager
def _memory_at(request: RouteRequest, folder: str, session: str = "") -> Iterator[Memory]:
    """The memory for an agent's folder; the user store alone if no folder is given."""
    with _user_memory(request) as memory:
        if not folder:
            yield memory
            return
        _check_folder(folder)
        joined = ids.session_id(session) if session else memory.session
        with for_agents(memory, folder, joined, AUTHOR) as there:
            yield there


def _check_folder(folder: str) -> None:
    if not os.path.isabs(folder) or "\0" in folder:
        raise UsageError(f"{folder[:200]!r} is not the absolute path of a folder.")


GET_ROUTES: dict[str, RouteFunction] = {"context": context, "search": search}
POST_ROUTES: dict[str, RouteFunction] = {"apply": apply, "order": order, "prompt": prompt}
