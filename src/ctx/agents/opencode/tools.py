"""What the tools of OpenCode are called for."""

from ctx.agents.stored_events import ToolReport, file_write, foreign_call, todo_list
from ctx.hosts import tool_calls
from ctx.hosts.json_fields import text_of
from ctx.hosts.tool_calls import Call, Outcome

_OWN_TOOLS = "ctx_"
_SEARCHES = ("grep", "glob", "list", "webfetch", "websearch", "codesearch")
_IGNORED = frozenset("todoread invalid lsp question plan_enter plan_exit".split())
_REFUSALS = ("The user rejected permission", "The user has specified a rule")


def call_of(report: ToolReport) -> Call:
    tool, arguments = report.tool, report.arguments
    if tool.startswith(_OWN_TOOLS):
        return tool_calls.OwnTool()
    if tool in _IGNORED:
        return tool_calls.IgnoredTool()
    if tool in _SEARCHES:
        return tool_calls.Search(text_of(arguments, "pattern", "query", "url", "path"))
    match tool:
        case "bash":
            return tool_calls.CommandCall(text_of(arguments, "command"), _outcome(report))
        case "read":
            first, count = arguments.get("offset"), arguments.get("limit")
            if isinstance(first, int) and isinstance(count, int) and first > 0 and count > 0:
                return tool_calls.FileRead(first, count)
            return tool_calls.FileRead()
        case "write":
            # What an existing file contained before is not reported.
            is_new = report.details.get("exists") is False
            return file_write(None, arguments.get("content"), is_whole=is_new)
        case "edit":
            old, new = arguments.get("oldString", ""), arguments.get("newString", "")
            return file_write(old, new, is_whole=False)
        case "task":
            words = text_of(arguments, "description"), text_of(arguments, "prompt")
            return tool_calls.Delegation(*words)
        case "skill":
            return tool_calls.Skill(text_of(arguments, "name"), "")
        case "todowrite":
            return todo_list(arguments.get("todos"))
    server, is_foreign, name = tool.partition("_")
    # The name of a server's tool follows the name of the server; its own tools are listed above.
    return foreign_call(name, arguments) if is_foreign and server else tool_calls.UnknownTool()


def path_of(report: ToolReport) -> str:
    is_file = report.tool in ("read", "write", "edit")
    return text_of(report.arguments, "filePath") if is_file else ""


def _outcome(report: ToolReport) -> Outcome:
    if report.error is not None:
        return Outcome(False, None, report.error, not report.error.startswith(_REFUSALS))
    code = report.details.get("exit")
    if isinstance(code, bool) or not isinstance(code, int):
        # It was aborted, or it took too long.
        return Outcome(False, None, report.output)
    return Outcome(code == 0, code, report.output)
