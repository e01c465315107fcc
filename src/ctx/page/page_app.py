"""The app on the port: the views of the page, the HTTP API, and errors in either form."""

import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC
from typing import Any, NamedTuple
from urllib.parse import parse_qs, quote
from zoneinfo import ZoneInfo

from anyio import CapacityLimiter, to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from ctx.errors import CtxError, UsageError
from ctx.page import access, live_updates, rendering
from ctx.page.access import Access, BrowserSession, Gate, Refusal
from ctx.page.api import api_routes
from ctx.page.api_handlers import ENDPOINTS
from ctx.page.doctor_runs import DoctorRuns
from ctx.page.live_updates import Listeners
from ctx.page.openapi import ErrorBody
from ctx.page.places import PagePlace, Places
from ctx.page.requests import Answer, Download, GoTo, HtmlPage, PageRequest, PageRoute
from ctx.page.views import NAVIGATION, ROUTES
from ctx.server.app import JsonAnswer, error_status, read_body, to_json
from ctx.workspace import Environment

_MOST_AT_ONCE = 4
_LARGEST_FORM = 2 * 1024 * 1024
_MOST_FIELDS = 1_000
_IN_LOG = "`ctx worker logs` has more; `ctx serve` prints it."


class PageServices(NamedTuple):
    """What the app needs from the process that serves it."""

    environment: Environment
    access: Access
    places: Places
    listeners: Listeners
    touch: Callable[[], None]
    """Called for each request: somebody uses the page."""
    doctor: DoctorRuns | None = None
    log: Callable[[str], None] = lambda _: None


def page_app(services: PageServices) -> ASGIApp:
    limiter = CapacityLimiter(_MOST_AT_ONCE)

    async def in_thread(work: Callable[[], Response]) -> Response:
        services.touch()
        return await to_thread.run_sync(work, limiter=limiter, abandon_on_cancel=True)

    def view_route(route: PageRoute) -> Route:
        async def endpoint(request: Request) -> Response:
            form = await _form(request) if route.method == "POST" else {}

            def work() -> Response:
                place = services.places.find(request.path_params["place"])
                browser = request.scope["browser"]
                environment = services.environment._replace(folder=place.folder)
                asked = PageRequest(
                    environment,
                    place,
                    request.path_params,
                    dict(request.query_params),
                    form,
                    browser,
                    request.scope["root"],
                    _here(request, place),
                    doctor=services.doctor,
                    stamp=live_updates.stamp(environment),
                    zone=browser.zone if browser else UTC,
                )
                # A page that reads itself again replaces only its main part.
                is_shown = request.method == "GET" and "x-refresh" not in request.headers
                return _response(services, asked, route.view(asked), is_shown=is_shown)

            return await in_thread(work)

        return Route(f"/p/{{place}}{route.path}", endpoint, methods=[route.method])

    async def on_bug(request: Request, error: Exception) -> Response:
        services.log("the page: " + "".join(traceback.format_exception(error)))
        trouble = ErrorBody(CtxError.code, f"{type(error).__name__}.", _IN_LOG)
        return _error(request.scope, 500, trouble)

    async def start(request: Request) -> Response:
        return _start(services, request)

    async def live(request: Request) -> Response:
        place = await to_thread.run_sync(services.places.find, request.path_params["place"])
        environment = services.environment._replace(folder=place.folder)
        browser = request.scope["browser"]

        def is_open() -> bool:
            return browser is None or services.access.is_open(browser)

        since = request.query_params.get("since") or live_updates.stamp(environment)
        stream = services.listeners.stream(environment, since, is_open)
        return StreamingResponse(stream, media_type="text/event-stream")

    routes = [
        Route("/", start),
        Route("/p/{place}/live", live),
        *map(view_route, [*ROUTES, PageRoute("POST", "/zone", _set_zone)]),
        *api_routes(ENDPOINTS, services.environment, services.places, in_thread, read_body),
        Mount("/static", StaticFiles(directory=rendering.STATIC)),
    ]
    inner = Starlette(
        routes=routes,
        exception_handlers={
            CtxError: _on_ctx_error,
            HTTPException: _on_http_error,
            Exception: on_bug,
        },
    )
    # It would lead to an address without the path of the session.
    inner.router.redirect_slashes = False
    return Gate(inner, services.access, _refuse)


