"""Having done what an agent asked for, and hearing what became of it.

The worker is asked first: it is there. Without one, `ctx hook apply` is started: a hook has the
standard library alone, and that is a whole interpreter, which has the rest.
"""

import json
import os
import select
import time

from ctx import clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ctx.agents.runtime.hook import Hook

# How long the worker is waited for, of the time that there is.
_ASKING_S = 1.0


def apply(hook: "Hook", seconds: float) -> "list[dict[str, Any]]":
    """Do what is waiting, and say what became of the commands of each answer.

    Nothing, where it was not done in time: it is done later.
    """
    from ctx.agents.runtime import worker_request

    deadline = time.monotonic() + seconds
    done = worker_request.ask(hook, "/api/apply", {}, min(_ASKING_S * clock.patience, seconds))
    if done is None:
        done = _applied_by_another(hook, deadline)
    if done.get("waiting"):
        hook.log("another process is running the commands of agents")
    stops: list[dict[str, Any]] = done.get("stops", [])
    return stops


def _applied_by_another(hook: "Hook", deadline: float) -> "dict[str, Any]":
    seconds = deadline - time.monotonic()
    read, write = os.pipe()
    _spawn(hook, write)
    os.close(write)
    output = b""
    while (left := deadline - time.monotonic()) > 0 and select.select([read], [], [], left)[0]:
        part = os.read(read, 65536)
        output += part
        # It goes on after it has told, so the end of what it tells is not the end of it.
        if not part or output.endswith(b"\n}\n"):
            break
    os.close(read)
    if time.monotonic() >= deadline and not output.endswith(b"\n}\n"):
        hook.log(f"the commands of an agent did not finish within {seconds:.1f} s; they run later")
        return {}
    try:
        done: dict[str, Any] = json.loads(output)
    except ValueError:
        # It has written down itself why.
        hook.log("the commands of an agent could not run; they run later")
        return {}
    return done


def start(hook: "Hook") -> None:
    """Have what is waiting looked after, without waiting for it; once is enough."""
    if hook.is_looked_after or hook.look_after():
        return
    hook.is_looked_after = True
    start_beside(hook)


def start_beside(hook: "Hook") -> None:
    """The same, whoever else there is. Whatever they do at once, only one of them does."""
    null = os.open(os.devnull, os.O_RDWR)
    try:
        _spawn(hook, null)
    finally:
        os.close(null)


def _spawn(hook: "Hook", out: int) -> None:
    from ctx.worker import spawn

    # It works in another folder, so that what is relative to this one is told in full.
    environment = {**hook.environment, "CTX_HOME": hook.home, "CTX_DB": hook.database}
    spawn.spawn(hook.home, ("hook", "apply", "--quick", "--format", "json"), environment, out)
