"""HTTP for the backends: time limits, retries, streams, and readable errors.

httpx has no retry after a response, no limit on a whole exchange and no bound on the size of a
line, and each attempt must be reserved in the ledger. So those parts are here.

Each request uses a new connection. If a server closes a kept-open connection, it is unknown whether
it received the request, and such a request counts as spent.
"""

import json
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from ctx import clock
from ctx.errors import BudgetExceeded, ModelFailure
from ctx.llm import event_stream, server_url
from ctx.llm.event_stream import AnswerStream, Event, StreamError
from ctx.llm.http_exchange import Exchange
from ctx.llm.protocol import Meter
from ctx.llm.retry import AttemptFailed, Backoff, RetryPolicy, with_cause

if TYPE_CHECKING:
    import httpx

_LARGEST_ANSWER = 8_000_000
_LARGEST_FRAME = 1_000
"""Bytes of framing that a server may send per token."""
_LARGEST_REFUSAL = 64 * 1024
_SECRET_HEADERS = ("authorization", "x-api-key")
_UNREACHABLE_HINT = "Start it, or set its address: `ctx config set llm.server_url URL`."
_CERTIFICATE_HINT = "SSL_CERT_FILE or SSL_CERT_DIR can name the trusted certificates."
_BAD_KEY = "cannot be used: the key contains invalid characters"
"""Our own text: the httpx message would contain the key."""


class RequestRefused(ModelFailure):
    """The server refused the request."""

    def __init__(self, message: str, *, hint: str | None, status: int, reason: str) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.reason = reason
        """The server's explanation."""


def _any_event(_event: Event) -> bool:
    return True


