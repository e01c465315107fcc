"""Start processes that outlive the command that starts them.

Each has its own session, so it survives when the processes of a terminal or a client are killed.
Hooks load this module: it imports nothing but `os`.
"""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def start(
    command: list[str], environment: "Mapping[str, str] | None" = None, output: int | None = None
) -> int:
    """Start a process without input; return its id. Its environment is this one if none is given,
    and its standard output goes to a file descriptor or to nowhere."""
    variables = os.environ if environment is None else environment
    null = os.open(os.devnull, os.O_RDWR)
    actions = [
        (os.POSIX_SPAWN_DUP2, null, 0),
        (os.POSIX_SPAWN_DUP2, null if output is None else output, 1),
        (os.POSIX_SPAWN_DUP2, null, 2),
    ]
    try:
        return os.posix_spawn(command[0], command, variables, file_actions=actions, setsid=True)
    except NotImplementedError:
        # Not every system supports setsid here; a process group of its own is nearly as good.
        return os.posix_spawn(command[0], command, variables, file_actions=actions, setpgroup=0)
    finally:
        os.close(null)
