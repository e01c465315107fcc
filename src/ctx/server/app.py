"""The app: its routes, and errors as JSON.

Whoever asks is this user, by way of a socket that nobody else can reach. What is asked on behalf of
an agent (`context`, `query`, `prompt`) is answered from where that agent works, and of a project
that is not trusted it is given nothing.
"""

import json
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from anyio import CapacityLimiter, to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ctx.errors import BudgetExceeded, CtxError, NodeNotFound, SessionNotFound, UsageError
from ctx.server import answers
from ctx.server.answers import Asked
from ctx.server.values import plain
from ctx.workspace import Environment

_MOST_AT_ONCE = 4
_LARGEST_BODY = 1024 * 1024


class About(NamedTuple):
    """What `GET /api/health` says about the process."""

    pid: int
    version: str
    memory_mb: float
    since: str
    rounds: int


class Served(NamedTuple):
    """What the app is given by whoever serves it."""

    environment: Environment
    wake: Callable[[], None]
    """There is something to do."""
    about: Callable[[], About]


def app(served: Served) -> Starlette:
    limiter = CapacityLimiter(_MOST_AT_ONCE)

    def route(path: str, method: str, answer: answers.Answer) -> Route:
        async def endpoint(request: Request) -> Response:
            asked = Asked(served.environment, dict(request.query_params), await _body(request))
            value = await to_thread.run_sync(answer, asked, limiter=limiter, abandon_on_cancel=True)
            return JSONResponse(plain(value))

        return Route(path, endpoint, methods=[method])

    async def health(request: Request) -> Response:
        asked = Asked(served.environment, dict(request.query_params), {})
        found = await to_thread.run_sync(
            answers.standing, asked, limiter=limiter, abandon_on_cancel=True
        )
        told = {"status": found.status, **plain(served.about()), **plain(found.queue)}
        return JSONResponse(told)

    async def wake(_request: Request) -> Response:
        served.wake()
        return JSONResponse({"status": "ok"})

    routes = [route(f"/api/{name}", "GET", answer) for name, answer in answers.READING.items()]
    routes += [route(f"/api/{name}", "POST", answer) for name, answer in answers.DOING.items()]
    routes += [Route("/api/health", health), Route("/api/wake", wake, methods=["POST"])]
    return Starlette(routes=routes, exception_handlers=_PROBLEMS)


async def _body(request: Request) -> dict[str, Any]:
    """What was said, which must be an object of JSON, and not too large."""
    data = b""
    async for part in request.stream():
        data += part
        if len(data) > _LARGEST_BODY:
            raise HTTPException(413, f"There are more than {_LARGEST_BODY:,} bytes.")
    if not data:
        return {}
    try:
        said = json.loads(data)
    except (ValueError, RecursionError):
        raise UsageError("What was said is not JSON.") from None
    if not isinstance(said, dict):
        raise UsageError("What was said is not an object.")
    return said


async def _explained(_request: Request, error: Exception) -> Response:
    assert isinstance(error, CtxError)
    is_theirs = error.exit_code == 2 or isinstance(error, BudgetExceeded)
    is_unknown = isinstance(error, NodeNotFound | SessionNotFound)
    status = 404 if is_unknown else 400 if is_theirs else 500
    told = {"code": error.code, "message": error.message, "hint": error.hint}
    return JSONResponse({"error": plain(told)}, status)


async def _refused(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    told = {"code": UsageError.code, "message": error.detail, "hint": _ROUTES}
    return JSONResponse({"error": told}, error.status_code, error.headers)


async def _unexpected(_request: Request, error: Exception) -> Response:
    told = {"code": CtxError.code, "message": f"{type(error).__name__}.", "hint": None}
    return JSONResponse({"error": told}, 500)


_ROUTES = "docs/sessions.md lists what can be asked, and how."
_PROBLEMS: dict[Any, Callable[[Request, Exception], Awaitable[Response]]] = {
    CtxError: _explained,
    HTTPException: _refused,
    Exception: _unexpected,
}
