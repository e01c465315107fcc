"""Turns the tool calls of Codex into calls of `hosts`."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from ctx.agents.stored_events import foreign_call, todo_list
from ctx.capture import written_lines
from ctx.hosts import tool_calls
from ctx.hosts.json_fields import fields_of, nonblank_text_of
from ctx.hosts.tool_calls import Call, FileContents, Outcome

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
            return tool_calls.FileWrite(written_lines.stored(response.get(written_lines.KEPT)))
        case "update_plan":
            return todo_list(arguments.get("plan"), "step")
        case "view_image" | "read_file":
            return tool_calls.FileRead()
        case "web_search" | "grep_files" | "list_dir":
            return tool_calls.Search(
                nonblank_text_of(arguments, "query", "url", "pattern", "dir_path")
            )
        case "spawn_agent":
            return tool_calls.Delegation("", nonblank_text_of(arguments, "message", "prompt"))
    if tool.startswith(_FOREIGN):
        return foreign_call(tool.rpartition("__")[2], arguments)
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


# The files that a patch writes

BEGIN = "*** Begin Patch"

_ADD, _UPDATE, _DELETE = "*** Add File: ", "*** Update File: ", "*** Delete File: "
_MOVE = "*** Move to: "
_MOST_FILES = 200


class PatchedFile(NamedTuple):
    path: str
    contents: FileContents


def patched_files(text: str) -> list[PatchedFile]:
    """The files that a patch writes, in its order.

        *** Begin Patch
        *** Update File: shop/orders.py
        *** Move to: shop/sales.py
        @@ def total():
        -    return 0
        +    return 1
        *** Add File: notes.txt
        +a line
        *** Delete File: old.py
        *** End Patch

    An update contains only the lines around a change, so the contents of its file are pieces.
    Parsing never fails: what is no patch writes no file.
    """
    found: list[PatchedFile] = []
    path, is_new = "", False
    old: list[str] = []
    new: list[str] = []

    def end_file() -> None:
        if path:
            before = None if is_new else "".join(old)
            contents = written_lines.limited(before, "".join(new), is_whole=is_new)
            found.append(PatchedFile(path, written_lines.without_secrets(path, contents)))

    for line in text[text.find(BEGIN) :].splitlines(keepends=True) if BEGIN in text else ():
        heading = line.rstrip("\r\n")
        start = next((each for each in (_ADD, _UPDATE, _DELETE) if heading.startswith(each)), "")
        if start:
            end_file()
            path, old, new, is_new = heading[len(start) :].strip(), [], [], start == _ADD
        elif heading.startswith(_MOVE):
            path = heading[len(_MOVE) :].strip()
        elif heading.startswith("*** End"):
            continue
        elif line[:1] == "+":
            new.append(line[1:])
        elif line[:1] == "-":
            old.append(line[1:])
        elif line[:1] == " ":
            old.append(line[1:])
            new.append(line[1:])
    end_file()
    return found[:_MOST_FILES]