def _here(request: Request, place: PagePlace) -> str:
    if request.method != "GET":
        return ""
    path = quote(request.scope["path"]).removeprefix(f"/p/{place.key}")
    return f"{path}?{request.url.query}" if request.url.query else path


def _start(services: PageServices, request: Request) -> Response:
    """Go to the first view; a token is exchanged for a session."""
    browser: BrowserSession | None = request.scope["browser"]
    if browser is not None:
        place = services.places.add(browser.folder)
        return RedirectResponse(f"p/{place.key}/now", 303)
    path = services.access.exchange(request.query_params.get("token", ""))
    # Without the token in the address, it is in no history and in no `Referer`.
    return RedirectResponse(path, 303) if path else _refused(request.scope, access.DEAD_LINK)


def _set_zone(request: PageRequest) -> Answer:
    """Show times in the zone of the browser from now on, if this machine knows it."""
    if request.browser:
        with suppress(KeyError, OSError, ValueError):
            request.browser.zone = ZoneInfo(request.field("zone"))
    return GoTo("/now")


def _response(
    services: PageServices, request: PageRequest, answer: Answer, *, is_shown: bool
) -> Response:
    match answer:
        case HtmlPage():
            messages = request.browser.take_messages() if request.browser and is_shown else []
            values = {**_frame(services, request, answer), "messages": messages, **answer.values}
            return HTMLResponse(rendering.render(answer.template, values), answer.status)
        case GoTo():
            if answer.message and request.browser:
                request.browser.tell(answer.message, answer.undo, answer.button)
            return RedirectResponse(f"{request.base}{answer.path}", 303)
        case Download():
            named = f"attachment; filename*=UTF-8''{quote(answer.name)}"
            headers = {"Content-Disposition": named}
            return Response(answer.data, media_type=answer.media_type, headers=headers)


def _frame(services: PageServices, request: PageRequest, page: HtmlPage) -> Mapping[str, Any]:
    """What the frame around every view shows."""
    place, browser = request.place, request.browser
    return {
        "title": page.title,
        "view": page.template.removesuffix(".html"),
        "place": place,
        "root": request.root,
        "base": request.base,
        "here": request.here,
        "places": services.places.every(),
        "navigation": NAVIGATION,
        "csrf": browser.csrf if browser else "",
        "channel": browser.channel if browser else "",
        "stamp": request.stamp,
        "zone": request.zone,
    }


async def _form(request: Request) -> dict[str, list[str]]:
    """The fields of a form. A browser must send its CSRF token too."""
    data = await read_body(request, _LARGEST_FORM)
    try:
        fields = parse_qs(data.decode("utf-8"), keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise UsageError("The form cannot be read.") from None
    browser: BrowserSession | None = request.scope["browser"]
    if browser is None:
        raise HTTPException(403, "Forms are for people; programs use /api/v1.")
    if not access.tokens_match((fields.get("csrf") or [""])[0], browser):
        raise HTTPException(403, "The form is out of date.")
    return fields


# Errors


async def _refuse(scope: Scope, receive: Receive, send: Send) -> None:
    await _refused(scope, scope["refusal"])(scope, receive, send)


def _refused(scope: Scope, refusal: Refusal) -> Response:
    trouble = ErrorBody(UsageError.code, refusal.message, refusal.hint)
    return _error(scope, refusal.status, trouble, refusal.headers)


async def _on_ctx_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, CtxError)
    trouble = ErrorBody(error.code, error.message, error.hint, error.detail or None)
    return _error(request.scope, error_status(error), trouble)


async def _on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    hints = {
        403: "Go back, reload the page, and send it again.",
        404: "Go back, or begin at the start page.",
    }
    trouble = ErrorBody(UsageError.code, error.detail, hints.get(error.status_code))
    return _error(request.scope, error.status_code, trouble, error.headers)


def _error(
    scope: Scope, status: int, trouble: ErrorBody, headers: Mapping[str, str] | None = None
) -> Response:
    if scope["path"].startswith("/api/"):
        return JsonAnswer({"error": to_json(trouble)}, status, headers)
    values = {"trouble": trouble, "status": status, "root": scope["root"]}
    page = rendering.render("error.html", {**values, "has_start": scope["browser"] is not None})
    return HTMLResponse(page, status, headers)
