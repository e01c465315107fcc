"""One request and its answer as bytes, within the time that they may take."""

import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Timer
from typing import TYPE_CHECKING, Any

from ctx import clock
from ctx.llm import stream
from ctx.llm.stream import Broken, Event

if TYPE_CHECKING:
    import httpx

_SLOWEST = 10
"""The whole may take so many times the longest silence."""
_ENCODINGS = ("", "identity")
_WAIT = "`ctx config set llm.timeout_seconds N` waits longer."


class Exchange:
    """To be begun once, and ended whatever happened.

    A server that sends a little now and then never runs into a limit for one read. So a timer hangs
    up when the whole takes too long.
    """

    def __init__(self, client: "httpx.Client", request: "httpx.Request", silence_s: float) -> None:
        self._client = client
        self._request = request
        self._silence_s = silence_s
        self._response: httpx.Response | None = None
        self._socket: socket.socket | None = None
        self._timer = Timer(silence_s * _SLOWEST, self._give_up)
        self._timer.daemon = True
        self._is_late = False
        self._last = 0.0
        request.extensions["trace"] = self._note

    @property
    def response(self) -> "httpx.Response":
        assert self._response is not None, "it has begun"
        return self._response

    def begin(self) -> None:
        """Send the request, and read the answer's head."""
        self._timer.start()
        with self._told():
            self._response = self._client.send(self._request, stream=True)
        self._last = clock.monotonic()

    def chunks(self) -> Iterator[bytes]:
        if (encoding := self.response.headers.get("Content-Encoding", "")) not in _ENCODINGS:
            # A small answer could be a very large one.
            raise Broken(f"answered in an encoding that it was not asked for: {encoding}")
        with self._told():
            for chunk in self.response.iter_raw():
                if clock.monotonic() - self._last > self._silence_s:
                    raise self._silent()
                yield chunk
        if self._is_late:
            raise self._too_slow()

    def heard(self, events: Iterator[Event], speaks: Callable[[Event], bool]) -> Iterator[Event]:
        """The events, of which those that speak break the silence; `Broken` at an error."""
        for event in events:
            if told := stream.error_in(event):
                raise Broken(
                    f"broke off with an error: {told}", may_repeat=stream.may_repeat(event)
                )
            yield event
            # Time that the hearer takes is not the server's.
            if speaks(event):
                self._last = clock.monotonic()

    def hang_up(self) -> None:
        """Also from another thread, which ends what waits here."""
        if self._socket is not None:
            try:
                self._socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # It has ended by itself.

    def end(self) -> None:
        self._timer.cancel()
        self.hang_up()
        if self._response is not None:
            self._response.close()

    def _give_up(self) -> None:
        self._is_late = True
        self.hang_up()

    def _note(self, event: str, info: Mapping[str, Any]) -> None:
        """Is told by httpx what it does: the connection, when there is one."""
        if event.endswith(("connect_tcp.complete", "start_tls.complete")):
            self._socket = info["return_value"].get_extra_info("socket")

    @contextmanager
    def _told(self) -> Iterator[None]:
        """What can happen once a connection is there, as `Broken`."""
        import httpx

        try:
            yield
        except (httpx.ReadTimeout, httpx.WriteTimeout) as error:
            raise self._silent() from error
        except (httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError) as error:
            if self._is_late:
                raise self._too_slow() from error
            cause = str(error) or type(error).__name__
            is_nonsense = isinstance(error, httpx.RemoteProtocolError)
            if is_nonsense and not any(word in cause for word in ("closed", "disconnected")):
                raise Broken(f"does not speak HTTP: {cause}") from error
            raise Broken(f"broke the connection off: {cause}", may_repeat=True) from error

    def _silent(self) -> Broken:
        return Broken(f"was silent for {self._silence_s:g} s", hint=_WAIT)

    def _too_slow(self) -> Broken:
        return Broken(f"took more than {self._silence_s * _SLOWEST:g} s", hint=_WAIT)
