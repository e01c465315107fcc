"""Turns the tool calls of Gemini CLI into calls of `hosts`.

Hooks report no id for a call. Its name, its arguments and its result identify it, so that a hook
and the transcript agree about it.
"""

import json
import re
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from ctx.agents.gemini.hooks import without_context
from ctx.agents.stored_events import foreign_call, todo_list
from ctx.capture import written_lines
from ctx.hook_files import known_tokens
from ctx.hosts import tool_calls
from ctx.hosts.json_fields import fields_of, nonblank_text_of
from ctx.hosts.tool_calls import Call, FileContents, Outcome

SHELL = "run_shell_command"
WRITERS = ("write_file", "replace")
FAILURE = "PostToolUseFailure"

_OWN_TOOLS = ("mcp_ctx_", "ctx__")
_FOREIGN = "mcp_"
_READERS = ("read_file", "read_many_files")
_SEARCHES = frozenset(
    "glob grep_search grep_search_ripgrep search_file_content list_directory google_web_search"
    " web_fetch".split()
)
_IGNORED = frozenset("save_memory get_internal_docs list_mcp_resources read_mcp_resource".split())
_CODE = re.compile(r"^Exit Code: (-?\d{1,9})\s*$", re.MULTILINE)
_GROUP = re.compile(r"^Process Group PGID: (\d+)", re.MULTILINE)
_OUTPUT = re.compile(
    r"^Output: (.*?)(?=^(?:Error|Exit Code|Signal|Background PIDs|Process Group PGID): |\Z)",
    re.MULTILINE | re.DOTALL,
)
_LONGEST_DISPLAY = 2_000


class ToolResult:
    """The result of a call, from a hook or from a transcript."""

    def __init__(self, response: object, display: object, error: str = "") -> None:
        self.text = without_context(_text_of(response))
        self.display = display
        self.error = error

    @property
    def shown(self) -> str:
        return self.display if isinstance(self.display, str) else ""


def tool_use(tool: str, arguments: Mapping[str, Any], result: ToolResult) -> str:
    """The id of a call. A hook removes tokens, the transcript has them."""
    group = _GROUP.search(result.text)
    told = json.dumps([arguments, group[0] if group else result.error or result.shown], default=str)
    arguments, came = json.loads(known_tokens.redact(told.encode()))
    came = came if group else came[:_LONGEST_DISPLAY]
    told = json.dumps([tool, arguments, came], sort_keys=True, default=str)
    return f"{tool}-{blake2b(told.encode('utf-8', 'replace'), digest_size=8).hexdigest()}"


def slim(tool: str, arguments: Mapping[str, Any], result: ToolResult) -> dict[str, Any]:
    """What is stored of a call: only what a step uses."""
    if tool in WRITERS and not result.error:
        path, contents = _written(arguments, result.display)
        kept = written_lines.as_kept(written_lines.without_secrets(path, contents))
        return {"tool_input": {"file_path": path}, "tool_response": {written_lines.KEPT: kept}}
    response: dict[str, Any] = {}
    if tool == SHELL:
        code = _CODE.search(result.text)
        output = _OUTPUT.search(result.text)
        text = output[1].rstrip() if output else result.shown
        # Output is only shown without its frame if it is short.
        response = {"output": "" if text == "(empty)" else text}
        response |= {"exit_code": int(code[1])} if code else {}
    if result.error:
        response["error"] = result.error
    return {"tool_input": dict(arguments), "tool_response": response}


def call_of(tool: str, payload: Mapping[str, Any]) -> Call:
    """The call of a stored payload."""
    arguments = fields_of(payload.get("tool_input"))
    response = fields_of(payload.get("tool_response"))
    if tool.startswith(_OWN_TOOLS):
        return tool_calls.OwnTool()
    if tool in _IGNORED:
        return tool_calls.IgnoredTool()
    if tool == SHELL:
        return tool_calls.CommandCall(nonblank_text_of(arguments, "command"), _outcome(response))
    if tool in WRITERS:
        return tool_calls.FileWrite(written_lines.stored(response.get(written_lines.KEPT)))
    if tool in _READERS:
        return tool_calls.FileRead()
    if tool in _SEARCHES:
        return tool_calls.Search(
            nonblank_text_of(arguments, "pattern", "query", "prompt", "dir_path", "path")
        )
    if tool == "write_todos":
        return todo_list(arguments.get("todos"), "description")
    if tool == "activate_skill":
        return tool_calls.Skill(nonblank_text_of(arguments, "name"), "")
    if tool in ("codebase_investigator", "delegate_to_agent", "invoke_agent"):
        prompt = nonblank_text_of(arguments, "objective", "prompt", "task")
        return tool_calls.Delegation(nonblank_text_of(arguments, "agent_name"), prompt)
    if tool.startswith(_FOREIGN):
        return foreign_call(tool.removeprefix(_FOREIGN), arguments)
    return tool_calls.UnknownTool()


def path_of(payload: Mapping[str, Any]) -> str:
    """The file that a tool was used on."""
    return nonblank_text_of(fields_of(payload.get("tool_input")), "file_path", "absolute_path")


def _outcome(response: Mapping[str, Any]) -> Outcome:
    output, code = nonblank_text_of(response, "output"), response.get("exit_code")
    error = nonblank_text_of(response, "error")
    if isinstance(code, int) and not isinstance(code, bool):
        return Outcome(code == 0, code, output)
    # The exit code of a command that succeeds is not mentioned.
    return Outcome(False, None, error or output) if error else Outcome(True, 0, output)


def _written(arguments: Mapping[str, Any], display: object) -> tuple[str, FileContents]:
    """The file that was written. The display has all of it, before and after."""
    fields = fields_of(display)
    before, after = fields.get("originalContent"), fields.get("newContent")
    path = nonblank_text_of(fields, "filePath")
    path = path or nonblank_text_of(arguments, "file_path", "absolute_path")
    if isinstance(after, str):
        is_new = fields.get("isNewFile") is True or not isinstance(before, str)
        return path, written_lines.limited(None if is_new else before, after, is_whole=True)
    content = arguments.get("content")
    if isinstance(content, str):
        return path, written_lines.limited(None, content, is_whole=True)
    old, new = (_any_text(arguments.get(name)) for name in ("old_string", "new_string"))
    return path, written_lines.limited(old, new, is_whole=False)


def _text_of(response: object) -> str:
    """The text that the model got: a string, or parts with texts."""
    if isinstance(response, str):
        return response
    if isinstance(response, list):
        return "\n".join(filter(None, map(_text_of, response)))
    text = fields_of(response).get("text")
    return text if isinstance(text, str) else ""


def _any_text(value: object) -> str:
    return value if isinstance(value, str) else ""
