"""Where Codex stores transcripts, which it calls rollouts, and what their lines contain.

sessions/2026/11/16/rollout-2026-11-16T03-40-31-<session>.jsonl
archived_sessions/rollout-2026-11-16T03-40-31-<session>.jsonl

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
from collections.abc import Mapping
from typing import Any, NamedTuple

from ctx import disk
from ctx.agents.line_transcripts import files_below, first_bytes, start_in
from ctx.hosts.json_fields import fields_of, parsed, plain_text_of, string_in
from ctx.hosts.transcript_reader import message_texts

_MOST_KNOWN = 10_000
SESSIONS = "sessions"
DEPTH = 3
_NAME = re.compile(
    r"rollout-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.jsonl"
)
_BRANCH = re.compile(rb'"branch"\s{0,4}:\s{0,4}("(?:[^"\\]|\\.){1,256}")')
_INSTRUCTIONS = re.compile(rb',\s?"base_instructions"\s?:')


def folder_of(path: str) -> str:
    """The folder with all sessions, which has a folder for each day."""
    folder = os.path.dirname(path)
    for _ in range(DEPTH):
        if os.path.basename(folder) == SESSIONS:
            break
        folder = os.path.dirname(folder)
    return folder if os.path.basename(folder) == SESSIONS else os.path.dirname(path)


def session_of(path: str) -> str:
    """The session of a rollout; empty if it is none, or that of a subagent."""
    thread = thread_of(path)
    return thread if thread and not origin(path).agent else ""


def thread_of(path: str) -> str:
    name = _NAME.fullmatch(os.path.basename(path))
    return name[1] if name else ""


def of_subagents(path: str, since_ms: int) -> list[str]:
    """The rollouts of a session's subagents that changed since a time.

    They are in the folder of the same day or of a later one.
    """
    session, day = session_of(path), os.path.dirname(path)
    root = folder_of(path)
    days = [
        os.path.join(root, *parts)
        for parts in _days(root)
        if session and os.path.join(root, *parts) >= day
    ]
    found = [
        each
        for folder in days or [day]
        for each in files_below(folder, 0, thread_of)
        if session and each != path and _changed_ms(each) >= since_ms
    ]
    return [each for each in found if origin(each).agent and origin(each).session == session]


def _days(root: str) -> list[tuple[str, ...]]:
    days: list[tuple[str, ...]] = [()]
    for _ in range(DEPTH):
        days = [
            (*day, name)
            for day in days
            for name in disk.names(os.path.join(root, *day))
            if name.isdecimal()
        ]
    return days


def _changed_ms(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns // 1_000_000
    except OSError:
        return 0


class Origin(NamedTuple):
    """What the first line of a rollout says about what started it."""

    session: str = ""
    """The session of the main thread."""
    agent: str = ""
    """The thread itself, if it is that of a subagent."""
    caller: str = ""
    version: str = ""

    is_forked: bool = False
    """Whether it begins with a copy of the conversation that started it."""


_UNKNOWN = Origin()
_origins: dict[str, Origin] = {}
"""The origins by path. The first line of a rollout does not change."""


def origin(path: str) -> Origin:
    """What started a thread; one without a rollout has none yet."""
    if path in _origins:
        return _origins[path]
    thread = thread_of(path)
    try:
        line, is_whole, _ = first_bytes(path).partition(b"\n")
    except OSError:
        return _UNKNOWN
    if not thread or not line:
        return _UNKNOWN
    found = _origin_in(thread, _first_fields(line))
    if is_whole:
        if len(_origins) >= _MOST_KNOWN:
            _origins.clear()
        _origins[path] = found
    return found


def _origin_in(thread: str, meta: Mapping[str, Any]) -> Origin:
    source = meta.get("source")
    spawned = source.get("subagent") if isinstance(source, dict) else None
    kind = plain_text_of(meta, "thread_source")
    if spawned is None and kind in ("", "user"):
        caller = plain_text_of(meta, "originator")
        caller = "mcp" if source == "mcp" else caller
        return Origin(thread, "", caller, plain_text_of(meta, "cli_version"))
    parent = plain_text_of(fields_of(fields_of(spawned).get("thread_spawn")), "parent_thread_id")
    session = plain_text_of(meta, "session_id")
    named = session if session != thread else ""
    lead = named or plain_text_of(meta, "parent_thread_id") or parent or thread
    version, is_forked = plain_text_of(meta, "cli_version"), bool(meta.get("forked_from_id"))
    return Origin(lead, thread, "", version, is_forked)


def _first_fields(line: bytes) -> Mapping[str, Any]:
    """The fields of the first line, without the instructions, which may be longer than what is
    read and come last."""
    entry = parsed(line)
    if entry is None and (cut := _INSTRUCTIONS.search(line)):
        entry = parsed(line[: cut.start()] + b"}}")
    fields = fields_of(entry)
    return fields_of(fields.get("payload")) if fields.get("type") == "session_meta" else {}


def place(path: str) -> tuple[str, str]:
    """The folder and the branch in which a session began; empty if unknown."""
    try:
        start = first_bytes(path)
    except OSError:
        return "", ""
    branch = _BRANCH.search(start.partition(b"\n")[0])
    return start_in(start).folder, string_in(branch[1]) if branch else ""


# The lines

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
        fields = fields_of(parsed(text))
        metadata = fields.get("metadata")
        if isinstance(metadata, dict):
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
    payload = fields_of(fields_of(parsed(line)).get("payload"))
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
