"""Commands in processes with any wall clock.

One process has everything imported and a clock that can be set. For each command it forks.
Processes that a command starts have the same clock, because Python loads `sitecustomize` from their
path.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

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
RUN_EACH = """
import gc, json, os, pkgutil, sitecustomize, sys, tempfile
from importlib import import_module
import ctx.cli, ctx.operations
from ctx.cli import commands
from ctx.cli.main import main
for package in (ctx.cli, ctx.operations):
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        import_module(module.name)
for name in commands.COMMANDS:
    if name != "help":
        commands.command_named(name)
gc.freeze()


def run(folder, variables, words, said):
    files = [tempfile.TemporaryFile() for _ in range(3)]
    files[0].write(said.encode())
    files[0].seek(0)
    child = os.fork()
    if not child:
        for fd, file in enumerate(files):
            os.dup2(file.fileno(), fd)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(variables)
        sys.argv = ["ctx", *words]
        code = main()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    for file in files:
        file.seek(0)
    return [code, *(file.read().decode() for file in files[1:])]


for line in sys.stdin:
    folder, variables, typed = json.loads(line)
    sitecustomize.set_clock(variables.get("WALL_MS"))
    answers = [run(folder, variables, words, said) for words, said in typed]
    print(json.dumps(answers), flush=True)
"""


class Ran(NamedTuple):
    words: tuple[str, ...]
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def year_ms(year: int, month: int = 1, day: int = 1) -> int:
    """Milliseconds since 1970, also for years that `datetime` does not support."""
    cycles, within = divmod(year - 2000, 400)
    moment = datetime(2000 + within, month, day, 10, 30, tzinfo=UTC)
    return int(moment.timestamp() * 1000) + cycles * 146_097 * 86_400_000


class Clock:
    """The process that runs commands at any time."""

    def __init__(self, process: "subprocess.Popen[str]", site: Path) -> None:
        self._process = process
        self._site = site

    def run(
        self,
        folder: Path,
        variables: dict[str, str],
        wall_ms: int | None,
        commands: Sequence[tuple[Sequence[str], str]],
    ) -> list[Ran]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        environment = {**variables, "PYTHONPATH": str(self._site)}
        if wall_ms is not None:
            environment["WALL_MS"] = str(wall_ms)
        self._process.stdin.write(json.dumps([str(folder), environment, commands]) + "\n")
        self._process.stdin.flush()
        answers = json.loads(self._process.stdout.readline())
        return [
            Ran(tuple(words), *answer) for (words, _), answer in zip(commands, answers, strict=True)
        ]


@contextmanager
def clock_process(site: Path) -> Iterator[Clock]:
    (site / "sitecustomize.py").write_text(SITE)
    with subprocess.Popen(
        [sys.executable, "-c", RUN_EACH],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(site)},
    ) as process:
        yield Clock(process, site)


class Clocked:
    """A folder and a home in which commands run at any time."""

    def __init__(self, folder: Path, clock: Clock, **variables: str) -> None:
        self.folder = folder
        self._clock = clock
        self._variables = {**os.environ, **variables}

    def run(self, wall_ms: int | None, *commands: Sequence[str]) -> list[Ran]:
        return self.run_with_stdin(wall_ms, [(words, "") for words in commands])

    def run_with_stdin(
        self, wall_ms: int | None, commands: Sequence[tuple[Sequence[str], str]]
    ) -> list[Ran]:
        """Run commands one after the other; None is the real clock."""
        return self._clock.run(self.folder, self._variables, wall_ms, commands)
