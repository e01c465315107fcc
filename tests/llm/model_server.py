"""A server for tests, on this machine: it has the protocols of models and fails on request.

    with serving.serve() as server:
        server.plan(Status(429, headers={"Retry-After": "0"}), Says("Hello", " there"))
        …                        # whatever asks `server.url`
        assert [each.path for each in server.received] == …
        assert server.spent <= …

Each POST to a model takes the next step of the plan; when there is none left, `server.otherwise`. A
step may also be a function from the request to a step. The protocol of an answer is that of the
path of the request: `/v1/chat/completions`, `/v1/messages`, `/completion`. Everything else is
looked up in `server.pages`, under `GET /health`: a JSON value or a `Status`, or a function from
the request to one.

The server counts what it used as a service would: the prompt when it begins to work on it, each
piece when it is sent, a token for each byte of the prompt (no tokenizer makes more of it), and a
token for each piece. Refusals (4xx but 408) use nothing.
"""

import json
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from typing import Any, NamedTuple, Protocol

from tests.llm.protocols import MODEL, PROTOCOLS

_LONGEST_S = 120.0
"""Nothing here outlives that, also where a test fails."""


class ServerRequest(NamedTuple):
    method: str
    path: str
    headers: Mapping[str, str]
    body: Any
    """As JSON; None where there was none."""
    size: int
    """Bytes of the body."""

    @property
    def prompt(self) -> str:
        """Everything that a model reads, in any protocol."""
        body = self.body if isinstance(self.body, dict) else {}
        asked = body.get("prompt")
        if isinstance(asked, list):
            # Tokens, of which each is a byte here: see `POST /tokenize`.
            asked = bytes(asked).decode("utf-8", "replace")
        return "".join(_texts([body.get("system"), body.get("messages"), asked]))

    @property
    def max_tokens(self) -> int:
        names = ("max_tokens", "max_completion_tokens", "n_predict")
        return next((int(self.body[name]) for name in names if name in self.body), 1_000_000)

    @property
    def wants_usage(self) -> bool:
        """Whether a server reports its usage; with the OpenAI protocol, only on request."""
        options = self.body.get("stream_options") or {}
        return not self.path.endswith("/chat/completions") or bool(options.get("include_usage"))


class Step(Protocol):
    def play(self, call: "ServedCall") -> None: ...


Planned = Step | Callable[[ServerRequest], Step]


class Says:
    """A valid answer. It ends at `max_tokens` pieces."""

    def __init__(self, *pieces: str, stop: str = "end", tells_usage: bool = True) -> None:
        """`stop`: end, length or refused."""
        self.pieces = pieces
        self.stop = stop
        self.tells_usage = tells_usage

    def play(self, call: "ServedCall") -> None:
        call.head("text/event-stream")
        for part in self.parts(call):
            call.chunk(part)
        call.chunk(b"")

    def parts(self, call: "ServedCall") -> Iterator[bytes]:
        """Each event; its usage is counted just before it is sent."""
        call.spend_prompt()
        pieces = self.pieces[: call.request.max_tokens]
        stop = self.stop if len(pieces) == len(self.pieces) else "length"
        protocol = PROTOCOLS[_protocol(call.request)]
        yield from protocol.begin(call.prompt_tokens)
        for each in pieces:
            call.spend(1)
            yield protocol.piece(each)
        used = (call.prompt_tokens, len(pieces))
        yield from protocol.end(
            stop, used if self.tells_usage and call.request.wants_usage else None
        )


class Whole:
    """The answer as one JSON object, by a server that does not stream. OpenAI's protocol only."""

    def __init__(self, text: str) -> None:
        self.text = text

    def play(self, call: "ServedCall") -> None:
        call.spend_prompt()
        call.spend(1)
        message = {"role": "assistant", "content": self.text}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": call.prompt_tokens, "completion_tokens": 1}
        value = {"model": MODEL, "choices": [choice], "usage": usage}
        call.body("application/json", json.dumps(value).encode())


