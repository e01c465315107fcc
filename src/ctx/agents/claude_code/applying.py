"""Starting the process that does what an agent asked for, and hearing what became of it.

A hook has the standard library alone. `ctx hook apply` is a whole interpreter, which has the rest.
It is a session of its own, so that whoever ends the client's processes does not end it.
"""

import json
import os
import select
import sys
import time

from ctx.agents.claude_code.hook import Hook
from ctx.agents.claude_code.store import path_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_RUN = (
    "import sys; sys.path.insert(0, sys.argv.pop(1));"
    " from ctx.cli.main import main; sys.exit(main(sys.argv[1:]))"
)


def apply(hook: Hook, seconds: float) -> "list[dict[str, Any]]":
    """Do what is waiting, and say what became of the commands of each answer.

    Nothing, where it was not done in time: it is done later.
    """
    deadline = time.monotonic() + seconds
    read, write = os.pipe()
    _spawn(hook, write)
    os.close(write)
    told = b""
    while (left := deadline - time.monotonic()) > 0 and select.select([read], [], [], left)[0]:
        part = os.read(read, 65536)
        told += part
        # It goes on after it has told, so the end of what it tells is not the end of it.
        if not part or told.endswith(b"\n}\n"):
            break
    os.close(read)
    if time.monotonic() >= deadline and not told.endswith(b"\n}\n"):
        hook.log(f"what an agent asked for was not done within {seconds:.1f} s; it waits")
        return []
    try:
        done = json.loads(told)
    except ValueError:
        # It has written down itself why.
        hook.log("what an agent asked for could not be done; it waits")
        return []
    if done.get("waiting"):
        hook.log("another process looks after what agents asked for")
    stops: list[dict[str, Any]] = done.get("stops", [])
    return stops


def start(hook: Hook) -> None:
    """Have what is waiting looked after, without waiting for it; once is enough."""
    if hook.is_looked_after:
        return
    hook.is_looked_after = True
    null = os.open(os.devnull, os.O_RDWR)
    try:
        _spawn(hook, null)
    finally:
        os.close(null)


def _spawn(hook: Hook, out: int) -> None:
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(__file__))))
    # Neither the folder nor the variables of a project may say which modules are loaded.
    program = [sys.executable, "-E", "-P", "-c", _RUN, package]
    command = [*program, "-C", hook.home, "hook", "apply", "--quick", "--format", "json"]
    null = os.open(os.devnull, os.O_RDWR)
    actions = [
        (os.POSIX_SPAWN_DUP2, null, 0),
        (os.POSIX_SPAWN_DUP2, out, 1),
        (os.POSIX_SPAWN_DUP2, null, 2),
    ]
    # It works in another folder, so that what is relative to this one is told in full.
    places = {"CTX_HOME": hook.home, "CTX_DB": path_of(hook.environment, hook.home)}
    environment = {**hook.environment, **places}
    try:
        os.posix_spawn(sys.executable, command, environment, file_actions=actions, setsid=True)
    except NotImplementedError:
        # Not every system can do that on the way; a group of its own is nearly as good.
        os.posix_spawn(sys.executable, command, environment, file_actions=actions, setpgroup=0)
    finally:
        os.close(null)
