"""The app: its routes, and errors as JSON.

Only this user can reach the socket. Requests on behalf of an agent (`context`, `search`, `prompt`)
are answered for the folder where that agent works; an untrusted project gives nothing.
"""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from anyio import CapacityLimiter, to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ctx.errors import (
    AmbiguousId,
    BudgetExceeded,
    ConfirmationNeeded,
    ContentRefused,
    CtxError,
    ImportConflict,
    LockConflict,
    NodeNotFound,
    NotAProject,
    PathRefused,
    ReceiptNotFound,
    SessionNotFound,
    StagingConflict,
    StoreNotTrusted,
    UsageError,
    ViewNotFound,
)
from ctx.operations.update import EditConflict
from ctx.server import routes
from ctx.server.routes import RouteRequest
from ctx.workspace import Environment

_MOST_AT_ONCE = 4
_LARGEST_BODY = 1024 * 1024
_CLOSE = {"Connection": "close"}
_BODY_S = 20.0
"""How long a client may take to send a body."""


class JsonAnswer(JSONResponse):
    """JSON in ASCII: hidden characters are escaped, like all others."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()


class ProcessInfo(NamedTuple):
    """The part of `GET /api/health` about the process."""

    pid: int
    version: str
    memory_mb: float
    since: str
    rounds: int


class PageLink(NamedTuple):
    """The answer of `POST /api/page`."""

    address: str
    """It opens the page for a folder, once."""
    file: str
    """The name of a file in the user store that leads a browser to the address; empty if none was
    asked for, or if it could not be written."""


class AppServices(NamedTuple):
    """What the app needs from the process that serves it."""

    environment: Environment
    variables: Mapping[str, str]
    """The whole environment, for a model that needs a key."""
    wake: Callable[[], None]
    """Start a round."""
    about: Callable[[], ProcessInfo]
    open_page: Callable[[str, bool], Awaitable[PageLink]]
    """Serve the page for a folder, and write a file that leads there or not."""


def app(services: AppServices) -> Starlette:
    limiter = CapacityLimiter(_MOST_AT_ONCE)

    def route(path: str, method: str, answer: routes.RouteFunction) -> Route:
        async def endpoint(request: Request) -> Response:
            request_ = RouteRequest(
                services.environment,
                dict(request.query_params),
                await _json_object(request),
                services.variables,
            )
            value = await to_thread.run_sync(
                answer, request_, limiter=limiter, abandon_on_cancel=True
            )
            return JsonAnswer(to_json(value))

        return Route(path, endpoint, methods=[method])

    async def health(request: Request) -> Response:
        request_ = RouteRequest(services.environment, dict(request.query_params), {})
        answer = await to_thread.run_sync(
            routes.health, request_, limiter=limiter, abandon_on_cancel=True
        )
        body = {"status": answer.status, **to_json(services.about()), **to_json(answer.queue)}
        return JsonAnswer(body)

    async def wake(_request: Request) -> Response:
        services.wake()
        return JsonAnswer({"status": "ok"})

    async def page(request: Request) -> Response:
        body = await _json_object(request)
        folder = body.get("folder")
        if not isinstance(folder, str) or not os.path.isabs(folder):
            raise UsageError("`folder` must be the absolute path of a folder.")
        link = await services.open_page(folder, body.get("file") is True)
        return JsonAnswer(to_json(link))

    table = [
        *(route(f"/api/{name}", "GET", answer) for name, answer in routes.GET_ROUTES.items()),
        *(route(f"/api/{name}", "POST", answer) for name, answer in routes.POST_ROUTES.items()),
        Route("/api/health", health),
        Route("/api/wake", wake, methods=["POST"]),
        Route("/api/page", page, methods=["POST"]),
    ]
    return Starlette(routes=table, exception_handlers=_ERROR_HANDLERS)


def to_json(value: Any) -> Any:
    """Convert to JSON types: named tuples and structs become objects; paths that are not UTF-8 are
    escaped."""
    match value:
        case tuple() if hasattr(value, "_fields"):
            return {name: to_json(getattr(value, name)) for name in value._fields}
        case _ if hasattr(value, "__struct_fields__"):
            return {name: to_json(getattr(value, name)) for name in value.__struct_fields__}
        case dict():
            return {str(key): to_json(item) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [to_json(item) for item in value]
        case str():
            return os.fsencode(value).decode("utf-8", "backslashreplace")
        case bytes():
            return value.hex()
        case None | int() | float():
            return value
        case _:
            return str(value)


async def read_body(request: Request, most: int) -> bytes:
    """The body of a request, of limited size, within a limited time."""
    size = request.headers.get("content-length", "")
    # The rest of the body is not read.
    too_large = HTTPException(413, f"There are more than {most:,} bytes.", _CLOSE)
    if size.isdecimal() and int(size) > most:
        raise too_large
    data = bytearray()
    try:
        async with asyncio.timeout(_BODY_S):
            async for part in request.stream():
                data += part
                if len(data) > most:
                    raise too_large
    except TimeoutError:
        raise HTTPException(408, "The request took too long.", _CLOSE) from None
    return bytes(data)


async def _json_object(request: Request) -> dict[str, Any]:
    """The request body, as a JSON object."""
    data = await read_body(request, _LARGEST_BODY)
    if not data:
        return {}
    try:
        body = json.loads(data)
    except (ValueError, RecursionError):
        raise UsageError("The body is not JSON.") from None
    if not isinstance(body, dict):
        raise UsageError("The body is not a JSON object.")
    return body


def error_status(error: CtxError) -> int:
    """The HTTP status of an error."""
    for status, kinds in _STATUSES.items():
        if isinstance(error, kinds):
            return status
    return 400 if error.exit_code == 2 else 500


async def _ctx_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, CtxError)
    body = {"code": error.code, "message": error.message, "hint": error.hint}
    return JsonAnswer({"error": to_json(body)}, error_status(error))


async def _http_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    body = {"code": UsageError.code, "message": error.detail, "hint": _ROUTES}
    return JsonAnswer({"error": body}, error.status_code, error.headers)


async def _internal_error(_request: Request, error: Exception) -> Response:
    body = {"code": CtxError.code, "message": f"{type(error).__name__}.", "hint": None}
    return JsonAnswer({"error": body}, 500)


_STATUSES: dict[int, tuple[type[CtxError], ...]] = {
    400: (BudgetExceeded, ContentRefused, PathRefused, AmbiguousId, NotAProject),
    403: (StoreNotTrusted,),
    404: (NodeNotFound, SessionNotFound, ViewNotFound, ReceiptNotFound),
    409: (ConfirmationNeeded, EditConflict, ImportConflict, StagingConflict),
    503: (LockConflict,),
}
_ROUTES = "docs/sessions.md lists the requests."
_ERROR_HANDLERS: dict[Any, Callable[[Request, Exception], Awaitable[Response]]] = {
    CtxError: _ctx_error,
    HTTPException: _http_error,
    Exception: _internal_error,
}