class Status:
    """A refusal. One of 408 and 5xx comes when the prompt was already read."""

    def __init__(
        self, status: int, body: Any = "", headers: Mapping[str, str] | None = None
    ) -> None:
        self.status = status
        self.text = body if isinstance(body, str) else json.dumps(body)
        self.headers = dict(headers or {})

    def play(self, call: "ServedCall") -> None:
        if self.status == 408 or self.status >= 500:
            call.spend_prompt()
        call.body("application/json", self.text.encode(), self.status, self.headers)


class Body:
    """Any bytes, as an answer with status 200."""

    def __init__(
        self, content: bytes, content_type: str = "application/json", encoding: str = ""
    ) -> None:
        self.content = content
        self.content_type = content_type
        self.encoding = encoding

    def play(self, call: "ServedCall") -> None:
        call.spend_prompt()
        headers = {"Content-Encoding": self.encoding} if self.encoding else {}
        call.body(self.content_type, self.content, 200, headers)


class Cut:
    """A valid answer whose connection breaks after some bytes of the body."""

    def __init__(self, answer: Says, size: int) -> None:
        self.answer = answer
        self.size = size

    def play(self, call: "ServedCall") -> None:
        call.head("text/event-stream")
        left = self.size
        for part in self.answer.parts(call):
            if left <= 0:
                break
            call.chunk(part[:left])
            left -= len(part)
        call.reset()


class Drops:
    """Reads the question and closes the connection without an answer."""

    def play(self, call: "ServedCall") -> None:
        call.spend_prompt()
        call.reset()


class Hangs:
    """Sends a few pieces or none, and then hangs."""

    def __init__(self, *pieces: str) -> None:
        self.pieces = pieces

    def play(self, call: "ServedCall") -> None:
        if self.pieces:
            call.head("text/event-stream")
            for part in list(Says(*self.pieces).parts(call))[: len(self.pieces) + 1]:
                call.chunk(part)
        else:
            call.spend_prompt()
        call.wait(_LONGEST_S)


class Drips:
    """Sends the same bytes repeatedly, until the client leaves."""

    def __init__(
        self, piece: bytes, every_s: float, head: bytes = b"", times: int = 10_000
    ) -> None:
        """With `head`, that is sent raw instead of the lines of HTTP."""
        self.piece = piece
        self.every_s = every_s
        self.raw_head = head
        self.times = times

    def play(self, call: "ServedCall") -> None:
        call.spend_prompt()
        if self.raw_head:
            call.raw(self.raw_head)
        else:
            call.head("text/event-stream")
        for _ in range(self.times):
            if self.raw_head:
                call.raw(self.piece)
            else:
                call.chunk(self.piece)
            if call.wait(self.every_s):
                return


