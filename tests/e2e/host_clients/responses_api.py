"""A stand-in for the Responses API on loopback, which answers from the script of a test.

A tool whose input is only `{"text": …}` is called as Codex calls those with free text. A dot in the
name of a tool separates it from the namespace of its server.
"""

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from tests.e2e.claude_code.api import ModelHandler, Reply, Tool, serving_model
from tests.e2e.host_clients.chat_api import ChatRequest, ChatScript


@contextmanager
def serving_responses(script: ChatScript) -> Iterator[str]:
    with serving_model(script, _ResponsesHandler) as address:
        yield f"{address}/v1"


class _ResponsesHandler(ModelHandler):
    models: ClassVar = {"object": "list", "data": [], "models": []}

    def post(self, path: str, body: Any) -> None:
        if not path.endswith("/responses"):
            self.not_found()
            return
        tools = tuple(tool.get("name", tool["type"]) for tool in body.get("tools") or ())
        messages = tuple(map(_message, body["input"]))
        reply = self.server.script.play(ChatRequest(messages, tools))
        self.answer_events(
            f"event: {event['type']}\ndata: {json.dumps(event)}"
            for event in _events(reply, body["model"])
        )


def _message(item: dict[str, Any]) -> dict[str, Any]:
    """An item of a request as a chat message."""
    if "output" in item:
        return {"role": "tool", "content": item["output"]}
    return {"role": item.get("role", "assistant"), "content": item.get("content")}


def _items(reply: Reply) -> list[dict[str, Any]]:
    said = [
        {
            "type": "message",
            "id": f"msg_{uuid.uuid4().hex}",
            "role": "assistant",
            "content": [{"type": "output_text", "text": text, "annotations": []}],
        }
        for text in reply.texts
    ]
    return [*said, *map(_call, reply.tools)]


def _call(tool: Tool) -> dict[str, Any]:
    known = {"id": f"call_{uuid.uuid4().hex}", "call_id": f"call_{uuid.uuid4().hex}"}
    if tool.input.keys() == {"text"}:
        text = tool.input["text"]
        return {"type": "custom_tool_call", **known, "name": tool.name, "input": text}
    namespace, _, name = tool.name.rpartition(".")
    named = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"type": "function_call", **known, **named, "arguments": json.dumps(tool.input)}


def _events(reply: Reply, model: str) -> Iterator[dict[str, Any]]:
    base = {"id": f"resp_{uuid.uuid4().hex}", "object": "response", "model": model, "output": []}
    yield {"type": "response.created", "response": {**base, "status": "in_progress"}}
    items = _items(reply)
    for number, item in enumerate(items):
        place = {"output_index": number}
        yield {"type": "response.output_item.added", **place, "item": item}
        yield {
            "type": "response.output_item.done",
            **place,
            "item": {**item, "status": "completed"},
        }
    used = reply.input_tokens
    usage = {"input_tokens": used, "output_tokens": 20, "total_tokens": used + 20}
    whole = {**base, "status": "completed", "output": items, "usage": usage}
    yield {"type": "response.completed", "response": whole}
