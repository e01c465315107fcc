"""A stand-in for the Chat Completions API on loopback, which answers from the script of a test.

It plays the given replies in order and keeps every request, so that a test can see what really
reached the model.
"""

import json
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, NamedTuple

from tests.e2e.claude_code.api import BEYOND_THE_SCRIPT, ModelHandler, Reply, serving_model


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


@contextmanager
def serving_chat(script: ChatScript) -> Iterator[str]:
    with serving_model(script, _ChatHandler) as address:
        yield f"{address}/v1"


class _ChatHandler(ModelHandler):
    models: ClassVar = {"object": "list", "data": [{"id": "scripted", "object": "model"}]}

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
