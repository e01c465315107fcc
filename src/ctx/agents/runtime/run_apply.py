"""Runs an agent's commands, and returns their results.

The worker runs them if there is one. Otherwise this starts `ctx hook apply`: a hook has only the
standard library, and running commands needs the rest of ctx.
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

# How long to wait for the worker.
_ASKING_S = 1.0


def apply(hook: "Hook", seconds: float) -> "list[dict[str, Any]]":
    """Run the pending commands, and return the result for each answer of an agent.

    Empty if it takes too long: the commands run later.
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
        # The process continues after it has printed the results, so the output ends with this line,
        # not with the end of the file.
        if not part or output.endswith(b"\n}\n"):
            break
    os.close(read)
    if time.monotonic() >= deadline and not output.endswith(b"\n}\n"):
        hook.log(f"the commands of an agent did not finish within {seconds:.1f} s; they run later")
        return {}
    try:
        done: dict[str, Any] = json.loads(output)
    except ValueError:
        # The process has logged the reason.
        hook.log("the commands of an agent could not run; they run later")
        return {}
    return done


def start(hook: "Hook") -> None:
    """Process the spool in another process, without waiting for it. Further calls do nothing."""
    if hook.is_worker_awake or hook.wake_worker():
        return
    hook.is_worker_awake = True
    start_beside(hook)


def start_beside(hook: "Hook") -> None:
    """Start `ctx hook apply` even if there is a worker. A lock ensures that only one of them
    works."""
    _spawn(hook)


def _spawn(hook: "Hook", out: int | None = None) -> None:
    from ctx.worker import spawn

    # The process runs in another folder, so paths must be absolute.
    environment = {**hook.environment, "CTX_HOME": hook.home, "CTX_DB": hook.database}
    spawn.spawn(hook.home, ("hook", "apply", "--quick", "--format", "json"), environment, out)