class HttpClient:
    """A client for one server. One request at a time."""

    def __init__(
        self, label: str, url: str, headers: Mapping[str, str], policy: RetryPolicy
    ) -> None:
        """`label` starts error messages: `The llama.cpp server`."""
        self._label = label
        self._url = server_url.check(url)
        parts = urlsplit(url)
        self._parts = parts._replace(path=parts.path.rstrip("/"), fragment="")
        self._headers = dict(headers)
        self._policy = policy
        self._client: httpx.Client | None = None
        self._exchange: Exchange | None = None
        self._is_closed = False

    @property
    def display_url(self) -> str:
        """The URL without user name, password and query."""
        return server_url.display(self._parts.geturl())

    @property
    def is_local(self) -> bool:
        """Whether the server is on this machine."""
        return server_url.is_on_this_machine(self._url)

    def get(self, path: str) -> Any:
        """Send a request that uses no tokens, and return the JSON answer."""
        return self._request_json("GET", path, b"")

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        return self._request_json("POST", path, _encode(body))

    @contextmanager
    def stream(
        self,
        path: str,
        body: Mapping[str, Any],
        meter: Meter,
        bound: int,
        estimate: int,
        is_progress: Callable[[Event], bool] = _any_event,
    ) -> Iterator[AnswerStream]:
        """Send a request, with retries, until an answer starts.

        Before each attempt, the bytes of the request and `bound` answer tokens are reserved. An
        answer starts with the first event for which `is_progress` is true; only such events reset
        the silence timer.
        """
        content = _encode(body)
        largest = _LARGEST_ANSWER + _LARGEST_FRAME * bound
        began = clock.monotonic()
        backoff = Backoff(self._policy)
        failure: ModelFailure | None = None
        while True:
            try:
                reservation = meter.reserve(len(content) + bound, estimate)
            except BudgetExceeded as error:
                raise with_cause(error, failure) from failure
            with ExitStack() as ending:
                try:
                    exchange = ending.enter_context(self._open_exchange("POST", path, content))
                    begun, rest = self._read_first_events(exchange, largest, is_progress)
                except AttemptFailed as failed:
                    if not failed.counts:
                        reservation.release()
                    failure = failed.failure
                    pause = backoff.pause_after(failed)
                    if pause is None or self._is_closed:
                        raise failure from failed
                else:
                    yield AnswerStream(begun, rest, reservation, began, self._sentence)
                    return
            clock.sleep(pause)

    def close(self) -> None:
        """Close the client. This also aborts a request that another thread is waiting for."""
        self._is_closed = True
        if self._exchange is not None:
            self._exchange.abort()
        if self._client is not None:
            self._client.close()

    def _request_json(self, method: str, path: str, content: bytes) -> Any:
        try:
            with self._open_exchange(method, path, content) as exchange:
                chunks = []
                size = 0
                for chunk in exchange.chunks():
                    chunks.append(chunk)
                    size += len(chunk)
                    if size > _LARGEST_ANSWER:
                        raise StreamError("sent an answer of more than 8 MB")
                return event_stream.parse_json(b"".join(chunks))
        except AttemptFailed as failed:
            raise failed.failure from failed
        except StreamError as broken:
            raise self._failure(broken) from broken

    def _read_first_events(
        self, exchange: Exchange, largest: int, is_progress: Callable[[Event], bool]
    ) -> tuple[list[Event], Iterator[Event]]:
        """The events up to the first that shows progress, and the iterator over the rest."""
        rest = exchange.watch(event_stream.read_events(exchange.chunks(), largest), is_progress)
        begun = []
        try:
            for event in rest:
                begun.append(event)
                if is_progress(event):
                    break
        except StreamError as broken:
            raise AttemptFailed(
                self._failure(broken), counts=True, may_repeat=broken.may_repeat
            ) from broken
        return begun, rest

    @contextmanager
    def _open_exchange(self, method: str, path: str, content: bytes) -> Iterator[Exchange]:
        """An exchange whose response has a 2xx status; else `AttemptFailed`."""
        import httpx

        request = self._request(method, path, content)
        assert self._client is not None
        self._exchange = exchange = Exchange(self._client, request, self._policy.silence_s)
        try:
            try:
                exchange.open()
            except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError) as error:
                cause = _cause(error)
                hint = _CERTIFICATE_HINT if "CERTIFICATE" in cause else _UNREACHABLE_HINT
                raise self._unsent(f"cannot be reached: {cause}", hint) from error
            except httpx.LocalProtocolError:
                raise self._unsent(_BAD_KEY) from None
            except UnicodeError as error:
                # Host names are encoded with IDNA, which can fail.
                raise self._unsent(
                    "cannot be reached: no machine has such a name", _UNREACHABLE_HINT
                ) from error
            except StreamError as broken:
                failure = self._failure(broken)
                raise AttemptFailed(failure, counts=True, may_repeat=broken.may_repeat) from broken
            if exchange.response.status_code // 100 != 2:
                raise self._refused_attempt(exchange)
            yield exchange
        finally:
            exchange.close()
            self._exchange = None

    def _request(self, method: str, path: str, content: bytes) -> "httpx.Request":
        import httpx

        if self._is_closed:
            raise self._unsent("was closed")
        place, _, query = path.partition("?")
        query = "&".join(part for part in (query, self._parts.query) if part)
        address = self._parts._replace(path=self._parts.path + place, query=query).geturl()
        try:
            if self._client is None:
                self._client = self._make_client()
            headers = {"Content-Type": "application/json"} if content else {}
            return self._client.build_request(method, address, content=content, headers=headers)
        except UnicodeEncodeError:
            raise self._unsent(_BAD_KEY) from None
        except OSError as error:
            # The certificates that the environment names are read on first use.
            what = f"cannot be used: the certificates cannot be read: {_cause(error)}"
            raise self._unsent(what, _CERTIFICATE_HINT) from error
        except (httpx.InvalidURL, ValueError, ImportError) as error:
            raise self._unsent(f"cannot be used: {_cause(error)}") from error

    def _make_client(self) -> "httpx.Client":
        import ssl

        import httpx

        silence_s, connect_s = self._policy.silence_s, self._policy.connect_s
        limits = httpx.Limits(max_keepalive_connections=0)
        transport = None
        if self.is_local:
            # A proxy cannot reach servers on this machine. Plain HTTP needs no certificate store,
            # which is slow to load.
            is_plain = self._parts.scheme == "http"
            trusted = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if is_plain else True
            transport = httpx.HTTPTransport(verify=trusted, limits=limits)
        return httpx.Client(
            headers={"Accept-Encoding": "identity", "Connection": "close", **self._headers},
            timeout=httpx.Timeout(silence_s, connect=min(silence_s, connect_s)),
            limits=limits,
            transport=transport,
        )

    def _refused_attempt(self, exchange: Exchange) -> AttemptFailed:
        response = exchange.response
        status = response.status_code
        reason = self._mask_secrets(_refusal_reason(exchange))
        counts = status == 408 or status >= 500
        what = f"failed ({status})" if counts else f"refused ({status})"
        if status // 100 == 3:
            what = f"redirects elsewhere ({status})"
            reason = self._mask_secrets(response.headers.get("Location", ""))
        wait_s = _retry_after(response.headers.get("Retry-After", ""))
        failure = RequestRefused(
            self._sentence(f"{what}: {reason}".removesuffix(": ")),
            hint=_hint(status, reason, wait_s),
            status=status,
            reason=reason,
        )
        return AttemptFailed(
            failure, counts=counts, may_repeat=status in event_stream.BUSY_STATUSES, wait_s=wait_s
        )

    def _unsent(self, what: str, hint: str | None = None) -> AttemptFailed:
        failure = ModelFailure(self._sentence(what), hint=hint)
        return AttemptFailed(failure, counts=False, may_repeat=False)

    def _failure(self, broken: StreamError) -> ModelFailure:
        return ModelFailure(self._sentence(broken.what), hint=broken.hint)

    def _sentence(self, what: str) -> str:
        what = event_stream.shorten(self._mask_secrets(what)).rstrip(".")
        return f"{self._label} at {self.display_url} {what}."

    def _mask_secrets(self, text: str) -> str:
        """The text without secrets, which a server may echo."""
        parts = self._parts
        name, password = unquote(parts.username or ""), unquote(parts.password or "")
        login = b64encode(f"{name}:{password}".encode("utf-8", "replace")).decode()
        secrets = [password, parts.password or "", login if password else ""]
        for part in parts.query.split("&"):
            value = part.rpartition("=")[2]
            secrets += [part, value, unquote(value)]
        for name, value in self._headers.items():
            if name.lower() in _SECRET_HEADERS:
                secrets += [value, value.rpartition(" ")[2]]
        for secret in sorted(secrets, key=len, reverse=True):
            if len(secret) > 3:
                text = text.replace(secret, "…")
        return event_stream.one_line(text)


