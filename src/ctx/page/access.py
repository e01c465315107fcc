"""Who may use the page, and what every response says to the browser.

`ctx ui` opens an address with a token that works once. The first request exchanges it for a path,
`/s/<random>/`, which is the session: whatever this browser reads or sends lies below it. It is no
cookie, because browsers send the cookies of a host to all of its ports, and so to every other
server on this machine. Programs send the bearer token from a file that only this user can read.

Tokens and paths have 128 random bits and are in memory only. They are looked up by their hash, so
the time of an answer says nothing about them. The gate removes the path from a request before
anything else sees it, and links are relative: it is in no log and in nothing that is stored.

The port can be reached by every web page that this user has open, so each request is checked:
`Host` must be this server (DNS rebinding), a change must come from this origin and carry the CSRF
token of the session.
"""

import hmac
import os
import secrets
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, tzinfo
from typing import NamedTuple, TypeVar
from urllib.parse import unquote

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ctx import clock, disk

ENDS_S = 12 * 3600
"""After this time without use, a token or a session ends."""
_MOST = 64
"""Sessions and unused tokens that are kept; those that were not used for the longest time go."""
_MOST_MESSAGES = 8
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_OPEN_PATHS = ("/static/",)
"""What holds no data, for the page that says that a link has ended."""

_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
        " connect-src 'self'; font-src 'self'; form-action 'self'; frame-ancestors 'none';"
        " base-uri 'none'"
    ),
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    # Other origins are told nothing. With `no-referrer`, forms would have the origin `null`.
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
    button: str = "Undo"


class Link:
    """What a random part of an address leads to."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        """Where `ctx ui` was run."""
        self.use()

    def use(self) -> None:
        self._used_at = clock.monotonic(), clock.wall_s()

    @property
    def has_ended(self) -> bool:
        # The one clock stops while the machine sleeps, the other can be set back.
        monotonic, wall = self._used_at
        return max(clock.monotonic() - monotonic, clock.wall_s() - wall) > ENDS_S


class OneTimeLink(Link):
    """A token that was not exchanged yet."""

    def __init__(self, folder: str, on_exchange: Callable[[], None]) -> None:
        super().__init__(folder)
        self.on_exchange = on_exchange


class BrowserSession(Link):
    """What a token was exchanged for."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.csrf = secrets.token_urlsafe(24)
        self.channel = secrets.token_urlsafe(8)
        """Under which its tabs find each other. Every page of this origin can read the names of
        locks, also one that another program serves here later."""
        self.zone: tzinfo = UTC
        """In which times are shown: that of the browser, if a script has told it."""
        self.messages: list[Notice] = []
        self._lock = threading.Lock()

    def tell(self, text: str, undo: str = "", button: str = "Undo") -> None:
        with self._lock:
            self.messages = [*self.messages, Notice(text, undo, button)][-_MOST_MESSAGES:]

    def take_messages(self) -> list[Notice]:
        with self._lock:
            messages, self.messages = self.messages, []
        return messages


_L = TypeVar("_L", bound=Link)


class Access:
    """The tokens and browser sessions of one server."""

    def __init__(self, port: int, bearer: str) -> None:
        self.port = port
        self._bearer = bearer
        self._tokens: dict[str, OneTimeLink] = {}
        self._sessions: dict[str, BrowserSession] = {}

    def new_address(self, folder: str, on_exchange: Callable[[], None] = lambda: None) -> str:
        """An address that opens the page for a folder, once."""
        token = _add(self._tokens, OneTimeLink(folder, on_exchange))
        return f"http://127.0.0.1:{self.port}/?token={token}"

    def exchange(self, token: str) -> str | None:
        """The path of a new session, without its first `/`; None if the token has ended."""
        link = _take(self._tokens, token)
        if link is None:
            return None
        link.on_exchange()
        return f"s/{_add(self._sessions, BrowserSession(link.folder))}/"

    def use(self, key: str) -> BrowserSession | None:
        """The session with this key, which now ends later."""
        session = _take(self._sessions, key)
        if session is not None:
            session.use()
            self._sessions[key] = session
        return session

    def is_open(self, session: BrowserSession) -> bool:
        """Whether requests of this session are still answered."""
        return session in self._sessions.values() and not session.has_ended

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


def _add(links: dict[str, _L], link: _L) -> str:
    """The new key of a link."""
    key = secrets.token_urlsafe(16)
    links[key] = link
    while len(links) > _MOST:
        del links[next(iter(links))]
    return key


def _take(links: dict[str, _L], key: str) -> _L | None:
    link = links.pop(key, None)
    return None if link is None or link.has_ended else link


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
    headers: Mapping[str, str] = {}


_NO_ACCESS = Refusal(
    401,
    "This page needs a token.",
    "Run `ctx ui` to open it. Programs send the token in ~/.ctx/page.token as a bearer token.",
    {"WWW-Authenticate": "Bearer"},
)
DEAD_LINK = Refusal(
    404,
    "This link has ended.",
    "Run `ctx ui` to open the page again. A link ends after 12 hours without use, and when ctx"
    " stops; the one that `ctx ui` prints works once.",
)
_WRONG_HOST = Refusal(421, "This server answers only for this machine.", "Open 127.0.0.1.")
_FOREIGN = Refusal(403, "The request comes from another site.", "Use the page itself.")


class Gate:
    """Checks every request, and adds the headers that every response has.

    What is behind it finds in the scope: `browser`, the session or None; `root`, the relative
    address of the session; and the path below the session.
    """

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
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        key, below = _split(scope["raw_path"])
        inner = {
            **scope,
            "path": unquote(below),
            "raw_path": below.encode("latin-1"),
            # As the browser counts: an encoded slash is no part of the way back.
            "root": "../" * (below.count("/") - 1),
            "browser": None,
        }
        inner["refusal"] = self._refusal(inner, key)
        answer = self._refuse if inner["refusal"] else self._app
        await answer(inner, receive, send_with_headers)

    def _refusal(self, scope: Scope, key: str | None) -> Refusal | None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._access.is_own_host(hosts[0]):
            return _WRONG_HOST
        if scope["path"].startswith(_OPEN_PATHS):
            return None
        if key is None:
            # Only a browser that opens the address uses the token.
            is_opening = scope["method"] == "GET" and scope["path"] == "/"
            has_token = is_opening and b"token=" in scope["query_string"]
            return None if has_token or self._access.is_program(headers) else _NO_ACCESS
        if scope["method"] not in _SAFE_METHODS and not self._access.is_own_origin(headers):
            return _FOREIGN
        scope["browser"] = self._access.use(key)
        return None if scope["browser"] else DEAD_LINK


def _split(raw_path: bytes) -> tuple[str | None, str]:
    """The key of a session, and the path below it; without a session, the whole path."""
    path = raw_path.decode("latin-1")
    match path.split("/", 3):
        case ["", "s", key, below]:
            return key, f"/{below}"
    return None, path


def tokens_match(given: str, session: BrowserSession) -> bool:
    """Whether a form carries the CSRF token of its session."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), session.csrf.encode())
