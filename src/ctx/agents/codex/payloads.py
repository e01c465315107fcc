"""The payloads of Codex's hooks, which become events of `hosts`.

A payload is stored with the names that Codex uses. A patch becomes one event for each file, and
none of them contains the patch. The exit code of a command is not in the payload, so it is read
from the transcript, which has it before the hook runs. Only `read` can fail, if a payload names no
session.
"""

import os
from collections.abc import Mapping
from typing import Any

from ctx.agents.claude_code.payloads import common_fields, heading_of
from ctx.agents.codex import rollouts, tools
from ctx.agents.codex.rollouts import Origin
from ctx.agents.codex.tools import EXIT_CODE, PATCH, SHELL
from ctx.capture import written_lines
from ctx.capture.steps import ASSISTANT_MESSAGE, RECAP
from ctx.hook_files import live
from ctx.hosts.events import Event, Heading, Speaker
from ctx.hosts.json_fields import fields_of, plain_text_of

NAME = "codex"

CALLER, VERSION = "originator", "cli_version"
"""The fields of a rollout's first line that are stored with a payload."""

_PROMPT = "UserPromptSubmit"
_TOOL_EVENT = "PostToolUse"


def read(event_id: str, name: str, at: str, payload: Mapping[str, Any]) -> Event:
    heading = heading_of(event_id, name, at, payload)
    if (origin := _origin(payload)) and live.is_session(origin.session):
        heading = heading._replace(session=origin.session)
        payload = {**payload, **_origin_fields(origin)}
    if heading.tool == SHELL and heading.tool_use:
        path = plain_text_of(payload, "transcript_path")
        code = rollouts.exit_code_of(path, heading.tool_use)
        payload = {**payload, EXIT_CODE: code} if code is not None else payload
    return joined(heading, payload)


def _origin(payload: Mapping[str, Any]) -> Origin | None:
    """What started a thread, if its rollout is there. A payload names the subagent only in newer
    versions."""
    path = plain_text_of(payload, "transcript_path")
    if payload.get("agent_id") or not path:
        return None
    found = rollouts.origin(path)
    # The file of another session says nothing about this one.
    return found if plain_text_of(payload, "session_id") in (found.session, found.agent) else None


def _origin_fields(origin: Origin) -> dict[str, str]:
    fields = {"agent_id": origin.agent, CALLER: origin.caller, VERSION: origin.version}
    return {name: value for name, value in fields.items() if value}


def joined(heading: Heading, payload: Mapping[str, Any]) -> Event:
    """The event of a report. One patch may write several files: each is an event of its own."""
    if heading.tool != PATCH:
        return restore(heading, payload)
    common = common_fields(payload)
    patch = plain_text_of(fields_of(payload.get("tool_input")), "command")
    written = tools.patched_files(patch) if not _has_failed(payload) else []
    found = []
    for number, (path, contents) in enumerate(written, 1):
        place = f"{number}" if number > 1 else ""
        fields = {
            **common,
            "tool_input": {"file_path": os.path.join(heading.folder, path)},
            "tool_response": {written_lines.KEPT: written_lines.as_kept(contents)},
        }
        own = heading._replace(
            id="-".join(filter(None, (heading.id, place))),
            tool_use="/".join(filter(None, (heading.tool_use, place))) or None,
        )
        found.append(restore(own, fields))
    # Without a file, it is still known that something was tried.
    first, *others = found or [restore(heading, common)]
    return first._replace(further=tuple(others))


def restore(heading: Heading, payload: Mapping[str, Any]) -> Event:
    text, speaker = _words(heading.name, payload)
    is_call = heading.tool is not None or heading.name == _TOOL_EVENT
    response, agent = payload.get("response"), plain_text_of(payload, "agent_id")
    return Event(
        *heading,
        payload,
        NAME,
        text,
        speaker,
        agent=agent,
        path=tools.path_of(payload),
        call=tools.call_of(heading.tool or "", payload) if is_call else None,
        # The transcript of a subagent is not that of the session.
        transcript="" if agent else plain_text_of(payload, "transcript_path"),
        branch=plain_text_of(payload, "git_branch"),
        caller=plain_text_of(payload, CALLER),
        version=plain_text_of(payload, VERSION),
        continues=payload.get("source") in ("resume", "compact"),
        prompt=plain_text_of(payload, "turn_id"),
        response=response if isinstance(response, str) else None,
    )


def _words(name: str, payload: Mapping[str, Any]) -> tuple[str | None, Speaker]:
    """The text of an event, and its author."""
    if name == _PROMPT:
        text = payload.get("prompt")
        if not isinstance(text, str):
            return None, "user"
        own = rollouts.typed(text)
        return own or text, "user" if own or not text.strip() else "host"
    if name in ("Stop", ASSISTANT_MESSAGE):
        text = payload.get("text", payload.get("last_assistant_message"))
        return text if isinstance(text, str) else None, "agent"
    if name == RECAP:
        return plain_text_of(payload, "text"), "agent"
    return None, ""


def _has_failed(payload: Mapping[str, Any]) -> bool:
    """Whether Codex refused a patch."""
    code, response = payload.get(EXIT_CODE), payload.get("tool_response")
    if isinstance(code, int):
        return code != 0
    return isinstance(response, str) and rollouts.output_of(response)[0] not in (None, 0)
