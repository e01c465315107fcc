"""The app on the port: the views of the page, the HTTP API, and errors in either form."""

import traceback
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qs, quote

from anyio import CapacityLimiter, to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from ctx.errors import CtxError, UsageError
from ctx.page import access, rendering
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
                asked = PageRequest(
                    services.environment._replace(folder=place.folder),
                    place,
                    request.path_params,
                    dict(request.query_params),
                    form,
                    request.scope["browser"],
                    _here(request, place),
                    doctor=services.doctor,
                )
                # A page that reads itself again replaces only its main part.
                is_shown = request.method == "GET" and "x-refresh" not in request.headers
                return _response(services, asked, route.view(asked), is_shown=is_shown)

            return await in_thread(work)

        return Route(f"/p/{{place}}{route.path}", endpoint, methods=[route.method])

    async def on_bug(request: Request, error: Exception) -> Response:
        services.log("the page: " + "".join(traceback.format_exception(error)))
        trouble = ErrorBody(CtxError.code, f"{type(error).__name__}.", _IN_LOG)
        return _error(request.url.path, 500, trouble)

    async def start(request: Request) -> Response:
        return _start(services, request)

    async def live(request: Request) -> Response:
        place = await to_thread.run_sync(services.places.find, request.path_params["place"])
        environment = services.environment._replace(folder=place.folder)
        stream = services.listeners.stream(environment)
        return StreamingResponse(stream, media_type="text/event-stream")

    routes = [
        Route("/", start),
        Route("/p/{place}/live", live),
        *map(view_route, ROUTES),
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
    return Gate(inner, services.access, _refuse)


def _here(request: Request, place: PagePlace) -> str:
    if request.method != "GET":
        return ""
    path = quote(request.scope["path"]).removeprefix(place.base)
    return f"{path}?{request.url.query}" if request.url.query else path


def _start(services: PageServices, request: Request) -> Response:
    """Exchange a token for a cookie, and go to the first view."""
    browser: BrowserSession | None = request.scope["browser"]
    token = request.query_params.get("token", "")
    value = services.access.exchange(token) if token else None
    if value is None and browser is None:
        raise HTTPException(401, "This address was used already, or is not valid.")
    if value is None:
        folder = browser.folder if browser else services.environment.folder
        return RedirectResponse(f"{services.places.add(folder).base}/now", 303)
    # Without the token in the address, it is in no history and in no `Referer`.
    response = RedirectResponse("/", 303)
    response.set_cookie(services.access.cookie, value, httponly=True, samesite="strict", path="/")
    return response


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
                request.browser.tell(answer.message, answer.undo)
            return RedirectResponse(f"{request.place.base}{answer.path}", 303)
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
        "base": place.base,
        "here": request.here,
        "places": services.places.every(),
        "navigation": NAVIGATION,
        "csrf": browser.csrf if browser else "",
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
    refusal: Refusal = scope["refusal"]
    trouble = ErrorBody(UsageError.code, refusal.message, refusal.hint)
    await _error(scope["path"], refusal.status, trouble)(scope, receive, send)


async def _on_ctx_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, CtxError)
    trouble = ErrorBody(error.code, error.message, error.hint, error.detail or None)
    return _error(request.url.path, error_status(error), trouble)


async def _on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    hints = {
        401: "Run `ctx ui` again for a new address.",
        403: "Go back, reload the page, and send it again.",
        404: "Go back, or begin at the start page.",
    }
    trouble = ErrorBody(UsageError.code, error.detail, hints.get(error.status_code))
    return _error(request.url.path, error.status_code, trouble, error.headers)


def _error(
    path: str, status: int, trouble: ErrorBody, headers: Mapping[str, str] | None = None
) -> Response:
    if path.startswith("/api/"):
        return JsonAnswer({"error": to_json(trouble)}, status, headers)
    page = rendering.render("error.html", {"trouble": trouble, "status": status})
    return HTMLResponse(page, status, headers)
