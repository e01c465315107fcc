"""Requests to the worker over its socket. The HTTP is written by hand, because importing a client
takes too long.

The result is an answer within the time limit, or None: if no worker runs, if it does not answer, or
if the answer is invalid.
"""

import _socket
import json
import os

from ctx import clock, layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ctx.agents.runtime.hook import Hook

_LARGEST = 4 * 1024 * 1024


def ask(
    hook: "Hook", path: str, question: "dict[str, Any]", seconds: float
) -> "dict[str, Any] | None":
    """The worker's answer; None if there is no worker, or if it does not answer in time."""
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
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connection.settimeout(_seconds_left(deadline))
        connection.connect(address)
        connection.sendall(request)
        response = b""
        while len(response) < _LARGEST:
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
