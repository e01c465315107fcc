"""Errors of a command itself, as opposed to findings about the code."""

import re

_NO_SUCH_COMMAND = re.compile(
    r"command not found|: not found\b|unrecogni[sz]ed (?:sub)?command|unknown (?:sub)?command"
    r"|no such command|missing script|script not found|command \"\S+\" not found|is not recognized"
    r"|no rule to make target|does not contain recipe|no tasks? (?:named|matching|found)"
    r"|could not determine executable|task \S+ not found|unknown task|no such target",
    re.IGNORECASE,
)
"""The command does not exist here: no change to the code helps."""
_CANNOT_RUN = re.compile(
    r"no module named|modulenotfounderror|cannot find (?:module|package)|unknown (?:option|argument"
    r"|flag)|unrecognized (?:option|argument)|no such (?:option|file or directory)|not installed"
    r"|permission denied|no matches found|econnrefused|connection refused|can't open file"
    r"|externally-managed|no test files? found|err_pnpm_\w+|enoent|does not exist"
    r"|environment variable|is not set\b|missing required",
    re.IGNORECASE,
)
"""The command lacks something: a module, a file, an option, a server."""


def no_such_command(text: str) -> bool:
    return _NO_SUCH_COMMAND.search(text[:300]) is not None


def cannot_run(text: str) -> bool:
    """Whether a line of output says that the command could not run at all."""
    return no_such_command(text) or _CANNOT_RUN.search(text[:300]) is not None
