"""The processes of a tool, found by their temporary HOME: also those that left their parent.

The figures come from /proc, so this needs Linux.
"""

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, TypeVar

from bench.timing import Cost

PATIENCE_S = 300
Found = TypeVar("Found")
_TICKS = os.sysconf("SC_CLK_TCK")


class Ran(NamedTuple):
    cost: Cost
    code: int
    out: bytes


@contextmanager
def temporary_home() -> Iterator[Path]:
    """A folder that serves as HOME. At the end, all processes that have it are ended."""
    with tempfile.TemporaryDirectory(prefix="ctx-peer-", ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        try:
            yield home
        finally:
            end_all(home)


def environment(home: Path, *bins: Path, **more: str) -> dict[str, str]:
    """Nothing of this environment but PATH; statistics are declined."""
    path = os.pathsep.join([*map(str, bins), os.environ["PATH"]])
    return {"HOME": str(home), "PATH": path, "LANG": "C.UTF-8", "DO_NOT_TRACK": "1", **more}


def run(command: Sequence[str], reads: bytes, surroundings: Mapping[str, str], folder: Path) -> Ran:
    """A whole process. CPU time includes the children that it waited for."""
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as out:
        source.write(reads)
        source.seek(0)
        started = time.perf_counter()
        child = subprocess.Popen(
            command, env=surroundings, cwd=folder, stdin=source, stdout=out,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.perf_counter() - started
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        return Ran(Cost(usage.ru_utime + usage.ru_stime, wall), child.returncode, out.read())


def running(home: Path) -> list[int]:
    """The processes that were started with this HOME, without zombies."""
    wanted = f"HOME={home}".encode()
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):
                if wanted in (folder / "environ").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
    return sorted(found)


def end_all(home: Path) -> None:
    """End them by their ids, until none is left: one of them may just have started another."""

    def are_ended() -> bool:
        pids = running(home)
        for pid in pids:
            end(pid)
        return not pids

    wait_for("the end of all processes", are_ended)


def end(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def wait_for(what: str, holds: Callable[[], Found | None]) -> Found:
    """Wait until a condition holds, and return its value."""
    deadline = time.monotonic() + PATIENCE_S
    while not (found := holds()):
        if time.monotonic() > deadline:
            raise SystemExit(f"There was no sign of {what} for {PATIENCE_S} s.")
        time.sleep(0.05)
    return found


def cpu_seconds(pid: int) -> float:
    """The CPU time of a process so far, with the children that it waited for."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / _TICKS


def resident_mb(pids: Sequence[int]) -> float:
    """Resident memory of all of them together."""
    total = 0
    for pid in pids:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                total += int(line.split()[1])
    return total / 1024
