"""Several processes that read and resolve files at once.

Each is this interpreter, running `serve`, with a pipe in and a pipe out: what is asked and answered
are plain values. A process that dies, or hangs in a grammar, costs the one file it was at; it is
replaced. When we die, its input ends, and so does it.
"""

import contextlib
import gc
import os
import queue
import select
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import IO

import msgspec

from ctx.code import file_reader, language_detection
from ctx.code.file_reader import FileRecord, FileToRead
from ctx.code.resolve import resolver
from ctx.code.resolve.resolver import ResolvedEdges
from ctx.errors import ProgramFailure

READ_BATCH = 24
RESOLVE_BATCH = 64
FEW = 64
"""So many files are read, or resolved, here: starting processes takes longer."""
LARGE = 200_000
"""A file of so many bytes is never read here: nobody knows how long a grammar takes."""

_MOST_SECONDS = 30
_READY = b"ready"
_STARTS = 3
_MOST_WORKERS = 8
_HEAD = 4

_encoder = msgspec.msgpack.Encoder()


class _ReadJob(msgspec.Struct, tag="read", frozen=True):
    root: str
    max_bytes: int
    files: list[FileToRead]


class _ResolveJob(msgspec.Struct, tag="resolve", frozen=True):
    database: str
    root: str
    files: list[int]


_Job = _ReadJob | _ResolveJob


class ProcessPool:
    """The processes, and who waits for which of them. To be used as a context."""

    def __init__(self, workers: int | None = None) -> None:
        self._count = workers or min(os.cpu_count() or 1, _MOST_WORKERS)
        self._alive: list[subprocess.Popen[bytes]] = []
        self._idle: list[subprocess.Popen[bytes]] = []
        self._lock = threading.Lock()
        self._is_over = False

    def __enter__(self) -> "ProcessPool":
        return self

    def __exit__(self, *_: object) -> None:
        """End all of them, whatever they are doing."""
        self._is_over = True
        with self._lock:
            for process in self._alive:
                process.kill()
            for process in self._alive:
                process.wait()
                _close(process)
            self._alive.clear()

    def read(self, root: str, max_bytes: int, files: Sequence[FileToRead]) -> Iterator[FileRecord]:
        """What is in files, in the order in which they are done."""
        jobs: list[_Job] = [
            _ReadJob(root, max_bytes, list(files[start : start + READ_BATCH]))
            for start in range(0, len(files), READ_BATCH)
        ]
        decoder = msgspec.msgpack.Decoder(FileRecord)
        for answer in self._done(jobs):
            if isinstance(answer, bytes):
                yield decoder.decode(answer)
            else:
                yield file_reader.failed_record(files[answer])

    def resolve(self, database: str, root: str, files: Sequence[int]) -> Iterator[ResolvedEdges]:
        """What files mention, in the order in which they are done."""
        jobs: list[_Job] = [
            _ResolveJob(database, root, list(files[start : start + RESOLVE_BATCH]))
            for start in range(0, len(files), RESOLVE_BATCH)
        ]
        decoder = msgspec.msgpack.Decoder(ResolvedEdges)
        for answer in self._done(jobs):
            # What could not be resolved is left for the next time, and counted until then.
            if isinstance(answer, bytes):
                yield decoder.decode(answer)

    def _done(self, jobs: list[_Job]) -> "Iterator[bytes | int]":
        """The answers to all jobs; for a file that nobody could do, its number."""
        todo: queue.SimpleQueue[tuple[int, _Job]] = queue.SimpleQueue()
        number = 0
        for job in jobs:
            todo.put((number, job))
            number += len(job.files)
        # Bounded, so that answers do not pile up before they are written down.
        done: queue.Queue[bytes | int | BaseException | None] = queue.Queue(8 * READ_BATCH)
        threads = [
            threading.Thread(target=self._work, args=(todo, done), daemon=True)
            for _ in range(min(self._count, len(jobs)))
        ]
        for thread in threads:
            thread.start()
        left = len(threads)
        while left:
            answer = done.get()
            if answer is None:
                left -= 1
            elif isinstance(answer, BaseException):
                raise answer
            else:
                yield answer

    def _work(
        self,
        todo: "queue.SimpleQueue[tuple[int, _Job]]",
        done: "queue.Queue[bytes | int | BaseException | None]",
    ) -> None:
        """What one thread does: hand jobs to one process, and collect its answers."""
        process = None
        try:
            while not self._is_over:
                try:
                    first, job = todo.get_nowait()
                except queue.Empty:
                    break
                answered, failed = 0, -1
                while answered < len(job.files) and not self._is_over:
                    process = process or self._start()
                    rest = msgspec.structs.replace(job, files=job.files[answered:])
                    for answer in _answers(process, rest):
                        answered += 1
                        done.put(answer)
                    if answered < len(job.files) and not self._is_over:
                        # It died or hangs at the next file. That may have been somebody else's
                        # doing, so the file gets a second chance.
                        self._end(process)
                        process = None
                        if failed == answered:
                            done.put(first + answered)
                            answered += 1
                        failed = answered
            if process:
                # For whatever comes next.
                with self._lock:
                    self._idle.append(process)
        except (OSError, ProgramFailure) as error:
            done.put(error)
        finally:
            done.put(None)

    def _start(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        for _ in range(_STARTS):
            process = self._started()
            assert process.stdout is not None
            if _receive(process.stdout, _MOST_SECONDS) == _READY or self._is_over:
                return process
            self._end(process)
        # Then no file is to blame.
        raise ProgramFailure(
            "The processes that read the code cannot be started.",
            hint="Install ctx again; if it was being replaced just now, try again.",
        )

    def _started(self) -> subprocess.Popen[bytes]:
        # Where we are, and nowhere else: the folder we stand in belongs to a stranger.
        own = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        start = (
            "import sys; sys.path.insert(0, sys.argv[1]); from ctx.code.process_pool import serve; "
        )
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", f"{start}serve()", own],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
        )
        with self._lock:
            self._alive.append(process)
            if self._is_over:
                process.kill()
        return process

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        process.kill()
        process.wait()
        with self._lock:
            if process in self._alive:
                self._alive.remove(process)
                _close(process)


