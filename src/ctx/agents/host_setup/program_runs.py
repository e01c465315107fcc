"""Runs a program: finds it as a shell would, and returns its output, with a time limit."""

import os
import select
import signal
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ctx import clock

# How long a killed process may take to end.
_STOP_WAIT_S = 1.0


class ProcessResult(NamedTuple):
    code: int
    out: bytes
    err: bytes


def programs(name: str, folders: Iterable[str]) -> Iterator[str]:
    """The programs of this name in the folders of a PATH; a shell runs the first one.

    Relative folders are ignored, because programs there are untrusted.
    """
    for folder in folders:
        program = os.path.join(folder, name)
        if os.path.isabs(folder) and os.path.isfile(program) and os.access(program, os.X_OK):
            yield program


def run(
    words: Sequence[str],
    environment: Mapping[str, str],
    folder: str,
    *,
    seconds: float,
    stdin: bytes = b"",
) -> ProcessResult | None:
    """Run a program, and wait for it and all processes that it started; None if it takes too long.

    All of them inherit one end of a pipe. The other end shows when the last one has exited, even if
    it has left the process group.
    """
    held, holds = os.pipe()
    try:
        process = subprocess.Popen(
            words,
            env=environment,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=[holds],
            start_new_session=True,
        )
    except BaseException:
        os.close(held)
        raise
    finally:
        os.close(holds)
    deadline = clock.monotonic() + seconds
    ended = None
    try:
        with process:
            try:
                out, err = process.communicate(stdin, timeout=seconds)
                ended = ProcessResult(process.returncode, out, err)
            except subprocess.TimeoutExpired:
                pass
            finally:
                # Until the process is waited for, its id cannot be reused.
                if process.returncode is None:
                    os.killpg(process.pid, signal.SIGKILL)
        select.select([held], [], [], max(_STOP_WAIT_S, deadline - clock.monotonic()))
        return ended
    finally:
        os.close(held)
