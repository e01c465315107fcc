"""Commands in processes that start fast, and that are killed, interrupted or limited on the way.

One process has everything imported and forks for each command. What stops a command is a delay, or
a signal at one of its operations or calls; or it has a small disk, no rights, other streams or
another clock. Processes that a command starts have the same clock, because Python loads
`sitecustomize` from their path.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

By = Literal["operation", "call"]
ROOT = Path(__file__).parent.parent.parent

SITE = """
import os, time
gmtime, localtime, time_ns = time.gmtime, time.localtime, time.time_ns
began, base = 0, None
def set_clock(wall_ms):
    global began, base
    began, base = time.monotonic_ns(), None if wall_ms is None else int(wall_ms) * 1_000_000
time.time_ns = lambda: time_ns() if base is None else base + time.monotonic_ns() - began
time.time = lambda: time.time_ns() / 1_000_000_000
time.gmtime = lambda at=None: gmtime(time.time() if at is None else at)
time.localtime = lambda at=None: localtime(time.time() if at is None else at)
set_clock(os.environ.get("WALL_MS"))
"""

PROGRAM = """
import contextlib, gc, io, json, os, pkgutil, resource, signal, sitecustomize, sqlite3, sys, time
from importlib import import_module

import ctx.__main__, ctx.cli, ctx.operations
from ctx import interrupts
from ctx.cli import commands
from ctx.cli.main import main
from tests.faults import Disk

for package in (ctx.cli, ctx.operations):
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        import_module(module.name)
for name in commands.COMMANDS:
    if name != "help":
        commands.command_named(name)

# What a command imports when it is run must be there too: another user may not be able to read it.
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    for words in (
        ["add", "--type=fact", "warm"], ["add", "--type=fatc", "x"], ["list"], ["undo"],
        ["search", "warm"], ["store", "check"], ["store", "recover"], ["nonsense"],
        ["list", "--db", "/dev/null/x"], ["init", sys.argv[1] + "/warm"],
    ):
        main(["--db", sys.argv[1] + "/warm.db", *words])


def run_whole(said, words, number, at, by):
    '''The program from its first line to the end of the interpreter, which counts its points.'''
    disk = Disk(at if by == "operation" else None, signal_with=number)
    connect = sqlite3.connect

    class Counted(sqlite3.Connection):
        def execute(self, statement, *rest):
            disk._step("SQL", statement)
            return super().execute(statement, *rest)

    calls = 0

    def count(*_):
        nonlocal calls
        calls += 1
        if calls == at:
            os.kill(os.getpid(), number)

    install = interrupts.install

    def installed():
        # Before this, Python itself handles signals.
        install()
        if by == "call":
            sys.setprofile(count)

    def ended(code):
        sys.setprofile(None)
        with open(said + ".count", "w") as file:
            json.dump([disk.operations if by == "operation" else calls, disk.log], file)
        return end(code)

    interrupts.install = installed
    end, interrupts.end = interrupts.end, ended
    sys.argv = ["ctx", *words]
    with disk.installed():
        sqlite3.connect = lambda *given, **named: connect(*given, **{**named, "factory": Counted})
        return ctx.__main__.main()


def open_stream(descriptor, target):
    if target == "closed":
        os.close(descriptor)
        return None
    if target == "pipe":
        # Whoever was to read has gone.
        read, opened = os.pipe()
        os.close(read)
    else:
        opened = os.open(target, os.O_RDWR | os.O_CREAT)
    os.dup2(opened, descriptor)
    os.close(opened)
    return open(descriptor, "r" if descriptor == 0 else "w", closefd=False)


def run(said, folder, variables, words, streams, number, at, by, wall_ms, largest_file, nobody):
    os.chdir("/" if nobody else folder)
    os.environ.clear()
    os.environ.update(variables)
    targets = [given or said + name for given, name in zip(streams, (".in", ".out", ".err"))]
    sys.stdin, sys.stdout, sys.stderr = map(open_stream, (0, 1, 2), targets)
    sitecustomize.set_clock(wall_ms)
    if largest_file:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))
    if nobody and os.getuid() == 0:
        os.setgid(65534)
        os.setuid(65534)
    if by:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.exit(run_whole(said, words, number, at, by))
    code = 70
    try:
        code = main(words)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


# Whoever ends would look through all that was loaded here.
gc.freeze()
for line in sys.stdin:
    delay, *request = json.loads(line)
    started = time.monotonic()
    pid = os.fork()
    if not pid:
        run(*request)
    if delay is not None:
        time.sleep(delay)
        os.kill(pid, 9)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    print(json.dumps([status, time.monotonic() - started]), flush=True)
"""


class Done(NamedTuple):
    words: tuple[str, ...]
    code: int
    """-9 if it was killed."""
    seconds: float
    out: str
    err: str
    points: int
    """How many operations, or calls, there were until its end; 0 where it ended at once."""
    log: list[str]

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Forker:
    def __init__(self, process: "subprocess.Popen[str]", space: Path) -> None:
        self._process = process
        self._space = space

    def run(
        self,
        words: Sequence[str],
        folder: Path | None = None,
        *,
        stdin: str = "",
        streams: tuple[str, str, str] = ("", "", ""),
        kill_after: float | None = None,
        by: By | None = None,
        at: int | None = None,
        number: int = signal.SIGINT,
        largest_file: int = 0,
        as_nobody: bool = False,
        wall_ms: int | None = None,
        home: str = "",
    ) -> Done:
        """Run a command, in the current folder and environment.

        It can be killed after so many seconds; get a signal at one of its operations (of the file
        system, or SQL statements) or of all its calls of functions; be unable to make a file
        larger; run as a user who may not do everything, as root may; have another clock.

        `streams` names other files for stdin, stdout and stderr: a path, `closed`, or `pipe` for
        one that nobody reads. They are then what Python creates for a file or a pipe.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        said = f"{self._space}/said"
        for name, text in ((".in", stdin), (".out", ""), (".err", "")):
            Path(said + name).write_text(text)
        counted = Path(f"{said}.count")
        counted.unlink(missing_ok=True)
        environment = {**os.environ, **({"CTX_HOME": home} if home else {})}
        if wall_ms is not None:
            environment |= {"WALL_MS": str(wall_ms), "PYTHONPATH": str(self._space)}
        if any(streams):
            by = by or "operation"
        request = [
            kill_after, said, str(folder or Path.cwd()), environment, words, streams, int(number),
            at, by, wall_ms, largest_file, as_nobody,
        ]  # fmt: skip
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        code, seconds = json.loads(self._process.stdout.readline())
        out, err = (Path(f"{said}.{name}").read_text() for name in ("out", "err"))
        count, log = json.loads(counted.read_text()) if counted.exists() else (0, [])
        return Done(tuple(words), code, seconds, out, err, count, log)


@contextmanager
def forker(space: Path) -> Iterator[Forker]:
    (space / "sitecustomize.py").write_text(SITE)
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(space)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        # The first commands, which load everything, have a folder and a home of their own.
        cwd=space,
        env={**os.environ, "CTX_HOME": str(space / ".ctx"), "PYTHONPATH": f"{space}:{ROOT}"},
    ) as process:
        yield Forker(process, space)
