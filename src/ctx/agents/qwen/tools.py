"""What the tools of Qwen Code are called for."""

import re

from ctx.agents.stored_events import ToolReport, file_write, foreign_call, todo_list
from ctx.hosts import tool_calls
from ctx.hosts.json_fields import text_of
from ctx.hosts.tool_calls import Call, Outcome

_OWN_TOOLS = "mcp__ctx__"
_FOREIGN = "mcp__"
_READS = ("read_file", "read_many_files")
_WRITES = ("write_file", "edit", "replace")
_SEARCHES = (
    *("grep_search", "search_file_content", "glob", "list_directory"),
    *("web_fetch", "web_search", "google_web_search"),
)
_IGNORED = frozenset("save_memory tool_search enter_plan_mode ask_user_question lsp".split())
# The report that the model gets of a command.
_OUTPUT = re.compile(r"^Output: (.*?)^Error: ", re.DOTALL | re.MULTILINE)
_EXIT = re.compile(r"^Exit Code: (-?\d{1,9})\s*$", re.MULTILINE)
_NONE = ("(none)", "(empty)")


def call_of(report: ToolReport) -> Call:
    tool, arguments = report.tool, report.arguments
    if tool.startswith(_OWN_TOOLS):
        return tool_calls.OwnTool()
    if tool.startswith(_FOREIGN):
        return foreign_call(tool.rpartition("__")[2], arguments)
    if tool in _IGNORED:
        return tool_calls.IgnoredTool()
    if tool in _READS:
        first, count = arguments.get("offset"), arguments.get("limit")
        if isinstance(first, int) and isinstance(count, int) and first >= 0 and count > 0:
            return tool_calls.FileRead(first + 1, count)
        return tool_calls.FileRead()
    if tool in _WRITES:
        return _write(report)
    if tool in _SEARCHES:
        return tool_calls.Search(text_of(arguments, "pattern", "query", "url", "prompt", "path"))
    match tool:
        case "run_shell_command":
            return tool_calls.CommandCall(text_of(arguments, "command"), _outcome(report))
        case "task" | "agent":
            words = text_of(arguments, "description"), text_of(arguments, "prompt")
            return tool_calls.Delegation(*words)
        case "skill":
            return tool_calls.Skill(text_of(arguments, "skill", "name"), "")
        case "exit_plan_mode":
            return tool_calls.PlanCall(text_of(arguments, "plan"))
        case "todo_write":
            return todo_list(arguments.get("todos"))
        case _:
            return tool_calls.UnknownTool()


def path_of(report: ToolReport) -> str:
    if report.tool not in (*_READS, *_WRITES):
        return ""
    return text_of(report.arguments, "file_path", "absolute_path", "path")


def _outcome(report: ToolReport) -> Outcome:
    text = report.output if report.error is None else report.error
    found, code = _OUTPUT.search(text), _EXIT.search(text)
    output = found[1].strip() if found else text
    output = "" if output in _NONE else output
    if code is None:
        was_run = report.error is None or found is not None
        return Outcome(report.error is None, None, output, was_run)
    return Outcome(code[1] == "0", int(code[1]), output)


def _write(report: ToolReport) -> Call:
    display, arguments = report.details, report.arguments
    before, after = display.get("originalContent"), display.get("newContent")
    if isinstance(after, str):
        # A file that did not exist has an empty content.
        return file_write(before or None, after, is_whole=True)
    before, after = arguments.get("old_string"), arguments.get("new_string")
    if not isinstance(after, str):
        before, after = None, arguments.get("content")
    return file_write(before, after)
