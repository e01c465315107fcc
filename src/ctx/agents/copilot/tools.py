"""What the tools of GitHub Copilot CLI are called for."""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from ctx.agents.stored_events import ToolReport, file_write, foreign_call
from ctx.hook_files import known_tokens
from ctx.hosts import tool_calls
from ctx.hosts.json_fields import fields_of, parsed, text_of
from ctx.hosts.tool_calls import Call, Outcome

_OWN_TOOLS = "ctx-"
_SHELLS = ("bash", "powershell")
_SEARCHES = ("grep", "glob", "rg", "web_fetch", "web_search")
_IGNORED = frozenset(
    "read_bash write_bash stop_bash list_bash read_powershell write_powershell stop_powershell"
    " list_powershell report_intent read_agent write_agent list_agents session_store_sql"
    " fetch_copilot_cli_documentation task_complete tool_search".split()
)
# The last line of a command's output, which the client adds.
_ENDED = re.compile(
    r"\n?<(?:shellId: [^>\n]{1,80} completed|exited) with exit code (-?\d{1,9})>\s*$"
)
_REFUSED = "Permission denied"


def call_of(report: ToolReport) -> Call:
    tool, arguments = report.tool, report.arguments
    if tool.startswith(_OWN_TOOLS):
        return tool_calls.OwnTool()
    if tool in _IGNORED:
        return tool_calls.IgnoredTool()
    if tool in _SHELLS:
        return tool_calls.CommandCall(text_of(arguments, "command"), _outcome(report))
    match tool:
        case "view":
            return _read(arguments)
        case "create":
            after = arguments.get("file_text")
            return file_write(None, after, is_whole=True)
        case "edit":
            return file_write(arguments.get("old_str", ""), arguments.get("new_str", ""))
        case "task":
            return tool_calls.Delegation(
                text_of(arguments, "description"), text_of(arguments, "prompt")
            )
        case "skill":
            return tool_calls.Skill(text_of(arguments, "skill"), "")
        case "sql":
            return tool_calls.IgnoredTool()
    if tool in _SEARCHES:
        return tool_calls.Search(text_of(arguments, "pattern", "query", "url"))
    server, is_foreign, name = tool.partition("-")
    # Its own tools have no hyphen; those of a server follow the name of the server.
    return foreign_call(name, arguments) if is_foreign and server else tool_calls.UnknownTool()


def path_of(report: ToolReport) -> str:
    is_file = report.tool in ("view", "create", "edit")
    return text_of(report.arguments, "path") if is_file else ""


def call_id(timestamp: object, tool: str, arguments: object) -> str:
    """An id for a call: hooks report when it ended, but not its id.

    The transcript contains the same payload, also with tokens, so it gives the same id.
    """
    if isinstance(timestamp, bool) or not isinstance(timestamp, int):
        return ""
    called = known_tokens.redact(json.dumps([tool, arguments], sort_keys=True).encode())
    return f"{timestamp}-{hashlib.blake2b(called, digest_size=6).hexdigest()}"


def arguments_of(value: object) -> Mapping[str, Any]:
    """The arguments of a call. Some versions report them as JSON in a text."""
    return fields_of(parsed(value) if isinstance(value, str) else value)


def _outcome(report: ToolReport) -> Outcome:
    if report.error is not None:
        was_run = not report.error.startswith(_REFUSED)
        return Outcome(False, None, report.error, was_run)
    ended = _ENDED.search(report.output)
    output = report.output[: ended.start()] if ended else report.output
    stated = int(ended[1]) if ended else None
    code = report.details.get("exit_code", stated)
    # A command that runs on in the background has no exit code yet.
    return Outcome(code in (0, None), code, output)


def _read(arguments: Mapping[str, Any]) -> Call:
    match arguments.get("view_range"):
        case [int(first), int(last)] if 0 < first <= last:
            return tool_calls.FileRead(first, last - first + 1)
        case _:
            return tool_calls.FileRead()
