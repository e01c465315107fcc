"""No network but the loopback interface, for this process and all that it starts.

A tool that wants to send statistics or to download a model cannot, and what it measures is what a
user without a network gets. It needs Linux and the right to make a user namespace.
"""

import fcntl
import os
import shutil
import socket
import struct
import subprocess
import sys

_DONE = "CTX_BENCH_OFFLINE"
_GET_FLAGS, _SET_FLAGS, _UP = 0x8913, 0x8914, 0x1


def leave_network(module: str, arguments: list[str]) -> None:
    """Run the module again, in place of this process, in a network namespace of its own."""
    if os.environ.get(_DONE):
        _raise_loopback()
        return
    unshare = ["unshare", "--map-root-user", "--net"]
    if shutil.which("unshare") and not subprocess.run([*unshare, "true"], check=False).returncode:
        command = [*unshare, sys.executable, "-m", module, *arguments]
        os.execvpe(command[0], command, {**os.environ, _DONE: "1"})
    print("The network cannot be cut off here: the tools may use it.", flush=True)


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        asked = struct.pack("16sh", b"lo", 0)
        flags = struct.unpack("16sh", fcntl.ioctl(any_socket, _GET_FLAGS, asked))[1]
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sh", b"lo", flags | _UP))
