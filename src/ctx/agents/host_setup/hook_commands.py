"""The command lines of hooks: how they are written, and how ours are recognized.

A hook runs with the interpreter of ctx, which needs no PATH and is fastest. A missing program must
not block a host, which may interpret an exit code as a veto, so every command ends in `|| true`.
The command at the start of a session prints a message instead.
"""

import os
import re
import shlex
import sys

from ctx.agents.runtime.host_hooks import HostHooks
from ctx.hosts.hook_events import HookAnswer

_GONE = "ctx cannot run"
GONE = (
    f"{_GONE}, so nothing is remembered. Install it again and run `ctx install`, or remove its"
    " hooks."
)
"""What a host shows at the start of a session if ctx was removed without its hooks."""

_WORD = re.compile(r"[a-z]+(?:-[a-z]+)*")
# Our command lines are never longer, however they are quoted. Parsing a much longer line would take
# seconds.
_LONGEST = 64 * 1024


def interpreter() -> str:
    """The interpreter that runs ctx. A symbolic link is kept, because updates change its target."""
    return sys.executable or "python3"


def entry_script(host: str) -> str:
    """The script that runs the hooks of a host."""
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return os.path.dirname(package) + entry_ending(host)


def entry_ending(host: str) -> str:
    """How the path of that script ends, in any installation of ctx."""
    return f"/ctx/agents/{host.replace('-', '_')}/entry.py"


def command_line(word: str, host: HostHooks, *, interpreter: str, entry: str) -> str:
    """The command line of a hook in a user's settings, with all paths quoted."""
    otherwise = "true"
    if word == "session-start":
        # Such a host would put a text for the agent in front of the first prompt.
        text = "" if host.starts_with_prompt else GONE
        answer = host.write("SessionStart", HookAnswer(text, GONE)).decode().strip()
        otherwise = f"echo {shlex.quote(answer)}"
    return f"{shlex.join([interpreter, '-I', '-S', entry])} {word} || {otherwise}"


def hook_name(command: str, ending: str, *, with_program: bool = False) -> str | None:
    """The hook that a line names, known or not, if the line has the form that ctx writes.

    `ending` is how the path of the script ends. `with_program`: `ctx hook NAME` counts too. A line
    with variables or other commands was edited by the user, whose changes would be lost if the line
    were treated as ours.
    """
    if len(command) > _LONGEST or not (ending in command or (with_program and "hook" in command)):
        return None
    lexer = shlex.shlex(command.strip(), posix=True, punctuation_chars=True)
    # A line break begins another command.
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t", True, ""
    try:
        words = list(lexer)
    except ValueError:
        return None
    if words[-2:] == ["||", "true"]:
        del words[-2:]
    elif words[-3:-1] == ["||", "echo"] and _GONE in words[-1]:
        del words[-3:]
    if words[-2:-1] == ["--part"] and words[-1].isdecimal():
        del words[-2:]
    match words:
        case [_, "-I", "-S", script, word] if script.endswith(ending):
            pass
        case [program, "hook", word] if with_program and os.path.basename(program) == "ctx":
            pass
        case _:
            return None
    return word if _WORD.fullmatch(word) else None
