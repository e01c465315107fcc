"""HTTP as backends need it: time limits, retries, streams, and sentences for what goes wrong.

Each request has a connection of its own. One that was kept open, and that the server has closed
meanwhile, could not be told from a request that was lost, and that would count as spent.
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
from ctx.llm import addresses, stream
from ctx.llm.exchange import Exchange
from ctx.llm.model import Meter
from ctx.llm.stream import Broken, Event, Stream
from ctx.llm.tries import Failed, Patience, Waits, not_allowed

if TYPE_CHECKING:
    import httpx

_LARGEST_ANSWER = 8_000_000
_LARGEST_FRAME = 1_000
"""Bytes that a server may put around each token of a stream."""
_LARGEST_REFUSAL = 64 * 1024
_SECRET_HEADERS = ("authorization", "x-api-key")
_NOBODY = "Start it, or say where it is: `ctx config set llm.server_url URL`."
_CERTIFICATE = (
    "SSL_CERT_FILE, or SSL_CERT_DIR, can name where the certificates are that are to be trusted."
)
_NO_KEY = "cannot be asked: the key has characters in it that no key has"
"""What httpx says about it would tell the key."""


class Refused(ModelFailure):
    """The server answered that it will not."""

    def __init__(self, message: str, *, hint: str | None, status: int, said: str) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.said = said
        """Why, in its own words."""


def _any_event(_event: Event) -> bool:
    return True


class Wire:
    """The way to one server. One request at a time."""

    def __init__(self, who: str, url: str, headers: Mapping[str, str], patience: Patience) -> None:
        """`who` begins sentences: `The llama.cpp server`."""
        self._who = who
        self._url = addresses.checked(url)
        parts = urlsplit(url)
        self._parts = parts._replace(path=parts.path.rstrip("/"), fragment="")
        self._headers = dict(headers)
        self._patience = patience
        self._client: httpx.Client | None = None
        self._exchange: Exchange | None = None
        self._is_closed = False

    @property
    def shown(self) -> str:
        """The address without a name, a password and a query."""
        return addresses.shown(self._parts.geturl())

    @property
    def is_local(self) -> bool:
        """Whether the server is on this machine."""
        return addresses.is_on_this_machine(self._url)

    def get(self, path: str) -> Any:
        """What the server answers to a question that spends nothing."""
        return self._whole("GET", path, b"")

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        return self._whole("POST", path, _sent(body))

    @contextmanager
    def stream(
        self,
        path: str,
        body: Mapping[str, Any],
        meter: Meter,
        bound: int,
        estimate: int,
        speaks: Callable[[Event], bool] = _any_event,
    ) -> Iterator[Stream]:
        """Ask a question, again and again where that may help, until an answer has begun.

        Before each try the bytes that are sent and `bound` tokens of an answer are reserved. An
        answer has begun with the first event that `speaks`; only those break the silence.
        """
        content = _sent(body)
        largest = _LARGEST_ANSWER + _LARGEST_FRAME * bound
        began = clock.monotonic()
        waits = Waits(self._patience)
        failure: ModelFailure | None = None
        while True:
            try:
                reservation = meter.reserve(len(content) + bound, estimate)
            except BudgetExceeded as error:
                raise not_allowed(error, failure) from failure
            with ExitStack() as ending:
                try:
                    exchange = ending.enter_context(self._begun("POST", path, content))
                    begun, rest = self._beginning(exchange, largest, speaks)
                except Failed as failed:
                    if not failed.counts:
                        reservation.release()
                    failure = failed.failure
                    pause = waits.after(failed)
                    if pause is None or self._is_closed:
                        raise failure from failed
                else:
                    yield Stream(begun, rest, reservation, began, self._sentence)
                    return
            clock.sleep(pause)

    def close(self) -> None:
        """Also ends what is under way, for another thread that waits for it."""
        self._is_closed = True
        if self._exchange is not None:
            self._exchange.hang_up()
        if self._client is not None:
            self._client.close()

    def _whole(self, method: str, path: str, content: bytes) -> Any:
        try:
            with self._begun(method, path, content) as exchange:
                chunks = []
                size = 0
                for chunk in exchange.chunks():
                    chunks.append(chunk)
                    size += len(chunk)
                    if size > _LARGEST_ANSWER:
                        raise Broken("sent an answer of more than 8 MB")
                return stream.json_value(b"".join(chunks))
        except Failed as failed:
            raise failed.failure from failed
        except Broken as broken:
            raise self._failure(broken) from broken

    def _beginning(
        self, exchange: Exchange, largest: int, speaks: Callable[[Event], bool]
    ) -> tuple[list[Event], Iterator[Event]]:
        """The events up to the first that speaks, and those that are still to come."""
        rest = exchange.heard(stream.events(exchange.chunks(), largest), speaks)
        begun = []
        try:
            for event in rest:
                begun.append(event)
                if speaks(event):
                    break
        except Broken as broken:
            raise Failed(
                self._failure(broken), counts=True, may_repeat=broken.may_repeat
            ) from broken
        return begun, rest

    @contextmanager
    def _begun(self, method: str, path: str, content: bytes) -> Iterator[Exchange]:
        """An exchange in which the server has agreed to answer; `Failed` where it did not."""
        import httpx

        request = self._request(method, path, content)
        assert self._client is not None
        self._exchange = exchange = Exchange(self._client, request, self._patience.silence_s)
        try:
            try:
                exchange.begin()
            except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError) as error:
                cause = _cause(error)
                hint = _CERTIFICATE if "CERTIFICATE" in cause else _NOBODY
                raise self._not_sent(f"cannot be reached: {cause}", hint) from error
            except httpx.LocalProtocolError:
                raise self._not_sent(_NO_KEY) from None
            except UnicodeError as error:
                # Names of machines are looked up in an encoding of their own.
                raise self._not_sent(
                    "cannot be reached: no machine has such a name", _NOBODY
                ) from error
            except Broken as broken:
                failure = self._failure(broken)
                raise Failed(failure, counts=True, may_repeat=broken.may_repeat) from broken
            if exchange.response.status_code // 100 != 2:
                raise self._refusal(exchange)
            yield exchange
        finally:
            exchange.end()
            self._exchange = None

    def _request(self, method: str, path: str, content: bytes) -> "httpx.Request":
        import httpx

        if self._is_closed:
            raise self._not_sent("was closed and cannot be asked any more")
        place, _, query = path.partition("?")
        query = "&".join(part for part in (query, self._parts.query) if part)
        address = self._parts._replace(path=self._parts.path + place, query=query).geturl()
        try:
            if self._client is None:
                self._client = self._connected()
            headers = {"Content-Type": "application/json"} if content else {}
            return self._client.build_request(method, address, content=content, headers=headers)
        except UnicodeEncodeError:
            raise self._not_sent(_NO_KEY) from None
        except OSError as error:
            # The certificates that the environment names are read when they are first needed.
            what = f"cannot be asked: the certificates cannot be read: {_cause(error)}"
            raise self._not_sent(what, _CERTIFICATE) from error
        except (httpx.InvalidURL, ValueError, ImportError) as error:
            raise self._not_sent(f"cannot be asked: {_cause(error)}") from error

    def _connected(self) -> "httpx.Client":
        import ssl

        import httpx

        silence_s, connect_s = self._patience.silence_s, self._patience.connect_s
        limits = httpx.Limits(max_keepalive_connections=0)
        transport = None
        if self.is_local:
            # A proxy of the surroundings cannot reach this machine's own servers. Where nothing is
            # encrypted, nobody needs the long list of authorities.
            is_plain = self._parts.scheme == "http"
            trusted = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if is_plain else True
            transport = httpx.HTTPTransport(verify=trusted, limits=limits)
        return httpx.Client(
            headers={"Accept-Encoding": "identity", "Connection": "close", **self._headers},
            timeout=httpx.Timeout(silence_s, connect=min(silence_s, connect_s)),
            limits=limits,
            transport=transport,
        )

    def _refusal(self, exchange: Exchange) -> Failed:
        response = exchange.response
        status = response.status_code
        said = self._masked(_reason(exchange))
        counts = status == 408 or status >= 500
        what = f"failed ({status})" if counts else f"refused ({status})"
        if status // 100 == 3:
            what = f"sends elsewhere ({status})"
            said = self._masked(response.headers.get("Location", ""))
        wait_s = _retry_after(response.headers.get("Retry-After", ""))
        failure = Refused(
            self._sentence(f"{what}: {said}".removesuffix(": ")),
            hint=_hint(status, said, wait_s),
            status=status,
            said=said,
        )
        return Failed(failure, counts=counts, may_repeat=status in stream.BUSY, wait_s=wait_s)

    def _not_sent(self, what: str, hint: str | None = None) -> Failed:
        failure = ModelFailure(self._sentence(what), hint=hint)
        return Failed(failure, counts=False, may_repeat=False)

    def _failure(self, broken: Broken) -> ModelFailure:
        return ModelFailure(self._sentence(broken.what), hint=broken.hint)

    def _sentence(self, what: str) -> str:
        what = stream.shown(self._masked(what)).rstrip(".")
        return f"{self._who} at {self.shown} {what}."

    def _masked(self, text: str) -> str:
        """A text without what is to be kept secret, which a server may repeat."""
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
        return stream.clean(text)


def _sent(body: Mapping[str, Any]) -> bytes:
    # A lone surrogate cannot be sent.
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _cause(error: Exception) -> str:
    return str(error) or type(error).__name__


def _reason(exchange: Exchange) -> str:
    """Why a server refused, in its own words, as far as they can be read."""
    text = b""
    try:
        for chunk in exchange.chunks():
            text += chunk
            if len(text) > _LARGEST_REFUSAL:
                break
    except Broken:
        pass
    try:
        return stream.reason(stream.json_value(text))
    except Broken:
        return "an HTML page" if stream.is_html(text) else stream.clean(text)


def _retry_after(value: str) -> float:
    """Seconds, from either form of the header; 0 where it says nothing."""
    try:
        seconds = max(0.0, float(value))
        return seconds if isfinite(seconds) else 0.0
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - clock.now_ms() / 1000)
    except (ValueError, OverflowError):
        return 0.0


def _hint(status: int, said: str, wait_s: float) -> str | None:
    if status in (401, 403):
        return "`llm.api_key_env` names the environment variable that holds the key."
    if wait_s > 0:
        return f"It asks to be left alone for {wait_s:.0f} s."
    if status == 404 and "model" in said.lower():
        return "`ctx config set llm.model NAME`, or --model NAME, says which is asked."
    if status // 100 == 3 or status in (404, 405):
        return "`ctx config set llm.server_url URL` says where the API is."
    return None
