"""Worker processes that parse and resolve files in parallel.

Each one is this interpreter, running `serve`, with a pipe in and a pipe out; messages are plain
values. If a worker dies or hangs in a grammar, only the current file is lost, and the worker is
replaced. When this process dies, the input of the workers ends, and they exit.

A worker sends the answers of several files together, because each message wakes this process. After
a failure it sends each one alone, which shows the file that is the cause.
"""

import contextlib
import gc
import os
import queue
import select
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import IO

import msgspec

from ctx import clock
from ctx.code import file_reader, index_check, language_detection
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
_TOGETHER_SECONDS = 1.0
_TOGETHER_BYTES = 1 << 18
"""A worker holds answers back for this long, or until they have this size."""

_encoder = msgspec.msgpack.Encoder()
_answers_decoder = msgspec.msgpack.Decoder(list[bytes])


class _ReadJob(msgspec.Struct, tag="read", frozen=True):
    root: str
    max_bytes: int
    files: list[FileToRead]
    one_by_one: bool = False
    """Whether each answer is sent at once."""


class _ResolveJob(msgspec.Struct, tag="resolve", frozen=True):
    database: str
    root: str
    files: list[int]
    one_by_one: bool = False


_Job = _ReadJob | _ResolveJob

_Answer = list[bytes] | int | BaseException | None
"""The answers of a worker, the index of a file that failed, an error, or the end of a thread."""


class ProcessPool:
    """The worker processes and the threads that wait for them. Use it as a context manager."""

    def __init__(self, workers: int | None = None) -> None:
        self._count = workers or min(os.cpu_count() or 1, _MOST_WORKERS)
        self._alive: list[subprocess.Popen[bytes]] = []
        self._threads: list[threading.Thread] = []
        # Bounded, so that answers do not pile up before they are written.
        self._done: queue.Queue[_Answer] = queue.Queue(8)
        self._lock = threading.Lock()
        self._is_over = False

    def __enter__(self) -> "ProcessPool":
        return self

    def __exit__(self, *_: object) -> None:
        """Kill all workers, whatever they are doing, and wait for the threads."""
        with self._lock:
            self._is_over = True
            for process in self._alive:
                process.kill()
        for thread in self._threads:
            while thread.is_alive():
                # It may be waiting until there is room for an answer.
                with contextlib.suppress(queue.Empty):
                    self._done.get(timeout=0.01)
        for process in self._alive:
            process.wait()
            _close(process)

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
        left = min(self._count, len(jobs))
        for _ in range(left):
            thread = threading.Thread(target=self._work, args=(todo,), daemon=True)
            thread.start()
            self._threads.append(thread)
        while left:
            answer = self._done.get()
            if answer is None:
                left -= 1
            elif isinstance(answer, BaseException):
                raise answer
            elif isinstance(answer, int):
                yield answer
            else:
                yield from answer

    def _work(self, todo: "queue.SimpleQueue[tuple[int, _Job]]") -> None:
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
                    if process is None:
                        return
                    rest = msgspec.structs.replace(job, files=job.files[answered:])
                    for answers in _answers(process, rest):
                        answered += len(answers)
                        self._done.put(answers)
                    if answered < len(job.files) and not self._is_over:
                        # The worker died or hung at the next file, or, unless it sent the answers
                        # one by one, at a later one. Another process may be the cause, so the file
                        # gets a second chance.
                        self._end(process)
                        process = None
                        if job.one_by_one and failed == answered:
                            self._done.put(first + answered)
                            answered += 1
                        failed = answered
                        job = msgspec.structs.replace(job, one_by_one=True)
        except (OSError, ProgramFailure) as error:
            self._done.put(error)
        finally:
            self._done.put(None)

    def _start(self) -> subprocess.Popen[bytes] | None:
        """A worker that is ready; None if it is not needed any more."""
        for _ in range(_STARTS):
            process = self._start_worker()
            if process is None:
                return None
            assert process.stdout is not None
            if _receive(process.stdout, _MOST_SECONDS) == _READY or self._is_over:
                return process
            self._end(process)
        # The failure is not caused by a file.
        raise ProgramFailure(
            "The worker processes for the code index cannot be started.",
            hint="Install ctx again; if it was being replaced just now, try again.",
        )

    def _start_worker(self) -> subprocess.Popen[bytes] | None:
        # Nothing is started after the end: it would be left behind.
        with self._lock:
            if self._is_over:
                return None
            process = subprocess.Popen(
                self._command(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
            )
            self._alive.append(process)
        return process

    def _command(self) -> list[str]:
        # Import from our own location only: the working folder may belong to somebody else.
        own = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        start = (
            "import sys; sys.path.insert(0, sys.argv[1]); from ctx.code.process_pool import serve; "
        )
        return [sys.executable, "-P", "-c", f"{start}serve()", own]

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        process.kill()
        process.wait()
        with self._lock:
            self._alive.remove(process)
        _close(process)


def _close(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe:
            with contextlib.suppress(OSError):
                pipe.close()


def _answers(process: subprocess.Popen[bytes], job: _Job) -> Iterator[list[bytes]]:
    """One answer per file in all, as long as they arrive."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        _send(process.stdin, _encoder.encode(job))
        left = len(job.files)
        while left > 0:
            message = _receive(process.stdout, _MOST_SECONDS)
            if message is None:
                return
            answers = _answers_decoder.decode(message)
            left -= len(answers)
            yield answers
    except (OSError, ValueError):
        # The worker is gone, or what it sent is not an answer.
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
            limits = limits or index_check.limits(job.root, job.max_bytes)
            records = (file_reader.read(job.root, wanted, limits) for wanted in job.files)
            _send_answers(sink, map(_encoder.encode, records), job.one_by_one)
        else:
            names = names or resolver.Resolver.at(job.database, job.root)
            edges = map(names.resolve, job.files)
            _send_answers(sink, map(_encoder.encode, edges), job.one_by_one)


def _send_answers(sink: IO[bytes], answers: Iterable[bytes], one_by_one: bool) -> None:
    together: list[bytes] = []
    size, since = 0, clock.monotonic()
    for answer in answers:
        together.append(answer)
        size += len(answer)
        now = clock.monotonic()
        if one_by_one or size >= _TOGETHER_BYTES or now - since >= _TOGETHER_SECONDS:
            _send(sink, _encoder.encode(together))
            together.clear()
            size, since = 0, now
    if together:
        _send(sink, _encoder.encode(together))
