"""The payloads of Gemini CLI's hooks, which become events of `hosts`.

A payload is stored with the names that Gemini CLI uses, without parts that no step uses. Only
`read` can fail, if a payload names no session.
"""

import os
from collections.abc import Mapping
from typing import Any

from ctx.agent_commands.markup import unescape_tags
from ctx.agents.claude_code.payloads import common_fields, heading_of
from ctx.agents.gemini import tools
from ctx.agents.gemini.hooks import EVENTS, without_context
from ctx.agents.gemini.tools import FAILURE, ToolResult
from ctx.capture.steps import ASSISTANT_MESSAGE
from ctx.hosts.events import Event, Heading, Speaker
from ctx.hosts.json_fields import fields_of, plain_text_of

NAME = "gemini"

AGENT = "agent_id"
"""The subagent that made a call: hooks do not name it, its chat does."""

NOT_TYPED = ("<session_context>", "<state_snapshot>", "System: Potential loop detected.")
"""Messages of the client with the role of the user: where it runs, the summary of a compressed chat
or what it tells a model that repeats itself."""

_PROMPT = "UserPromptSubmit"
_TOOL_EVENT = "PostToolUse"
# Commands that Gemini CLI runs itself, without the model.
_OWN_COMMANDS = frozenset(
    "about auth bug chat clear compress copy corgi directory docs editor exit extensions help hooks"
    " ide init mcp memory model permissions privacy profile quit restore resume rewind settings"
    " setup-github shells skills stats terminal-setup theme tools vim".split()
)


def read(event_id: str, name: str, at: str, payload: Mapping[str, Any]) -> Event:
    heading = heading_of(event_id, name, at, payload, EVENTS.get(name, name))
    if name != _TOOL_EVENT:
        return restore(heading._replace(tool=None, tool_use=None), payload)
    response = fields_of(payload.get("tool_response"))
    error = fields_of(response.get("error"))
    result = ToolResult(
        response.get("llmContent"), response.get("returnDisplay"), plain_text_of(error, "message")
    )
    arguments = fields_of(payload.get("tool_input"))
    return tool_event(heading, common_fields(payload), arguments, result)


def tool_event(
    heading: Heading, common: Mapping[str, Any], arguments: Mapping[str, Any], result: ToolResult
) -> Event:
    """The event of a tool call, from a hook or from a transcript."""
    tool = heading.tool or ""
    is_failed = bool(result.error) and tool != tools.SHELL
    own = heading._replace(
        name=FAILURE if is_failed else heading.name,
        tool_use=tools.tool_use(tool, arguments, result),
    )
    return restore(own, {**common, **tools.slim(tool, arguments, result)})


def restore(heading: Heading, payload: Mapping[str, Any]) -> Event:
    text, speaker = _words(heading.name, payload)
    is_call = heading.tool is not None or heading.name in (_TOOL_EVENT, FAILURE)
    response, path = payload.get("response"), tools.path_of(payload)
    return Event(
        *heading,
        payload,
        NAME,
        text,
        speaker,
        path=os.path.join(heading.folder, path) if path else "",
        call=tools.call_of(heading.tool or "", payload) if is_call else None,
        transcript=plain_text_of(payload, "transcript_path"),
        continues=payload.get("source") == "resume",
        response=response if isinstance(response, str) else None,
        is_host_command=speaker == "user" and _is_own_command(text or ""),
        agent=plain_text_of(payload, AGENT),
    )


def _words(name: str, payload: Mapping[str, Any]) -> tuple[str | None, Speaker]:
    """The text of an event, and its author."""
    if name == _PROMPT:
        text = payload.get("prompt")
        if not isinstance(text, str):
            return None, "user"
        own = without_context(text)
        return own, "host" if own.lstrip().startswith(NOT_TYPED) else "user"
    if name == ASSISTANT_MESSAGE:
        return unescape_tags(plain_text_of(payload, "text")), "agent"
    if name == "Stop":
        # It is all of the turn. The transcript has the messages one by one, and is complete.
        if os.path.isfile(plain_text_of(payload, "transcript_path").replace("\0", "")):
            return None, "agent"
        text = payload.get("prompt_response")
        return unescape_tags(text) if isinstance(text, str) else None, "agent"
    return None, ""


def _is_own_command(prompt: str) -> bool:
    words = prompt.strip()[1:].split(None, 1)
    return prompt.strip()[:1] == "/" and bool(words) and words[0] in _OWN_COMMANDS
