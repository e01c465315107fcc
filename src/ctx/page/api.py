"""The HTTP API under `/api/v1`: its frame. The handlers are in `api_handlers`.

    GET /api/v1/nodes?project=shop-1f2e3d4c&limit=20
    Authorization: Bearer …

`project` is the key of a folder, as in the addresses of the page, or its absolute path; without it,
the folder for which the server was started. Answers are JSON in ASCII with an ETag. A browser sends
its requests below its session, and its CSRF token in `X-CSRF-Token` if it changes something.
"""

import json
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache
from hashlib import blake2b
from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ctx.errors import UsageError
from ctx.page import access, openapi
from ctx.page.endpoints import ApiEndpoint
from ctx.page.places import PagePlace, Places, place
from ctx.page.requests import PageRequest
from ctx.server.app import JsonAnswer, to_json
from ctx.workspace import Environment

_PREFIX = "/api/v1"
_LARGEST_BODY = 4 * 1024 * 1024
_PROJECT = "project"

InThread = Callable[[Callable[[], Response]], Awaitable[Response]]
ReadBody = Callable[[Request, int], Awaitable[bytes]]


class PlaceQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The parameters that every request has."""

    project: str = ""


def api_routes(
    endpoints: Sequence[ApiEndpoint],
    environment: Environment,
    places: Places,
    in_thread: InThread,
    read_body: ReadBody,
) -> list[Route]:
    @cache
    def document() -> bytes:
        return json.dumps(openapi.document(endpoints)).encode()

    async def describe(request: Request) -> Response:
        return await in_thread(lambda: _with_tag(request, document()))

    def route(endpoint: ApiEndpoint) -> Route:
        async def answer(request: Request) -> Response:
            data = await read_body(request, _LARGEST_BODY) if endpoint.body else b""
            _check_csrf(request)

            def work() -> Response:
                arguments = _arguments(endpoint, request, data)
                place = _place(request.query_params.get(_PROJECT, ""), environment, places)
                asked = PageRequest(
                    environment._replace(folder=place.folder),
                    place,
                    request.path_params,
                    dict(request.query_params),
                    {},
                    request.scope["browser"],
                    if_match=request.headers.get("if-match", ""),
                )
                value = to_json(endpoint.function(asked, **arguments))
                if endpoint.method == "GET":
                    return _with_tag(request, bytes(JsonAnswer(value).body))
                return JsonAnswer(value)

            return await in_thread(work)

        return Route(f"{_PREFIX}{endpoint.path}", answer, methods=[endpoint.method])

    return [Route(f"{_PREFIX}/openapi.json", describe), *map(route, endpoints)]


def _place(text: str, environment: Environment, places: Places) -> PagePlace:
    if not text:
        return places.add(environment.folder)
    if os.path.isabs(text):
        if "\0" in text or not os.path.isdir(text):
            raise UsageError(f"{text[:200]!r} is not a folder.")
        return place(os.path.realpath(text))
    return places.find(text)


def _arguments(endpoint: ApiEndpoint, request: Request, data: bytes) -> Mapping[str, Any]:
    arguments: dict[str, Any] = {}
    try:
        if endpoint.query is not None:
            given = dict(request.query_params)
            arguments["query"] = msgspec.convert(given, endpoint.query, strict=False)
        if endpoint.body is not None:
            arguments["body"] = msgspec.json.decode(data, type=endpoint.body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"{error}.", hint=f"{_PREFIX}/openapi.json describes it.") from None
    return arguments


def _check_csrf(request: Request) -> None:
    browser = request.scope["browser"]
    is_change = request.method not in ("GET", "HEAD")
    given = request.headers.get("x-csrf-token", "")
    if browser is not None and is_change and not access.tokens_match(given, browser):
        raise HTTPException(403, "The page is out of date.")


def _with_tag(request: Request, body: bytes) -> Response:
    """A response that a client need not read again if it has not changed."""
    tag = _tag(body)
    headers = {"ETag": tag}
    if _names(request.headers.get("if-none-match", ""), tag):
        return Response(status_code=304, headers=headers)
    return Response(body, media_type="application/json", headers=headers)


def check_unchanged(request: PageRequest, value: Any) -> None:
    """Refuse a change if the client names an ETag, and what it changes has another one by now.

    `value` is what a GET request of the same address returns.
    """
    tag = _tag(bytes(JsonAnswer(to_json(value)).body))
    if request.if_match and not _names(request.if_match, tag):
        raise HTTPException(412, "It was changed since you read it.", {"ETag": tag})


def _tag(body: bytes) -> str:
    return f'"{blake2b(body, digest_size=12).hexdigest()}"'


def _names(header: str, tag: str) -> bool:
    """Whether a list of ETags in a header has this one."""
    return header.strip() == "*" or tag in (
        part.strip().removeprefix("W/") for part in header.split(",")
    )
