"""Who may use the page, and what every response says to the browser.

`ctx ui` prints an address with a token that works once. The first request exchanges it for a
cookie, so that the token is neither in the history of the browser nor of use to whoever reads it
later. Programs send the bearer token from a file that only this user can read.

The port can be reached by every web page that this user has open, so each request is checked:
`Host` must be this server (DNS rebinding), a change must come from this origin and carry the CSRF
token of the browser session.
"""

import hmac
import os
import secrets
import threading
from typing import NamedTuple

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ctx import disk

_MOST = 64
"""Sessions and unused tokens that are kept; the oldest go first."""
_MOST_MESSAGES = 8
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_OPEN_PATHS = ("/static/",)
"""What holds no data, for the page that asks for a token."""

_SECURITY_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
        " connect-src 'self'; font-src 'self'; form-action 'self'; frame-ancestors 'none';"
        " base-uri 'none'"
    ),
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    # With `no-referrer`, browsers would hide the origin of forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}


class Notice(NamedTuple):
    """One sentence for the user, shown once, and the change that `Undo` reverts."""

    text: str
    undo: str = ""
    """The id of the change; empty if there is nothing to undo."""


class BrowserSession:
    """One browser that has exchanged a token."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        """Where `ctx ui` was run."""
        self.csrf = secrets.token_urlsafe(24)
        self.messages: list[Notice] = []
        self._lock = threading.Lock()

    def tell(self, text: str, undo: str = "") -> None:
        with self._lock:
            self.messages = [*self.messages, Notice(text, undo)][-_MOST_MESSAGES:]

    def take_messages(self) -> list[Notice]:
        with self._lock:
            messages, self.messages = self.messages, []
        return messages


class Access:
    """The tokens and browser sessions of one server."""

    def __init__(self, port: int, bearer: str) -> None:
        self.port = port
        self._bearer = bearer
        self._tokens: dict[str, str] = {}
        self._sessions: dict[str, BrowserSession] = {}

    @property
    def cookie(self) -> str:
        """Browsers share cookies between the ports of a host."""
        return f"ctx-{self.port}"

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def new_address(self, folder: str) -> str:
        """An address that opens the page for a folder, once."""
        token = secrets.token_urlsafe(32)
        self._tokens[token] = folder
        _drop_oldest(self._tokens)
        return f"{self.origin}/?token={token}"

    def exchange(self, token: str) -> str | None:
        """The value of a new cookie for a token; None if it is unknown or was used."""
        folder = self._tokens.pop(token, None)
        if folder is None:
            return None
        value = secrets.token_urlsafe(32)
        self._sessions[value] = BrowserSession(folder)
        _drop_oldest(self._sessions)
        return value

    def session(self, headers: Headers) -> BrowserSession | None:
        """The browser session of a request."""
        found = None
        for line in headers.getlist("cookie"):
            # Other servers on this machine set cookies too, in whatever form.
            found = self._sessions.get(cookie_parser(line).get(self.cookie, "")) or found
        return found

    def is_program(self, headers: Headers) -> bool:
        """Whether a request carries the bearer token."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        given = token.strip().encode("utf-8", "surrogateescape")
        return scheme.lower() == "bearer" and hmac.compare_digest(given, self._bearer.encode())

    def is_own_host(self, host: str) -> bool:
        return host in {f"{name}:{self.port}" for name in ("127.0.0.1", "localhost")}

    def is_own_origin(self, headers: Headers) -> bool:
        """Whether a change comes from a page of this server.

        All browsers name the origin of a form that is sent. A program of this user that does
        neither has the bearer token.
        """
        origin = headers.get("origin")
        if origin is None:
            return headers.get("sec-fetch-site") == "same-origin"
        return origin.startswith("http://") and self.is_own_host(origin.removeprefix("http://"))


def _drop_oldest(kept: dict[str, str] | dict[str, BrowserSession]) -> None:
    while len(kept) > _MOST:
        del kept[next(iter(kept))]


def bearer_token(path: str) -> str:
    """The token for programs, from a file that only this user can read; made if it is missing."""
    with disk.explain_errors("reading the token for programs"):
        try:
            with open(path, encoding="ascii") as file:
                if len(token := file.read(200).strip()) >= 32:
                    return token
        except (FileNotFoundError, UnicodeDecodeError):
            pass
        token = secrets.token_urlsafe(32)
        disk.make_folder(os.path.dirname(path))
        disk.replace(path, f"{token}\n".encode())
        return token


class Refusal(NamedTuple):
    """Why a request is not answered: the status, and what to tell the user."""

    status: int
    message: str
    hint: str


_NO_ACCESS = Refusal(
    401,
    "This page needs a token.",
    "Run `ctx ui` to open it. Programs send the token in ~/.ctx/page.token as a bearer token.",
)
_WRONG_HOST = Refusal(421, "This server answers only for this machine.", "Open 127.0.0.1.")
_FOREIGN = Refusal(403, "The request comes from another site.", "Use the page itself.")


class Gate:
    """Checks every request, and adds the headers that every response has."""

    def __init__(self, app: ASGIApp, access: Access, refuse: ASGIApp) -> None:
        self._app = app
        self._access = access
        self._refuse = refuse
        """Answers a request that is refused; it finds why in the scope."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", _cache_control(scope, message["status"]))
            await send(message)

        scope["refusal"] = self._refusal(scope)
        answer = self._refuse if scope["refusal"] else self._app
        await answer(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope) -> Refusal | None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._access.is_own_host(hosts[0]):
            return _WRONG_HOST
        scope["browser"] = None
        if scope["path"].startswith(_OPEN_PATHS):
            return None
        if self._access.is_program(headers):
            return None
        scope["browser"] = self._access.session(headers)
        if scope["method"] not in _SAFE_METHODS and not self._access.is_own_origin(headers):
            return _FOREIGN
        has_token = scope["path"] == "/" and b"token=" in scope["query_string"]
        return None if scope["browser"] or has_token else _NO_ACCESS


def _cache_control(scope: Scope, status: int) -> str:
    # The address of a static file contains its hash.
    is_fixed = scope["path"].startswith(_OPEN_PATHS) and scope["query_string"].startswith(b"v=")
    return "private, max-age=31536000, immutable" if is_fixed and status == 200 else "no-store"


def tokens_match(given: str, session: BrowserSession) -> bool:
    """Whether a form carries the CSRF token of its session."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), session.csrf.encode())
