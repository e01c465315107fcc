"""Long answers on a terminal, shown by the user's pager."""

import shlex
import subprocess

from ctx import interrupts
from ctx.cli.settings import variables

# As git sets it: quit if it fits, keep colours, leave the text on the screen.
_LESS = "FRX"


def show(program: str, text: str) -> bool:
    """Show a text with a pager, and wait for it to end. False if it cannot be started."""
    environment = {"LESS": _LESS, **variables()}
    try:
        with interrupts.LeftToChild():
            process = subprocess.Popen(shlex.split(program), stdin=subprocess.PIPE, env=environment)
            # A person may leave the pager before it has read everything.
            try:
                process.communicate(text.encode("utf-8", "backslashreplace"))
            except BrokenPipeError:
                process.wait()
    except (OSError, ValueError):
        return False
    return True
