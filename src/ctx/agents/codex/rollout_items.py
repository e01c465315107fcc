"""What the lines of a rollout contain.

A rollout has everything twice: as `response_item`, which the model saw, and as `event_msg`, which
the screen showed. ctx reads the former, which all versions write in nearly the same form:

    {"type": "response_item", "payload": {"type": "message", "role": "user", "content": […]}, …}
    {"type": "response_item", "payload": {"type": "function_call", "call_id": …, "name": …}, …}
    {"type": "response_item", "payload": {"type": "function_call_output", "call_id": …}, …}

Codex sends its own messages with the role `user` too, and the context of hooks as `developer`.
"""

import json
import os
import re
from typing import Any

from ctx.hosts.transcript_reader import message_texts

# Text that nobody typed, with the role of the user.
_NOT_TYPED = (
    *("<environment_context>", "<user_instructions>", "<permissions instructions>"),
    *("# AGENTS.md instructions", "<INSTRUCTIONS>", "<turn_aborted>", "<skill>", "<skills_"),
    *("<user_shell_command>", "<subagent_notification>", "<collaboration_mode>", "<model_switch>"),
    *("<personality_spec>", "<apps_instructions>", "<plugins_instructions>", "<hook_prompt"),
)
ABORTED = "<turn_aborted>"
# An editor puts its state above the request.
_REQUEST = re.compile(
    r"# Context from my IDE setup:.*?^## My request for Codex:\s*", re.DOTALL | re.MULTILINE
)

_EXIT = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d{1,9})$", re.MULTILINE)
_OUTPUT = "\nOutput:\n"
_LONGEST_HEADER = 600
_SUMMARY = "assist with your own analysis:"
_TAILS = (256 * 1024, 4 * 1024 * 1024)


def typed(text: str) -> str:
    """What a person typed; empty if nobody did."""
    own = text.strip()
    if own.startswith(_NOT_TYPED):
        return ""
    request = _REQUEST.match(own)
    return own[request.end() :] if request else own


def prompt_of(item: dict[str, Any]) -> str:
    """What a person typed in a message with the role of the user; empty if nobody did."""
    parts = zip(message_texts(item), _kinds(item), strict=False)
    said = (typed(text) for text, kind in parts if not kind or kind.startswith("user."))
    return "\n\n".join(filter(None, said))


def _kinds(item: dict[str, Any]) -> list[str]:
    """What each text of a message is. Older versions do not say it."""
    metadata = item.get("internal_chat_message_metadata_passthrough")
    kinds = metadata.get("content_item_kinds") if isinstance(metadata, dict) else None
    listed = kinds if isinstance(kinds, list) else []
    known = [kind if isinstance(kind, str) else "" for kind in listed]
    return known + [""] * 1_000


def summary_of(message: str) -> str:
    """The summary in a message that replaces a compacted conversation."""
    _, is_marked, summary = message.partition(_SUMMARY)
    return (summary if is_marked else message).strip()


def output_of(output: Any) -> tuple[int | None, str]:
    """The exit code of a command, if it is known, and its output."""
    text = output if isinstance(output, str) else _joined(output)
    if text.startswith("{"):
        try:
            fields = json.loads(text)
        except (ValueError, RecursionError):
            fields = None
        metadata = fields.get("metadata") if isinstance(fields, dict) else None
        if isinstance(fields, dict) and isinstance(metadata, dict):
            code = metadata.get("exit_code")
            inner = fields.get("output")
            known = code if isinstance(code, int) and not isinstance(code, bool) else None
            return known, inner if isinstance(inner, str) else ""
    header, is_marked, rest = text.partition(_OUTPUT)
    if not is_marked or len(header) > _LONGEST_HEADER:
        header, rest = text[:_LONGEST_HEADER], text
    found = _EXIT.search(header)
    return (int(found[1]) if found else None), rest


def _joined(output: Any) -> str:
    """An output that is not one text: a list of texts, or an object that contains one."""
    if isinstance(output, dict):
        content = output.get("content", output.get("output"))
        return content if isinstance(content, str) else _joined(content)
    if isinstance(output, list):
        return "\n".join(message_texts({"content": output}))
    return ""


def exit_code_of(path: str, call_id: str) -> int | None:
    """The exit code of a command that has just ended; None if the rollout does not have it."""
    mark = json.dumps(call_id).encode()
    for size in _TAILS:
        tail, is_all = _tail(path, size)
        lines = [line for line in tail.split(b"\n") if mark in line]
        for line in reversed(lines):
            code = _exit_code(line, call_id)
            if code is not None:
                return code
        # The line with the call itself is before its result.
        if lines or is_all:
            return None
    return None


def _exit_code(line: bytes, call_id: str) -> int | None:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    payload = entry.get("payload") if isinstance(entry, dict) else None
    if not isinstance(payload, dict):
        return None
    item = payload.get("item")
    if isinstance(item, dict) and item.get("id") == call_id:
        code = item.get("exit_code")
        return code if isinstance(code, int) and not isinstance(code, bool) else None
    if payload.get("call_id") == call_id and payload.get("type") == "function_call_output":
        return output_of(payload.get("output"))[0]
    return None


def _tail(path: str, size: int) -> tuple[bytes, bool]:
    """The end of a file, and whether that is all of it."""
    if not os.path.isfile(path):
        return b"", True
    try:
        with open(path, "rb") as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(0, end - size))
            return file.read(size), end <= size
    except (OSError, ValueError):
        return b"", True
