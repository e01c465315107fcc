"""One HTTP request and its response as bytes, within a time limit."""

import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Timer
from typing import TYPE_CHECKING, Any

from ctx import clock
from ctx.llm import event_stream
from ctx.llm.event_stream import Event, StreamError

if TYPE_CHECKING:
    import httpx

_WHOLE_FACTOR = 10
"""The whole exchange may take this many times the longest silence."""
_IDENTITY = ("", "identity")
_TIMEOUT_HINT = "`ctx config set llm.timeout_seconds N` waits longer."


class Exchange:
    """Open it once and close it in any case.

    A server that trickles data never hits a read timeout. So a timer aborts the exchange when the
    whole takes too long.
    """

    def __init__(self, client: "httpx.Client", request: "httpx.Request", silence_s: float) -> None:
        self._client = client
        self._request = request
        self._silence_s = silence_s
        self._response: httpx.Response | None = None
        self._socket: socket.socket | None = None
        self._timer = Timer(silence_s * _WHOLE_FACTOR, self._time_out)
        self._timer.daemon = True
        self._timed_out = False
        self._progress_at = 0.0
        request.extensions["trace"] = self._trace

    @property
    def response(self) -> "httpx.Response":
        assert self._response is not None, "it has begun"
        return self._response

    def open(self) -> None:
        """Send the request and read the response headers."""
        self._timer.start()
        with self._explain_errors():
            self._response = self._client.send(self._request, stream=True)
        self._progress_at = clock.monotonic()

    def chunks(self) -> Iterator[bytes]:
        if (encoding := self.response.headers.get("Content-Encoding", "")) not in _IDENTITY:
            # A small compressed answer could expand to a very large one.
            raise StreamError(f"answered in an encoding that it was not asked for: {encoding}")
        with self._explain_errors():
            for chunk in self.response.iter_raw():
                if clock.monotonic() - self._progress_at > self._silence_s:
                    raise self._silence_error()
                yield chunk
        if self._timed_out:
            raise self._slow_error()

    def watch(
        self, events: Iterator[Event], is_progress: Callable[[Event], bool]
    ) -> Iterator[Event]:
        """The events; progress events reset the silence timer. Raises `StreamError` for an error
        event."""
        for event in events:
            if message := event_stream.error_message(event):
                raise StreamError(
                    f"broke off with an error: {message}",
                    may_repeat=event_stream.is_retryable(event),
                )
            yield event
            # Time that the consumer takes is not the server's.
            if is_progress(event):
                self._progress_at = clock.monotonic()

    def abort(self) -> None:
        """Abort the exchange. Another thread may call this to end a read that is waiting."""
        if self._socket is not None:
            try:
                self._socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # The connection has already ended.

    def close(self) -> None:
        self._timer.cancel()
        self.abort()
        if self._response is not None:
            self._response.close()

    def _time_out(self) -> None:
        self._timed_out = True
        self.abort()

    def _trace(self, event: str, info: Mapping[str, Any]) -> None:
        """httpx trace callback: remember the socket once there is a connection."""
        if event.endswith(("connect_tcp.complete", "start_tls.complete")):
            self._socket = info["return_value"].get_extra_info("socket")

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        """Turn httpx errors after connecting into `StreamError`."""
        import httpx

        try:
            yield
        except (httpx.ReadTimeout, httpx.WriteTimeout) as error:
            raise self._silence_error() from error
        except (httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError) as error:
            if self._timed_out:
                raise self._slow_error() from error
            cause = str(error) or type(error).__name__
            is_nonsense = isinstance(error, httpx.RemoteProtocolError)
            if is_nonsense and not any(word in cause for word in ("closed", "disconnected")):
                raise StreamError(f"does not speak HTTP: {cause}") from error
            raise StreamError(f"broke the connection off: {cause}", may_repeat=True) from error

    def _silence_error(self) -> StreamError:
        return StreamError(f"was silent for {self._silence_s:g} s", hint=_TIMEOUT_HINT)

    def _slow_error(self) -> StreamError:
        return StreamError(
            f"took more than {self._silence_s * _WHOLE_FACTOR:g} s", hint=_TIMEOUT_HINT
        )