def _encode(body: Mapping[str, Any]) -> bytes:
    # A lone surrogate cannot be sent.
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _cause(error: Exception) -> str:
    return str(error) or type(error).__name__


def _refusal_reason(exchange: Exchange) -> str:
    """The server's explanation of a refusal, as far as it is readable."""
    text = b""
    try:
        for chunk in exchange.chunks():
            text += chunk
            if len(text) > _LARGEST_REFUSAL:
                break
    except StreamError:
        pass
    try:
        return event_stream.error_reason(event_stream.parse_json(text))
    except StreamError:
        return "an HTML page" if event_stream.is_html(text) else event_stream.one_line(text)


def _retry_after(value: str) -> float:
    """Seconds from either form of the header; 0 if it is absent or invalid."""
    try:
        seconds = max(0.0, float(value))
        return seconds if isfinite(seconds) else 0.0
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - clock.now_ms() / 1000)
    except (ValueError, OverflowError):
        return 0.0


def _hint(status: int, reason: str, wait_s: float) -> str | None:
    if status in (401, 403):
        return "`llm.api_key_env` names the environment variable that holds the key."
    if wait_s > 0:
        return f"It asks to wait {wait_s:.0f} s."
    if status == 404 and "model" in reason.lower():
        return "`ctx config set llm.model NAME`, or --model NAME, sets the model."
    if status // 100 == 3 or status in (404, 405):
        return "`ctx config set llm.server_url URL` sets the address of the API."
    return None
