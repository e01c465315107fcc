"""Turns the tool calls of Codex into calls of `hosts`."""

import posixpath
from collections.abc import Mapping
from typing import Any

from ctx.capture import kept_contents
from ctx.hosts import tool_calls
from ctx.hosts.json_fields import fields_of, nonblank_text_of
from ctx.hosts.tool_calls import Call, Outcome

SHELL = "Bash"
PATCH = "apply_patch"
EXIT_CODE = "exit_code"
"""The field of a stored payload with the exit code of a command. Hooks do not report it; the
transcript does."""

_OWN_TOOLS = ("mcp__ctx__", "mcp__ctx_memory__")
_FOREIGN = "mcp__"
_SHELLS = frozenset("exec_command shell shell_command local_shell container.exec".split())
_IGNORED = frozenset(
    "write_stdin tool_search list_mcp_resources read_mcp_resource list_mcp_resource_templates"
    " wait wait_agent close_agent resume_agent send_input".split()
)


def tool_name(name: str, namespace: str = "") -> str:
    """The name of a tool as hooks report it, from its name in a transcript."""
    if name in _SHELLS:
        return SHELL
    return f"{namespace}__{name}" if namespace and not name.startswith(namespace) else name


def shell_command(arguments: Mapping[str, Any]) -> str:
    """The command line of a call of a shell. Older versions give the words of a process."""
    command = arguments.get("cmd", arguments.get("command"))
    if isinstance(command, list) and all(isinstance(word, str) for word in command):
        # `bash -lc "make test"`
        is_script = len(command) == 3 and command[1] in ("-lc", "-c")
        return str(command[2]) if is_script else " ".join(command)
    return command if isinstance(command, str) else ""


def call_of(tool: str, payload: Mapping[str, Any]) -> Call:
    if tool.startswith(_OWN_TOOLS):
        return tool_calls.OwnTool()
    if tool in _IGNORED:
        return tool_calls.IgnoredTool()
    arguments = fields_of(payload.get("tool_input"))
    match tool:
        case "Bash":
            return tool_calls.CommandCall(shell_command(arguments), _outcome(payload))
        case "apply_patch":
            response = fields_of(payload.get("tool_response"))
            return tool_calls.FileWrite(kept_contents.stored(response.get(kept_contents.KEPT)))
        case "update_plan":
            return _plan(arguments)
        case "view_image" | "read_file":
            return tool_calls.FileRead()
        case "web_search" | "grep_files" | "list_dir":
            return tool_calls.Search(
                nonblank_text_of(arguments, "query", "url", "pattern", "dir_path")
            )
        case "spawn_agent":
            return tool_calls.Delegation("", nonblank_text_of(arguments, "message", "prompt"))
    if tool.startswith(_FOREIGN):
        texts = tuple(value for value in arguments.values() if isinstance(value, str) and value)
        return tool_calls.ForeignTool(posixpath.basename(tool.replace("__", "/")), texts)
    return tool_calls.UnknownTool()


def path_of(payload: Mapping[str, Any]) -> str:
    """The file that a tool was used on."""
    return nonblank_text_of(fields_of(payload.get("tool_input")), "file_path", "path")


def _outcome(payload: Mapping[str, Any]) -> Outcome:
    output, code = payload.get("tool_response"), payload.get(EXIT_CODE)
    text = output if isinstance(output, str) else ""
    if not isinstance(code, int) or isinstance(code, bool):
        return Outcome(True, None, text)
    return Outcome(code == 0, code, text)


def _plan(arguments: Mapping[str, Any]) -> Call:
    steps = arguments.get("plan")
    listed = steps[:50] if isinstance(steps, list) else []
    items = [item for item in listed if isinstance(item, Mapping)]
    return tool_calls.TodoList(
        tuple(
            (step, item.get("status") == "completed")
            for item in items
            if isinstance(step := item.get("step"), str) and step.strip()
        )
    )
