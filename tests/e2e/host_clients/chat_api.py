"""A stand-in for the Chat Completions API on loopback, which answers from the script of a test.

It plays the given replies in order and keeps every request, so that a test can see what really
reached the model.
"""

import json
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from tests.e2e.claude_code.api import BEYOND_THE_SCRIPT, Reply


class ChatRequest(NamedTuple):
    """One request that reached the model."""

    messages: tuple[dict[str, Any], ...]
    tools: tuple[str, ...]
    """The names of the tools it may use. Requests on the side, such as for a title, have none."""

    @property
    def text(self) -> str:
        """The whole text, including tool results."""
        return "\n\n".join(text for message in self.messages for text in _texts(message))

    def is_given(self, task: str) -> bool:
        """Whether a message of the user contains a text."""
        said = (each for each in self.messages if each["role"] == "user")
        return any(task in text for message in said for text in _texts(message))

    @property
    def results(self) -> list[str]:
        """The results of tool calls, in order."""
        return ["\n".join(_texts(each)) for each in self.messages if each["role"] == "tool"]


Answer = str | Reply | Callable[[ChatRequest], Reply]
"""A reply, or a function that makes it when the model is asked."""


class Subagent(NamedTuple):
    """What a subagent is told, and what its model answers."""

    task: str
    replies: Sequence[Answer]


class ChatScript:
    """The remaining replies and the requests so far; the threads of the server share it."""

    def __init__(
        self,
        replies: Sequence[Answer],
        subagent: Subagent | None = None,
        on_the_side: str = "A title",
    ) -> None:
        self._lock = threading.Lock()
        self._replies = list(replies)
        self._subagent = subagent
        self._to_subagent = list(subagent.replies) if subagent else []
        self._on_the_side = on_the_side
        self.requests: list[ChatRequest] = []

    @property
    def unplayed(self) -> list[Answer]:
        return [*self._replies, *self._to_subagent]

    def play(self, request: ChatRequest) -> Reply:
        with self._lock:
            if not request.tools:
                return Reply((self._on_the_side,))
            is_of_subagent = self._subagent is not None and request.is_given(self._subagent.task)
            if not is_of_subagent:
                self.requests.append(request)
            left = self._to_subagent if is_of_subagent else self._replies
            answer = left.pop(0) if left else BEYOND_THE_SCRIPT
            if isinstance(answer, str):
                return Reply((answer,))
            return answer if isinstance(answer, Reply) else answer(request)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, script: ChatScript, handler: "type[ModelHandler]") -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.script = script


@contextmanager
def serving_model(script: ChatScript, handler: "type[ModelHandler]") -> Iterator[str]:
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
def serving_chat(script: ChatScript) -> Iterator[str]:
    with serving_model(script, _ChatHandler) as address:
        yield f"{address}/v1"


class ModelHandler(BaseHTTPRequestHandler):
    """What the APIs of models have in common."""

    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: object) -> None:
        """Do not log."""

    def do_GET(self) -> None:
        self.answer_json(200, self.models())

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            self.post(urlsplit(self.path).path, body)
        except ConnectionError:
            self.close_connection = True

    def models(self) -> dict[str, Any]:
        raise NotImplementedError

    def post(self, path: str, body: Any) -> None:
        raise NotImplementedError

    def not_found(self) -> None:
        self.answer_json(404, {"error": {"message": "there is no such path", "code": 404}})

    def answer_json(self, status: int, value: dict[str, Any]) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def answer_events(self, events: Iterable[str]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        for event in events:
            self.wfile.write(f"{event}\n\n".encode())


class _ChatHandler(ModelHandler):
    def models(self) -> dict[str, Any]:
        return {"object": "list", "data": [{"id": "scripted", "object": "model"}]}

    def post(self, path: str, body: Any) -> None:
        if not path.endswith("/chat/completions"):
            self.not_found()
            return
        tools = tuple(tool["function"]["name"] for tool in body.get("tools") or ())
        reply = self.server.script.play(ChatRequest(tuple(body["messages"]), tools))
        if body.get("stream"):
            chunks = [f"data: {json.dumps(each)}" for each in _chunks(reply, body["model"])]
            self.answer_events([*chunks, "data: [DONE]"])
        else:
            self.answer_json(200, _completion(reply, body["model"]))


def _calls(reply: Reply) -> list[dict[str, Any]]:
    return [
        {
            "id": f"call_{uuid.uuid4().hex}",
            "type": "function",
            "function": {"name": tool.name, "arguments": json.dumps(tool.input)},
        }
        for tool in reply.tools
    ]


def _usage(reply: Reply) -> dict[str, int]:
    used = reply.input_tokens
    return {"prompt_tokens": used, "completion_tokens": 20, "total_tokens": used + 20}


def _completion(reply: Reply, model: str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": "\n\n".join(reply.texts) or None}
    if calls := _calls(reply):
        message["tool_calls"] = calls
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    head = {"id": f"chat_{uuid.uuid4().hex}", "object": "chat.completion", "model": model}
    return {**head, "created": 0, "choices": [choice], "usage": _usage(reply)}


def _chunks(reply: Reply, model: str) -> Iterator[dict[str, Any]]:
    head = {"id": f"chat_{uuid.uuid4().hex}", "object": "chat.completion.chunk", "model": model}

    def chunk(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return {**head, "created": 0, "choices": [choice]}

    yield chunk({"role": "assistant", "content": ""})
    for text in reply.texts:
        yield chunk({"content": text})
    for number, call in enumerate(_calls(reply)):
        yield chunk({"tool_calls": [{"index": number, **call}]})
    yield chunk({}, "tool_calls" if reply.tools else "stop")
    yield {**head, "created": 0, "choices": [], "usage": _usage(reply)}


def _texts(message: dict[str, Any]) -> list[str]:
    content = message.get("content")
    blocks: list[dict[str, Any]] = content if isinstance(content, list) else [{"text": content}]
    return [block["text"] for block in blocks if isinstance(block.get("text"), str)]
