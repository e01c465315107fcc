"""The messages of Claude, read from a transcript.

A message of the assistant consists of several lines with the same `message.id`, one for each block
of its content. There are many other types of lines in between:

    {"type": "user", "message": {"content": "Do it"}}                                   a prompt
    {"type": "assistant", "message": {"id": "msg_1", "content": [{"type": "thinking", …}]}}
    {"type": "assistant", "message": {"id": "msg_1", "content": [{"type": "text", …}]}}
    {"type": "user", "message": {"content": [{"type": "tool_result", …}]}}              no prompt
    {"type": "assistant", "message": {"content": "As it once was written"}}
"""

from typing import Any

from ctx.hosts.transcripts import storable
from ctx.hosts.turn_lines import TurnEntry, TurnLines


def _may_matter(line: bytes) -> bool:
    return b'"assistant"' in line or (b'"user"' in line and b'"tool_result"' not in line)


def is_error(entry: Any) -> bool:
    """Whether the client wrote this message itself because the model failed."""
    if not isinstance(entry, dict) or entry.get("type") != "assistant":
        return False
    message = entry.get("message")
    is_synthetic = isinstance(message, dict) and message.get("model") == "<synthetic>"
    return is_synthetic or bool(entry.get("isApiErrorMessage"))


def _read(entry: Any, offset: int) -> TurnEntry | None:
    """The content of a line; None if it is not relevant."""
    if not isinstance(entry, dict) or entry.get("isSidechain") or entry.get("isMeta"):
        return None
    message = entry.get("message")
    if not isinstance(message, dict):
        return None
    texts = _texts(entry)
    name = str(entry.get("uuid") or offset)
    match entry.get("type"):
        case "assistant":
            return TurnEntry(str(message.get("id") or name), name, texts)
        case "user" if texts and not entry.get("isCompactSummary") and not _is_result(message):
            return TurnEntry(None, name)
        case _:
            return None


def _texts(entry: dict[str, Any]) -> tuple[str, ...]:
    message = entry.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
    return tuple(text for block in blocks if (text := _text(block)))


def _text(block: Any) -> str:
    """The text of a block of content; empty if it has none."""
    if not isinstance(block, dict) or block.get("type") != "text":
        return ""
    text = block.get("text")
    return storable(text) if isinstance(text, str) and text.strip() else ""


def _is_result(message: dict[str, Any]) -> bool:
    blocks = message.get("content")
    return isinstance(blocks, list) and any(
        isinstance(block, dict) and block.get("type") == "tool_result" for block in blocks
    )


LINES = TurnLines(_may_matter, _read, lambda entry: _texts(entry) if is_error(entry) else None)
since = LINES.since
last_turn = LINES.last_turn
