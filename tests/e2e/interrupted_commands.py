"""Commands as processes that get a signal at a certain operation instead of a certain time.

One process has everything imported, and forks for each command. The fork runs the command as the
program does, from its first line to the end of the interpreter. Its streams are those that Python
creates for a file or a pipe, independent of the environment.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

By = Literal["operation", "call"]
ROOT = Path(__file__).parent.parent.parent

PROGRAM = """
import contextlib, gc, io, json, os, pkgutil, signal, sqlite3, sys
from importlib import import_module

import ctx.__main__, ctx.cli
from ctx import interrupts
from ctx.cli import commands
from ctx.cli.main import main
from tests.faults import Disk

for module in pkgutil.iter_modules(ctx.cli.__path__):
    import_module(f"ctx.cli.{module.name}")
for name in commands.COMMANDS:
    if name != "help":
        commands.command_named(name)
with contextlib.redirect_stdout(io.StringIO()):
    for words in (["add", "--type=fact", "warm"], ["list"], ["undo"]):
        main(["-q", *words, "--db", sys.argv[1] + "/warm.db"])


def run(said, words, number, at, by):
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


# Whoever ends would look through all that was loaded here.
gc.freeze()
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


for line in sys.stdin:
    said, folder, variables, words, number, at, by, streams = json.loads(line)
    pid = os.fork()
    if not pid:
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(variables)
        usual = (os.devnull, said + ".out", said + ".err")
        targets = [given or name for given, name in zip(streams, usual)]
        sys.stdin, sys.stdout, sys.stderr = map(open_stream, (0, 1, 2), targets)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.exit(run(said, words, number, at, by))
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    print(status, flush=True)
"""


class Done(NamedTuple):
    code: int
    out: str
    err: str
    points: int
    """How many operations, or calls, there were until its end; 0 where it ended at once."""
    log: list[str]


class Interrupter:
    def __init__(self, process: "subprocess.Popen[str]", space: Path) -> None:
        self._process = process
        self._said = space / "said"

    def run(
        self,
        words: Sequence[str],
        folder: Path,
        *,
        at: int | None = None,
        by: By = "operation",
        number: int = signal.SIGINT,
        streams: tuple[str, str, str] = ("", "", ""),
    ) -> Done:
        """Run a command. It gets the signal at one of its operations (of the file system, or SQL
        statements), or at one of all the calls of functions that it makes.

        `streams` names other files for stdin, stdout and stderr: a path, `closed`, or `pipe` for
        one that nobody reads.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        counted = Path(f"{self._said}.count")
        counted.unlink(missing_ok=True)
        for name in ("out", "err"):
            Path(f"{self._said}.{name}").write_text("")
        variables = dict(os.environ)
        request = [str(self._said), str(folder), variables, words, int(number), at, by, streams]
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        code = int(self._process.stdout.readline())
        out, err = (Path(f"{self._said}.{name}").read_text() for name in ("out", "err"))
        count, log = json.loads(counted.read_text()) if counted.exists() else (0, [])
        return Done(code, out, err, count, log)


@contextmanager
def interrupter(space: Path) -> Iterator[Interrupter]:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(space)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        # The first commands, which load everything, have a folder and a home of their own.
        cwd=space,
        env={**os.environ, "CTX_HOME": str(space / ".ctx"), "PYTHONPATH": str(ROOT)},
    ) as process:
        yield Interrupter(process, space)
