"""Turns the tool calls of Claude Code into calls of `hosts`.

What Claude Code reports about a file that was written: the file before and after.

Its versions report it in several shapes:

    Write          the new content; `originalFile` if the file existed
    Edit           `old_string` and `new_string`; `originalFile`
    MultiEdit      a list of such edits; `originalFileContents`
    NotebookEdit   the new source of a cell; `original_file` and `updated_file`

All of them are converted to one shape, which is also stored until the event becomes a step
(`capture.written_lines`).
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ctx.agents import stored_events
from ctx.capture import written_lines
from ctx.capture.written_lines import KEPT, MOST
from ctx.hosts import tool_calls
from ctx.hosts.json_fields import fields_of, nonblank_text_of
from ctx.hosts.tool_calls import Call, FileContents, Outcome

FAILURE = "PostToolUseFailure"
WRITERS = frozenset({"Edit", "Write", "MultiEdit", "NotebookEdit"})
_MOST_EDITS = 1_000

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
    command = _input_of(payload).get("command")
    if isinstance(command, str) and tool not in _CALLS:
        return tool_calls.CommandCall(command, _outcome(name, payload))
    if tool.startswith(_FOREIGN):
        return stored_events.foreign_call(tool.rpartition("__")[2], _input_of(payload))
    read = _CALLS.get(tool)
    return read(payload) if read else tool_calls.UnknownTool()


def _input_of(payload: Mapping[str, Any]) -> Mapping[str, Any]:
    return fields_of(payload.get("tool_input"))


def _text(payload: Mapping[str, Any], *names: str) -> str:
    return nonblank_text_of(_input_of(payload), *names)


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
    fields = fields_of(response)
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
    fields = fields_of(fields_of(response_of(payload)).get("file"))
    first, count, total = (fields.get(name) for name in ("startLine", "numLines", "totalLines"))
    if not isinstance(first, int) or not isinstance(count, int):
        return tool_calls.FileRead()
    return tool_calls.FileRead(first, count, total if isinstance(total, int) else None)


def _write(payload: Mapping[str, Any]) -> Call:
    return tool_calls.FileWrite(written_contents(payload))


def _delegation(payload: Mapping[str, Any]) -> Call:
    return tool_calls.Delegation(_text(payload, "description"), _text(payload, "prompt"))


def _skill(payload: Mapping[str, Any]) -> Call:
    return tool_calls.Skill(_text(payload, "skill", "command", "name"), _text(payload, "args"))


def _plan(payload: Mapping[str, Any]) -> Call:
    if plan := _text(payload, "plan"):
        return tool_calls.PlanCall(plan)
    return stored_events.todo_list(_input_of(payload).get("todos"))


def _task(payload: Mapping[str, Any]) -> Call:
    names = ("subject", "description", "status", "taskId")
    return tool_calls.TaskCall(*(_text(payload, name) for name in names))


def _question(payload: Mapping[str, Any]) -> Call:
    answers = fields_of(response_of(payload)).get("answers")
    answers = answers if isinstance(answers, Mapping) else _input_of(payload).get("answers")
    pairs = fields_of(answers).items()
    return tool_calls.QuestionCall(
        tuple(pair for pair in pairs if isinstance(pair[0], str) and isinstance(pair[1], str))
    )


def _search(payload: Mapping[str, Any]) -> Call:
    return tool_calls.Search(_text(payload, "query", "url", "pattern", "path"))


_CALLS: Mapping[str, Callable[[Mapping[str, Any]], Call]] = {
    **dict.fromkeys(WRITERS, _write),
    **dict.fromkeys(("Read", "NotebookRead"), _read),
    **dict.fromkeys(("Task", "Agent"), _delegation),
    **dict.fromkeys((tool_calls.TODO_LIST, tool_calls.PLAN), _plan),
    **dict.fromkeys((tool_calls.NEW_TASK, tool_calls.CHANGED_TASK), _task),
    **dict.fromkeys(("WebFetch", "WebSearch", "Grep", "Glob", "LS"), _search),
    "Skill": _skill,
    "SlashCommand": _skill,
    tool_calls.QUESTION: _question,
}


# Files before and after a write


class Edit(NamedTuple):
    old: str
    new: str
    is_all: bool


def path_of(payload: Mapping[str, Any]) -> str:
    """The file that a tool was used on."""
    tool_input = fields_of(payload.get("tool_input"))
    response = fields_of(payload.get("tool_response"))
    file = fields_of(response.get("file"))
    named = [tool_input.get(name) for name in ("file_path", "notebook_path", "path")]
    for path in (*named, response.get("filePath"), file.get("filePath")):
        if isinstance(path, str) and path:
            return path
    return ""


def written_contents(payload: Mapping[str, Any]) -> FileContents | None:
    """The content of a file before and after a write; None if the payload has no known shape."""
    tool_input, response = fields_of(payload.get("tool_input")), fields_of(response_of(payload))
    if isinstance(kept := response.get(KEPT), Mapping):
        return written_lines.stored(kept)
    names = ("originalFile", "originalFileContents", "original_file")
    before = next((response[name] for name in names if isinstance(response.get(name), str)), None)
    after = response.get("updated_file")
    if isinstance(after, str):
        return written_lines.limited(before, after, is_whole=before is not None)
    if isinstance(after := tool_input.get("content"), str):
        is_new = before is None and response.get("type") != "update"
        return written_lines.limited(before, after, is_whole=is_new or before is not None)
    edits = list(_edits(tool_input, response))[:_MOST_EDITS]
    if not edits:
        return None
    if before is not None and (after := _apply_edits(before, edits)) is not None:
        whole = written_lines.limited(before, after, is_whole=True)
        if whole.is_whole:
            return whole
    pieces = FileContents(
        "\n".join(old for old, _, _ in edits), "\n".join(new for _, new, _ in edits), False
    )
    return written_lines.limited(*pieces[:2], is_whole=False)


def _edits(tool_input: Mapping[str, Any], response: Mapping[str, Any]) -> Iterator[Edit]:
    every = tool_input.get("edits") or response.get("edits")
    for entry in every if isinstance(every, list) else (tool_input, response):
        edit = fields_of(entry)
        old = edit.get("old_string", edit.get("oldString", edit.get("old_source")))
        new = edit.get("new_string", edit.get("newString", edit.get("new_source")))
        if isinstance(old, str) or isinstance(new, str):
            is_all = edit.get("replace_all", edit.get("replaceAll")) is True
            yield Edit(
                old if isinstance(old, str) else "", new if isinstance(new, str) else "", is_all
            )
            if not isinstance(every, list):
                return


def _apply_edits(text: str, edits: Sequence[Edit]) -> str | None:
    """A text after some edits; None if one of them does not apply."""
    for old, new, is_all in edits:
        if not old and not text:
            text = new
        elif not old or old not in text:
            return None
        else:
            text = text.replace(old, new) if is_all else text.replace(old, new, 1)
        if len(text) > 2 * MOST:
            return None
    return text


def response_of(payload: Mapping[str, Any]) -> Any:
    """The response of a tool; older clients use another key."""
    response = payload.get("tool_response")
    return payload.get("tool_output") if response is None else response
