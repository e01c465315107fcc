"""Worker processes that parse and resolve files in parallel.

Each one is this interpreter, running `serve`, with a pipe in and a pipe out; messages are plain
values. If a worker dies or hangs in a grammar, only the current file is lost, and the worker is
replaced. When this process dies, the input of the workers ends, and they exit.
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
"""So few files are processed in this process, because starting workers takes longer."""
LARGE = 200_000
"""In bytes. A file of this size is never parsed in this process, because a grammar may take very
long."""

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
    """The worker processes and the threads that wait for them. Use it as a context manager."""

    def __init__(self, workers: int | None = None) -> None:
        self._count = workers or min(os.cpu_count() or 1, _MOST_WORKERS)
        self._alive: list[subprocess.Popen[bytes]] = []
        self._idle: list[subprocess.Popen[bytes]] = []
        self._lock = threading.Lock()
        self._is_over = False

    def __enter__(self) -> "ProcessPool":
        return self

    def __exit__(self, *_: object) -> None:
        """Kill all workers, whatever they are doing."""
        self._is_over = True
        with self._lock:
            for process in self._alive:
                process.kill()
            for process in self._alive:
                process.wait()
                _close(process)
            self._alive.clear()

    def read(self, root: str, max_bytes: int, files: Sequence[FileToRead]) -> Iterator[FileRecord]:
        """The records of files, in the order of completion."""
        jobs: list[_Job] = [
            _ReadJob(root, max_bytes, list(files[start : start + READ_BATCH]))
            for start in range(0, len(files), READ_BATCH)
        ]
        decoder = msgspec.msgpack.Decoder(FileRecord)
        for answer in self._job_results(jobs):
            if isinstance(answer, bytes):
                yield decoder.decode(answer)
            else:
                yield file_reader.failed_record(files[answer])

    def resolve(self, database: str, root: str, files: Sequence[int]) -> Iterator[ResolvedEdges]:
        """The edges of files, in the order of completion."""
        jobs: list[_Job] = [
            _ResolveJob(database, root, list(files[start : start + RESOLVE_BATCH]))
            for start in range(0, len(files), RESOLVE_BATCH)
        ]
        decoder = msgspec.msgpack.Decoder(ResolvedEdges)
        for answer in self._job_results(jobs):
            # A file that could not be resolved stays pending and is counted until the next refresh.
            if isinstance(answer, bytes):
                yield decoder.decode(answer)

    def _job_results(self, jobs: list[_Job]) -> "Iterator[bytes | int]":
        """The answers to all jobs; for a file that no worker could process, its index."""
        todo: queue.SimpleQueue[tuple[int, _Job]] = queue.SimpleQueue()
        number = 0
        for job in jobs:
            todo.put((number, job))
            number += len(job.files)
        # Bounded, so that answers do not pile up before they are written.
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
        """The loop of one thread: send jobs to one worker and collect its answers."""
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
                        # The worker died or hung at the next file. Another process may be the
                        # cause, so the file gets a second chance.
                        self._end(process)
                        process = None
                        if failed == answered:
                            done.put(first + answered)
                            answered += 1
                        failed = answered
            if process:
                # Can be used for the next jobs.
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
            process = self._start_worker()
            assert process.stdout is not None
            if _receive(process.stdout, _MOST_SECONDS) == _READY or self._is_over:
                return process
            self._end(process)
        # The failure is not caused by a file.
        raise ProgramFailure(
            "The worker processes for the code index cannot be started.",
            hint="Install ctx again; if it was being replaced just now, try again.",
        )

    def _start_worker(self) -> subprocess.Popen[bytes]:
        # Import from our own location only: the working folder may belong to somebody else.
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
    """One answer per file, as long as they arrive."""
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
        # The pipe is closed: the worker is gone, or we are shutting down.
        return


def _send(pipe: IO[bytes], message: bytes) -> None:
    left = memoryview(len(message).to_bytes(_HEAD, "big") + message)
    while left:
        # A pipe accepts only as much as it has room for.
        left = left[pipe.write(left) :]
    pipe.flush()


def _receive(pipe: IO[bytes], seconds: int) -> bytes | None:
    """The next message of another process; None at its end or after a timeout."""
    descriptor = pipe.fileno()
    message = b""
    size = _HEAD
    while len(message) < size and seconds:
        ready, _, _ = select.select([descriptor], [], [], 1.0)
        if not ready:
            # Counted rather than measured: if this process is suspended, so is the other.
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
    """Answer jobs until the input ends. This runs in the worker processes."""
    # Nothing here lives longer than one file, and there are no reference cycles.
    gc.disable()
    source, sink = open(0, "rb"), open(1, "wb")  # noqa: SIM115
    _send(sink, _READY)
    decoder = msgspec.msgpack.Decoder(_Job)
    names: resolver.Resolver | None = None
    limits: language_detection.FileLimits | None = None
    while len(head := source.read(_HEAD)) == _HEAD:
        job = decoder.decode(source.read(int.from_bytes(head, "big")))
        if isinstance(job, _ReadJob):
            # A pool reads the files of one project.
            limits = limits or file_reader.limits(job.root, job.max_bytes)
            for wanted in job.files:
                record = file_reader.read(job.root, wanted, limits)
                _send(sink, _encoder.encode(record))
        else:
            names = names or resolver.Resolver.at(job.database, job.root)
            for file_id in job.files:
                _send(sink, _encoder.encode(names.resolve(file_id)))
