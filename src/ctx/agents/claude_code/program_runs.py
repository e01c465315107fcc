"""Runs a program: where a shell finds it, and its output, with a time limit."""

import os
import select
import signal
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ctx import clock

# How long a killed process may take to end.
_GOING_S = 1.0


class ProcessResult(NamedTuple):
    code: int
    out: bytes
    err: bytes


def programs(name: str, folders: Iterable[str]) -> Iterator[str]:
    """The programs of a name in the folders of a PATH, first the one that a shell runs.

    Relative folders are ignored: a program there is untrusted.
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
    """Run it to its end, and whatever it has started; None: it took longer than that.

    Everybody that it starts holds the end of a pipe. So it is known when the last of them is
    gone, also of those that have left its group.
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
                # Not before it has ended could anybody else have its number.
                if process.returncode is None:
                    os.killpg(process.pid, signal.SIGKILL)
        select.select([held], [], [], max(_GOING_S, deadline - clock.monotonic()))
        return ended
    finally:
        os.close(held)
