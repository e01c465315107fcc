"""Long answers on a terminal, shown by the user's pager."""

import shlex
import subprocess

from ctx import interrupts
from ctx.cli.settings import variables

# As git sets it: quit if it fits, keep colours, leave the text on the screen.
_LESS = "FRX"

# With one of these, the shell runs the program, as git does: `less -R | cat`, `LESS=S less`.
_SHELL_CHARACTERS = frozenset("|&;<>()$`*?[#~=%\n")

# The exit codes of a shell that cannot run the program or does not find it.
_NOT_STARTED = (126, 127)


def show(program: str, text: str) -> bool:
    """Show a text with a pager, and wait for it to end. False if it cannot be started."""
    environment = {"LESS": _LESS, **variables()}
    try:
        command = shlex.split(program)
        if not command:
            return False
        with_shell = not _SHELL_CHARACTERS.isdisjoint(program)
        if with_shell:
            command = ["/bin/sh", "-c", program]
        with interrupts.TerminalOwnedByChild():
            process = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment)
            # A person may leave the pager before it has read everything.
            try:
                process.communicate(text.encode("utf-8", "backslashreplace"))
            except BrokenPipeError:
                process.wait()
    except (OSError, ValueError):
        return False
    return not (with_shell and process.returncode in _NOT_STARTED)
