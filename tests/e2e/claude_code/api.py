"""A stand-in for the Messages API on loopback, which answers from the script of a test.

A client is told its address instead of the real one. It plays the given replies in order and keeps
every request, so that a test can see what really reached the model.
"""

import json
import threading
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, NamedTuple
from urllib.parse import urlsplit

BEYOND_THE_SCRIPT = "(There is nothing more to say.)"
THINKING_S = 0.15
"""A model takes a moment. A client that is answered at once writes its transcript earlier: when a
turn ends, the last message would be in it already, which it is not where people work."""


class Tool(NamedTuple):
    """A tool that the model uses."""

    name: str
    input: dict[str, Any]


class Reply(NamedTuple):
    """The answer of the model to one request: texts, then tool calls."""

    texts: tuple[str, ...]
    """Each is a separate block. Most answers have one, which a test writes as a plain `str`."""
    tools: tuple[Tool, ...] = ()
    input_tokens: int = 100
    """The reported size of the context. A client near its limit compacts."""


class Request(NamedTuple):
    """One request that reached the model."""

    messages: tuple[dict[str, Any], ...]
    tools: tuple[str, ...]
    """The names of the tools it may use. Requests on the side, such as for a title, have none."""
    of_subagent: bool

    @property
    def newest(self) -> "Request":
        """Only the messages after the last answer of the model."""
        last = max(
            (at for at, said in enumerate(self.messages) if said["role"] == "assistant"), default=-1
        )
        return self._replace(messages=self.messages[last + 1 :])

    @property
    def injected(self) -> str:
        """The text that the client added to the prompts: from hooks, skills and the client itself.

        Newer clients have messages of the system for it, older ones marked blocks in the user's.
        """
        found = [
            text
            for message in self.messages
            for text in _texts(message)
            if message["role"] == "system" or text.lstrip().startswith("<system-reminder>")
        ]
        return "\n\n".join(found)

    def injected_at(self, event: str) -> str:
        """The text from the hooks of an event, found by the introduction of the client.

        Its end has no mark: it ends at the text of another hook or of the client.
        """
        _, introduction, text = self.injected.partition(f"{event} hook additional context: ")
        return text.split(" hook additional context: ")[0] if introduction else ""

    @property
    def text(self) -> str:
        """The whole text, including tool results."""
        return "\n\n".join(text for message in self.messages for text in _texts(message))


class Script:
    """The remaining replies and the requests so far; the threads of the server share it."""

    def __init__(self, replies: Sequence[str | Reply], to_subagents: Sequence[str | Reply]) -> None:
        self._replies = list(replies)
        self._to_subagents = list(to_subagents)
        self._lock = threading.Lock()
        self.requests: list[Request] = []

    def play(self, request: Request) -> Reply:
        with self._lock:
            self.requests.append(request)
            if not request.tools:
                return Reply(("A title",))
            left = self._to_subagents if request.of_subagent else self._replies
            reply = left.pop(0) if left else BEYOND_THE_SCRIPT
        time.sleep(THINKING_S)
        return Reply((reply,)) if isinstance(reply, str) else reply

    @property
    def unplayed(self) -> list[str | Reply]:
        return [*self._replies, *self._to_subagents]


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, script: Any, handler: "type[ModelHandler]") -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.script = script


@contextmanager
def serving_model(script: Any, handler: "type[ModelHandler]") -> Iterator[str]:
    """The address of the server that plays the script."""
    with _Server(script, handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def serving(script: Script) -> Iterator[str]:
    with serving_model(script, _Handler) as address:
        yield address


class ModelHandler(BaseHTTPRequestHandler):
    """What the APIs of models have in common."""

    protocol_version = "HTTP/1.1"
    server: _Server
    models: ClassVar[dict[str, Any]] = {}

    def log_message(self, format: str, *args: object) -> None:
        """Do not log."""

    def do_HEAD(self) -> None:
        self.answer_json(200, {})

    def do_GET(self) -> None:
        if self.models:
            self.answer_json(200, self.models)
        else:
            self.not_found()

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            self.post(urlsplit(self.path).path, body)
        except ConnectionError:
            self.close_connection = True

    def post(self, path: str, body: Any) -> None:
        raise NotImplementedError

    def not_found(self) -> None:
        error = {"type": "not_found_error", "message": "there is no such path", "code": 404}
        self.answer_json(404, {"type": "error", "error": error})

    def answer_json(self, status: int, value: dict[str, Any]) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def answer_events(self, events: Iterable[str]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        for event in events:
            self.wfile.write(f"{event}\n\n".encode())


class _Handler(ModelHandler):
    def post(self, path: str, body: Any) -> None:
        if path == "/v1/messages/count_tokens":
            self.answer_json(200, {"input_tokens": 100})
        elif path == "/v1/messages":
            tools = tuple(tool.get("name", "") for tool in body.get("tools") or ())
            of_subagent = "x-claude-code-agent-id" in self.headers
            request = Request(tuple(body["messages"]), tools, of_subagent)
            message = _message(self.server.script.play(request), body["model"])
            if body.get("stream"):
                self.answer_events(
                    f"event: {event['type']}\ndata: {json.dumps(event)}"
                    for event in _events(message)
                )
            else:
                self.answer_json(200, message)
        else:
            self.not_found()


def _message(reply: Reply, model: str) -> dict[str, Any]:
    # Ids are unique among all servers: what a reply asks for is known by the id of its message.
    blocks: list[dict[str, Any]] = [{"type": "text", "text": text} for text in reply.texts]
    blocks += [
        {"type": "tool_use", "id": f"toolu_{uuid.uuid4().hex}", **tool._asdict()}
        for tool in reply.tools
    ]
    return {
        "id": f"msg_{uuid.uuid4().hex}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": blocks,
        "stop_reason": "tool_use" if reply.tools else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": reply.input_tokens, "output_tokens": 20},
    }


def _events(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The server-sent events of a message."""
    yield {
        "type": "message_start",
        "message": {**message, "content": [], "stop_reason": None},
    }
    for index, block in enumerate(message["content"]):
        if block["type"] == "text":
            empty: dict[str, Any] = {"text": ""}
            delta = {"type": "text_delta", "text": block["text"]}
        else:
            empty = {"input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield {"type": "content_block_start", "index": index, "content_block": {**block, **empty}}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": message["stop_reason"], "stop_sequence": None},
        "usage": message["usage"],
    }
    yield {"type": "message_stop"}


def _texts(message: dict[str, Any]) -> Iterator[str]:
    """The texts of a message, whose content is one or a list of blocks."""
    content = message["content"]
    if isinstance(content, str):
        yield content
        return
    for block in content:
        if block["type"] == "text":
            yield block["text"]
        elif block["type"] == "tool_result":
            yield from _texts(block)
