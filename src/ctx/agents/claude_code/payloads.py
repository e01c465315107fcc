"""The payloads of Claude Code's hooks, which become events of `hosts`, and the answers.

A payload is stored with the client's own keys, as version 0.1.0 stored it, without parts that no
step uses: the content of read files is dropped, and that of written files is stored in one shape
(`tools`). Only `read` can fail, if a payload names no session.
"""

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from ctx.agents import stored_events
from ctx.agents.claude_code import tools, transcripts
from ctx.capture import injected_text, private_text, written_lines
from ctx.capture.steps import ASSISTANT_MESSAGE, RECAP, TITLE
from ctx.errors import ContentRefused
from ctx.hosts.events import Event, Heading, Speaker
from ctx.hosts.json_fields import fields_of, plain_text_of, text_of

NAME = "claude-code"

_PROMPT = "UserPromptSubmit"
_TOOL_EVENTS = ("PostToolUse", tools.FAILURE)
_MESSAGE_EVENTS = ("Stop", ASSISTANT_MESSAGE, "SubagentStop")
_READ_FIELDS = ("filePath", "numLines", "startLine", "totalLines")
# The keys that identify the session of an excluded event, in this host and in those like it.
_COMMON = frozenset(
    "session_id transcript_path cwd hook_event_name prompt_id turn_id agent_id agent_type source"
    " reason trigger timestamp tool_name tool_use_id originator cli_version".split()
)
# Text that the client writes in place of a prompt.
_NOTICES = (
    *("<task-notification>", "<local-command-", "<command-", "<bash-", "Stop hook feedback:"),
    *("Caveat: The messages below", "[Request interrupted"),
    *("This session is being continued from a previous conversation", "<teammate-message"),
)
_CLIENT_COMMANDS = frozenset(
    "add-dir agents bug clear compact config context copy cost doctor exit export fast feedback"
    " help hooks ide keybindings login logout mcp memory model output-style permissions plugin"
    " plugins privacy-settings quit release-notes rename resume rewind status statusline stats"
    " tasks terminal-setup theme todos upgrade usage vim".split()
)


class ClaudeOutput(NamedTuple):
    hookEventName: str  # noqa: N815 - as the client calls it
    additionalContext: str  # noqa: N815
    """The text for the agent."""


class ClaudeAnswer(NamedTuple):
    """What a hook prints for the client: nothing or `{}` if there is no answer."""

    hookSpecificOutput: ClaudeOutput | None  # noqa: N815
    systemMessage: str | None  # noqa: N815
    """A line for the user."""


def read(event_id: str, name: str, at: str, payload: Mapping[str, Any]) -> Event:
    heading = heading_of(event_id, name, at, payload)
    return restore(heading, without_contents(payload, heading.tool))


# For this host, and for those that copied its payloads.


def heading_of(
    event_id: str, name: str, at: str, payload: Mapping[str, Any], own_name: str = ""
) -> Heading:
    """The columns of an event, which the host may call otherwise."""
    if payload.get("hook_event_name", own_name or name) != (own_name or name):
        raise ContentRefused(f"It is a different event than {own_name or name}.")
    fields = "session_id", "cwd", "tool_name", "tool_use_id"
    session, folder, tool, tool_use = (plain_text_of(payload, field) for field in fields)
    return stored_events.heading(event_id, name, at, session, folder, tool, tool_use)


def sample(event: str, folder: str, **more: Any) -> dict[str, Any]:
    """The payload of a made-up session in a folder, to try a hook."""
    return {
        "session_id": "ctx-install-check",
        "transcript_path": os.path.join(folder, "ctx-install-check.jsonl"),
        "cwd": folder,
        "hook_event_name": event,
        "source": "startup",
        "reason": "other",
        "trigger": "manual",
        "prompt": "",
        "stop_hook_active": False,
        **more,
    }


def common_fields(payload: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in payload.items() if name in _COMMON}