def _close(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe:
            with contextlib.suppress(OSError):
                pipe.close()


def _answers(process: subprocess.Popen[bytes], job: _Job) -> Iterator[bytes]:
    """One answer for each file, as long as they come."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        _send(process.stdin, _encoder.encode(job))
        for _ in job.files:
            answer = _receive(process.stdout, _MOST_SECONDS)
            if answer is None:
                return
            yield answer
    except (OSError, ValueError):
        # Its pipe is closed: it is gone, or we are about to be.
        return


def _send(pipe: IO[bytes], message: bytes) -> None:
    left = memoryview(len(message).to_bytes(_HEAD, "big") + message)
    while left:
        # A pipe takes as much as it has room for.
        left = left[pipe.write(left) :]
    pipe.flush()


def _receive(pipe: IO[bytes], seconds: int) -> bytes | None:
    """The next message of another process; None at its end, or where none is whole in time."""
    descriptor = pipe.fileno()
    message = b""
    size = _HEAD
    while len(message) < size and seconds:
        ready, _, _ = select.select([descriptor], [], [], 1.0)
        if not ready:
            # Counted rather than measured: while we are stopped, so is the other.
            seconds -= 1
        else:
            part = os.read(descriptor, size - len(message))
            if not part:
                return None
            message += part
            if size == _HEAD == len(message):
                size += int.from_bytes(message, "big")
    return message[_HEAD:] if len(message) == size > _HEAD else None


def serve() -> None:
    """Answer until the input ends. What runs in the processes of a crew."""
    # Nothing here lives longer than a file, and nothing refers to itself.
    gc.disable()
    source, sink = open(0, "rb"), open(1, "wb")  # noqa: SIM115
    _send(sink, _READY)
    decoder = msgspec.msgpack.Decoder(_Job)
    names: resolver.Resolver | None = None
    limits: language_detection.FileLimits | None = None
    while len(head := source.read(_HEAD)) == _HEAD:
        job = decoder.decode(source.read(int.from_bytes(head, "big")))
        if isinstance(job, _ReadJob):
            # A crew reads the files of one project.
            limits = limits or file_reader.limits(job.root, job.max_bytes)
            for wanted in job.files:
                found = file_reader.read(job.root, wanted, limits)
                _send(sink, _encoder.encode(found))
        else:
            names = names or resolver.Resolver.at(job.database, job.root)
            for file_id in job.files:
                _send(sink, _encoder.encode(names.resolve(file_id)))
