"""A stand-in for the Gemini API on loopback, which answers from the script of a test."""

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from tests.e2e.claude_code.api import ModelHandler, Reply, serving_model
from tests.e2e.host_clients.chat_api import ChatRequest, ChatScript


@contextmanager
def serving_gemini(script: ChatScript) -> Iterator[str]:
    with serving_model(script, _GeminiHandler) as address:
        yield address


class _GeminiHandler(ModelHandler):
    models: ClassVar = {"models": []}

    def post(self, path: str, body: Any) -> None:
        verb = path.rpartition(":")[2]
        if verb == "countTokens":
            self.answer_json(200, {"totalTokens": 100})
            return
        if verb not in ("generateContent", "streamGenerateContent"):
            self.not_found()
            return
        declared = [each.get("functionDeclarations", ()) for each in body.get("tools") or ()]
        tools = tuple(tool["name"] for each in declared for tool in each)
        contents = [*body["contents"], body.get("systemInstruction", {})]
        messages = tuple(message for content in contents for message in _messages(content))
        answer = _answer(self.server.script.play(ChatRequest(messages, tools)))
        if verb == "generateContent":
            self.answer_json(200, answer)
        else:
            self.answer_events([f"data: {json.dumps(answer)}"])


def _messages(content: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A content of a request as chat messages."""
    for part in content.get("parts", ()):
        if "functionResponse" in part:
            response = part["functionResponse"]["response"]
            yield {"role": "tool", "content": str(response.get("output", response))}
        elif "text" in part:
            yield {"role": content.get("role", "user"), "content": part["text"]}


def _answer(reply: Reply) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"text": text} for text in reply.texts]
    parts += [
        {"functionCall": {"id": uuid.uuid4().hex, "name": tool.name, "args": tool.input}}
        for tool in reply.tools
    ]
    used = reply.input_tokens
    return {
        "candidates": [
            {"index": 0, "finishReason": "STOP", "content": {"role": "model", "parts": parts}}
        ],
        "usageMetadata": {"promptTokenCount": used, "totalTokenCount": used + 20},
        "modelVersion": "scripted",
        "responseId": uuid.uuid4().hex,
    }
