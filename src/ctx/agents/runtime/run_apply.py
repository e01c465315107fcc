"""Runs an agent's commands, and returns their results; asks the worker.

The worker runs them if there is one. Otherwise this starts `ctx hook apply`: a hook has only the
standard library, and running commands needs the rest of ctx.
"""

import json
import os
import select
import time

from ctx import clock, layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ctx.agents.runtime.hook import Hook

# How long to wait for the worker.
_ASKING_S = 1.0
_LARGEST_ANSWER = 4 * 1024 * 1024


def apply(hook: "Hook", seconds: float) -> "list[dict[str, Any]]":
    """Run the pending commands, and return the result for each answer of an agent.

    Empty if it takes too long: the commands run later.
    """
    deadline = time.monotonic() + seconds
    done = ask(hook, "/api/apply", {}, min(_ASKING_S * clock.patience, seconds))
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


# The worker, over its socket


def ask(
    hook: "Hook", path: str, question: "dict[str, Any]", seconds: float
) -> "dict[str, Any] | None":
    """The worker's answer; None if there is no worker, or if it does not answer in time.

    The HTTP is written by hand, because importing a client takes too long.
    """
    if hook.is_alone:
        return None
    deadline = clock.monotonic() + seconds
    address = layout.UserStore(hook.home).worker_socket
    if not _is_ours(os.path.dirname(address)):
        return None
    body = json.dumps(question).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: ctx\r\nConnection: close\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    try:
        response = _exchange(address, head.encode() + body, deadline)
        status, _, rest = response.partition(b"\r\n")
        answer = json.loads(rest.partition(b"\r\n\r\n")[2]) if b" 200 " in status else None
    except (OSError, ValueError, RecursionError):
        return None
    return answer if isinstance(answer, dict) else None


def _exchange(address: str, request: bytes, deadline: float) -> bytes:
    import _socket

    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connection.settimeout(_seconds_left(deadline))
        connection.connect(address)
        connection.sendall(request)
        response = b""
        while len(response) < _LARGEST_ANSWER:
            connection.settimeout(_seconds_left(deadline))
            part = connection.recv(65536)
            if not part:
                return response
            response += part
        raise OSError("the answer is too large")
    finally:
        connection.close()


def _seconds_left(deadline: float) -> float:
    left = deadline - clock.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _is_ours(folder: str) -> bool:
    """Whether only this user can create a socket in the folder."""
    try:
        status = os.stat(folder, follow_symlinks=False)
    except OSError:
        return False
    return status.st_uid == os.getuid() and not status.st_mode & 0o022