class Raw:
    """Raw bytes on the connection."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    def play(self, call: "ServedCall") -> None:
        call.spend_prompt()
        call.raw(self.content)


class ServedCall:
    """One request that a step answers."""

    def __init__(self, server: "Server", connection: socket.socket, request: ServerRequest) -> None:
        self.server = server
        self.request = request
        self.prompt_tokens = len(request.prompt.encode("utf-8", "replace"))
        self._connection = connection

    def spend_prompt(self) -> None:
        self.spend(self.prompt_tokens)

    def spend(self, tokens: int) -> None:
        self.server.spend(tokens)

    def wait(self, seconds: float) -> bool:
        """Whether the server is to end. Comes back early when the other side has gone."""
        self._connection.settimeout(seconds)
        try:
            if not self._connection.recv(1):
                return True
        except (TimeoutError, BlockingIOError):
            pass
        return self.server.is_over.is_set()

    def raw(self, content: bytes) -> None:
        self._connection.settimeout(_LONGEST_S)
        self._connection.sendall(content)

    def head(self, content_type: str) -> None:
        self.raw(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n"
            + f"Content-Type: {content_type}\r\n\r\n".encode()
        )

    def chunk(self, part: bytes) -> None:
        self.raw(b"%x\r\n%b\r\n" % (len(part), part))

    def body(
        self,
        content_type: str,
        content: bytes,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        given = {"Content-Type": content_type, "Content-Length": str(len(content))}
        given |= {"Connection": "close", **(headers or {})}
        lines = [f"HTTP/1.1 {status} Told", *(f"{name}: {value}" for name, value in given.items())]
        self.raw("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + content)

    def linger(self) -> None:
        """Close the sending side, and let the client read everything before the connection ends."""
        self._connection.shutdown(socket.SHUT_WR)
        self._connection.settimeout(_LONGEST_S)
        while self._connection.recv(65_536):
            pass

    def reset(self) -> None:
        """Reset the connection, as a killed process does."""
        linger = (1).to_bytes(4, "little") + (0).to_bytes(4, "little")
        self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self._connection.close()


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.received: list[ServerRequest] = []
        self.spent = 0
        self.otherwise: Planned = Says("Hello", ", ", "you", ".")
        self.pages: dict[str, Any] = dict(_PAGES)
        self.is_over = Event()
        self._plan: list[Planned] = []
        self._lock = Lock()

    def plan(self, *steps: Planned) -> None:
        with self._lock:
            self._plan += steps

    @property
    def questions(self) -> list[ServerRequest]:
        """The requests to a model, without those for pages."""
        return [request for request in self.received if is_question(request)]

    def spend(self, tokens: int) -> None:
        with self._lock:
            self.spent += tokens

    def next_step(self, request: ServerRequest) -> Step:
        with self._lock:
            planned = self._plan.pop(0) if self._plan else self.otherwise
        return planned(request) if callable(planned) else planned

    def note(self, request: ServerRequest) -> None:
        with self._lock:
            self.received.append(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that leave are part of the tests."""


@contextmanager
def serve() -> Iterator[Server]:
    server = Server()
    thread = Thread(target=server.serve_forever, args=(0.005,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.is_over.set()
        server.shutdown()
        server.server_close()
        thread.join(_LONGEST_S)


def closed_url() -> str:
    """An address without a server."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{listener.getsockname()[1]}"


def is_question(request: ServerRequest) -> bool:
    return request.method == "POST" and bool(_protocol(request))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""

    def _answer(self) -> None:
        self.close_connection = True
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = json.loads(content) if content else None
        request = ServerRequest(self.command, self.path, headers, body, len(content))
        self.server.note(request)
        call = ServedCall(self.server, self.connection, request)
        try:
            if is_question(request):
                self.server.next_step(request).play(call)
            else:
                self._page(call)
            call.linger()
        except OSError:
            pass  # The other side has gone.

    def _page(self, call: ServedCall) -> None:
        request = call.request
        known = self.server.pages
        page = known.get(f"{request.method} {request.path}")
        if page is None:
            call.body("application/json", b'{"error":{"message":"no such page"}}', 404)
            return
        value = page(request) if callable(page) else page
        if isinstance(value, Status):
            value.play(call)
        else:
            call.body("application/json", json.dumps(value).encode())


_PAGES: dict[str, Any] = {
    "GET /health": {"status": "ok"},
    "GET /props": {
        "default_generation_settings": {"n_ctx": 32_768},
        "total_slots": 1,
        "model_path": f"/models/{MODEL}.gguf",
        "build_info": "b1-scripted",
    },
    "GET /slots": [{"id": 0, "n_ctx": 32_768, "is_processing": False}],
    "POST /tokenize": lambda request: {"tokens": list(request.body["content"].encode())},
    "GET /v1/models": {"object": "list", "data": [{"id": MODEL, "object": "model"}]},
    f"GET /v1/models/{MODEL}": {"id": MODEL, "type": "model", "display_name": "Scripted"},
}


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)
    elif isinstance(value, dict):
        yield from _texts(value.get("content", value.get("text")))


def _protocol(request: ServerRequest) -> str:
    path = request.path.partition("?")[0]
    return next((end for end in PROTOCOLS if path.endswith(end)), "")
