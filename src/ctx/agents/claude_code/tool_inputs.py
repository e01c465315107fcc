"""Turns the tool calls of Claude Code into calls of `hosts`."""

import posixpath
import re
from collections.abc import Callable, Mapping
from typing import Any

from ctx.agents.claude_code import file_edits
from ctx.agents.claude_code.file_edits import response_of
from ctx.hosts import tool_calls
from ctx.hosts.tool_calls import Call, Outcome

FAILURE = "PostToolUseFailure"

_IGNORED = frozenset(
    "AgentOutputTool BashOutput CronList EnterPlanMode KillBash KillShell ListAgents"
    " ReadMcpResourceTool ScheduleWakeup TaskGet TaskList TaskOutput TaskStop ToolSearch"
    " EnterWorktree ExitWorktree SendMessage Workflow".split()
)
_OWN_TOOLS = ("mcp__ctx__", "mcp__plugin_ctx_")
_FOREIGN = "mcp__"
_EXIT = re.compile(r"(?:Error: )?Exit code (\d{1,9})\b\s*")
_REFUSALS = (
    *("The user doesn't want to", "Permission to use", "<tool_use_error>", "This command requires"),
    *("InputValidationError", "Claude requested permissions", "Hook PreToolUse"),
    "Sibling tool call errored",
)


def call_of(name: str, tool: str, payload: Mapping[str, Any]) -> Call:
    """The call of a tool, from the name of the event, the name of the tool, and the payload."""
    if tool.startswith(_OWN_TOOLS):
        return tool_calls.OwnTool()
    if tool in _IGNORED:
        return tool_calls.IgnoredTool()
    command = input_of(payload).get("command")
    if isinstance(command, str) and tool not in _CALLS:
        return tool_calls.CommandCall(command, _outcome(name, payload))
    if tool.startswith(_FOREIGN):
        values = input_of(payload).values()
        texts = tuple(value for value in values if isinstance(value, str) and value.strip())
        return tool_calls.ForeignTool(posixpath.basename(tool.replace("__", "/")), texts)
    read = _CALLS.get(tool)
    return read(payload) if read else tool_calls.UnknownTool()


def input_of(payload: Mapping[str, Any]) -> Mapping[str, Any]:
    """The input of a tool."""
    tool_input = payload.get("tool_input")
    return tool_input if isinstance(tool_input, Mapping) else {}


def _text(payload: Mapping[str, Any], *names: str) -> str:
    """The first of these fields that contains text."""
    values = map(input_of(payload).get, names)
    return next((value for value in values if isinstance(value, str) and value.strip()), "")


def _outcome(name: str, payload: Mapping[str, Any]) -> Outcome:
    outcome = _command_outcome(name, payload)
    was_refused = (
        outcome.exit_code is None and not outcome.ok and outcome.output.startswith(_REFUSALS)
    )
    return outcome._replace(was_run=not was_refused)


def _command_outcome(name: str, payload: Mapping[str, Any]) -> Outcome:
    """The outcome of a command. A failed command is a separate event, with the exit code in its
    text."""
    error = payload.get("error")
    if isinstance(error, str):
        code = _EXIT.match(error)
        return Outcome(
            False, int(code[1]) if code else None, error[code.end() :] if code else error
        )
    response = response_of(payload)
    if isinstance(response, str):
        code = _EXIT.match(response)
        if code:
            return Outcome(code[1] == "0", int(code[1]), response[code.end() :])
        is_error = response.startswith("Error: ")
        return Outcome(not is_error, None if is_error else 0, response)
    fields = response if isinstance(response, Mapping) else {}
    parts = [fields.get(name) for name in ("stdout", "stderr", "output")]
    output = "\n".join(part for part in parts if isinstance(part, str) and part)
    stated = fields.get("exitCode", fields.get("exit_code"))
    if isinstance(stated, int) and not isinstance(stated, bool):
        return Outcome(stated == 0, stated, output)
    if fields.get("interrupted") is True:
        return Outcome(False, None, output)
    if fields.get("backgroundTaskId"):
        return Outcome(True, None, "")
    return Outcome(name != FAILURE, None if name == FAILURE else 0, output)


def _read(payload: Mapping[str, Any]) -> Call:
    response = response_of(payload)
    file = response.get("file") if isinstance(response, Mapping) else None
    fields = file if isinstance(file, Mapping) else {}
    first, count, total = (fields.get(name) for name in ("startLine", "numLines", "totalLines"))
    if not isinstance(first, int) or not isinstance(count, int):
        return tool_calls.FileRead()
    return tool_calls.FileRead(first, count, total if isinstance(total, int) else None)


def _write(payload: Mapping[str, Any]) -> Call:
    return tool_calls.FileWrite(file_edits.written_contents(payload))


def _delegation(payload: Mapping[str, Any]) -> Call:
    return tool_calls.Delegation(_text(payload, "description"), _text(payload, "prompt"))


def _skill(payload: Mapping[str, Any]) -> Call:
    return tool_calls.Skill(_text(payload, "skill", "command", "name"), _text(payload, "args"))


def _plan(payload: Mapping[str, Any]) -> Call:
    if plan := _text(payload, "plan"):
        return tool_calls.PlanCall(plan)
    todos = input_of(payload).get("todos")
    listed = todos[:50] if isinstance(todos, list) else []
    items = [item for item in listed if isinstance(item, Mapping)]
    return tool_calls.TodoList(
        tuple(
            (subject, item.get("status") == "completed")
            for item in items
            if isinstance(subject := item.get("content"), str) and subject.strip()
        )
    )


def _task(payload: Mapping[str, Any]) -> Call:
    names = ("subject", "description", "status", "taskId")
    return tool_calls.TaskCall(*(_text(payload, name) for name in names))


def _question(payload: Mapping[str, Any]) -> Call:
    response = response_of(payload)
    answers = response.get("answers") if isinstance(response, Mapping) else None
    answers = answers if isinstance(answers, Mapping) else input_of(payload).get("answers")
    pairs = answers.items() if isinstance(answers, Mapping) else ()
    return tool_calls.QuestionCall(
        tuple(pair for pair in pairs if isinstance(pair[0], str) and isinstance(pair[1], str))
    )


def _search(payload: Mapping[str, Any]) -> Call:
    return tool_calls.Search(_text(payload, "query", "url", "pattern", "path"))


_CALLS: Mapping[str, Callable[[Mapping[str, Any]], Call]] = {
    **dict.fromkeys(file_edits.TOOLS, _write),
    **dict.fromkeys(("Read", "NotebookRead"), _read),
    **dict.fromkeys(("Task", "Agent"), _delegation),
    **dict.fromkeys((tool_calls.TODO_LIST, tool_calls.PLAN), _plan),
    **dict.fromkeys((tool_calls.NEW_TASK, tool_calls.CHANGED_TASK), _task),
    **dict.fromkeys(("WebFetch", "WebSearch", "Grep", "Glob", "LS"), _search),
    "Skill": _skill,
    "SlashCommand": _skill,
    tool_calls.QUESTION: _question,
}