def outline(event: Event, path: str) -> Mapping[str, Any]:
    """The payload of an event without content: only that it happened, and to which file."""
    common = common_fields(event.payload)
    return {**common, "tool_input": {"file_path": path}} if path else common


def restore(heading: Heading, payload: Mapping[str, Any]) -> Event:
    name, tool = heading.name, heading.tool
    is_call = tool is not None or name in _TOOL_EVENTS
    text, speaker = _words(name, payload)
    agent, source = payload.get("agent_id"), payload.get("source")
    response = payload.get("response")
    return Event(
        *heading,
        payload,
        NAME,
        text,
        speaker,
        agent=agent if isinstance(agent, str) else "",
        path=tools.path_of(payload),
        call=tools.call_of(name, tool or "", payload) if is_call else None,
        transcript=text_of(payload, "transcript_path"),
        branch=text_of(payload, "gitBranch"),
        caller=text_of(payload, "entrypoint"),
        version=text_of(payload, "version"),
        continues=source in ("resume", "compact"),
        prompt=str(payload.get("prompt_id", "")),
        response=response if isinstance(response, str) else None,
        team=text_of(payload, "team_name") or transcripts.team_started_by(tool, payload),
        teammate=text_of(payload, "agent_name"),
        lead=text_of(payload, "lead_session"),
        is_host_command=speaker == "user" and _is_client_command(text or ""),
    )


def without_contents(payload: Mapping[str, Any], tool: str | None) -> Mapping[str, Any]:
    """A payload without the parts that no step uses."""
    path = tools.path_of(payload)
    if tool == "Read":
        fields = fields_of(fields_of(payload.get("tool_response")).get("file"))
        kept = {name: fields[name] for name in _READ_FIELDS if name in fields}
        slim = {name: value for name, value in payload.items() if name != "tool_output"}
        return {**slim, "tool_response": {"file": kept}}
    if tool in tools.WRITERS and (contents := tools.written_contents(payload)):
        contents = written_lines.without_secrets(path, contents)
        name = "notebook_path" if tool == "NotebookEdit" else "file_path"
        slim = {name: value for name, value in payload.items() if name != "tool_output"}
        response = {written_lines.KEPT: written_lines.as_kept(contents)}
        return {**slim, "tool_input": {name: path}, "tool_response": response}
    return payload


def _words(name: str, payload: Mapping[str, Any]) -> tuple[str | None, Speaker]:
    """The text of an event, and its author."""
    if name == _PROMPT:
        text = payload.get("prompt")
        if not isinstance(text, str):
            return None, "user"
        return text, "host" if _own_words(text).startswith(_NOTICES) else "user"
    if name in _MESSAGE_EVENTS:
        text = payload.get("text", payload.get("last_assistant_message"))
        # Without a type, it is the client's own summary of a conversation.
        is_client = name == "SubagentStop" and payload.get("agent_type") == ""
        return text if isinstance(text, str) else None, "host" if is_client else "agent"
    if name == RECAP:
        return _recap(plain_text_of(payload, "text")), "agent"
    if name == TITLE:
        is_by_user = payload.get("titled_by") == "user"
        return plain_text_of(payload, "text"), "user" if is_by_user else "agent"
    return None, ""


def _recap(text: str) -> str:
    """The summary itself, without the client's instructions to the model."""
    _, is_marked, summary = text.partition("\nSummary:")
    return (summary if is_marked else text).partition("\nIf you need specific details from")[0]


def _is_client_command(prompt: str) -> bool:
    """Whether the client runs a prompt itself, without the model."""
    if "/" not in prompt:
        return False
    text = _own_words(prompt)
    words = text[1:].split(None, 1)
    return text[:1] == "/" and bool(words) and words[0] in _CLIENT_COMMANDS


def _own_words(text: str) -> str:
    return injected_text.without_injected(private_text.without_private(text)).strip()
