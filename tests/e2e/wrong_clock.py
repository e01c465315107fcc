"""Commands in processes with any wall clock.

One process has everything imported and a clock of its own. For each command it forks. Processes
that a command starts have the same clock, because Python loads `sitecustomize` from their path.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

SITE = """
import os, time
if "WALL_MS" in os.environ:
    began, base = time.monotonic_ns(), int(os.environ["WALL_MS"]) * 1_000_000
    gmtime, localtime = time.gmtime, time.localtime
    time.time_ns = lambda: base + time.monotonic_ns() - began
    time.time = lambda: time.time_ns() / 1_000_000_000
    time.gmtime = lambda at=None: gmtime(time.time() if at is None else at)
    time.localtime = lambda at=None: localtime(time.time() if at is None else at)
"""
RUN_EACH = """
import json, os, pkgutil, sys, tempfile
from importlib import import_module
import ctx.cli, ctx.operations
from ctx.cli.main import main
commands = json.load(sys.stdin)
# What many commands import is imported once, before the forks.
for package in (ctx.cli, ctx.operations) if len(commands) > 10 else ():
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        import_module(module.name)
answers = []
for words, said in commands:
    files = [tempfile.TemporaryFile() for _ in range(3)]
    files[0].write(said.encode())
    files[0].seek(0)
    child = os.fork()
    if not child:
        for fd, file in enumerate(files):
            os.dup2(file.fileno(), fd)
        sys.argv = ["ctx", *words]
        code = main()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    for file in files:
        file.seek(0)
    answers.append([code, *(file.read().decode() for file in files[1:])])
print(json.dumps(answers))
"""
PATIENCE_S = 300


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


class Clocked:
    """A folder and a home in which commands run at any time."""

    def __init__(self, folder: Path, site: Path, **variables: str) -> None:
        self.folder = folder
        site.mkdir(exist_ok=True)
        (site / "sitecustomize.py").write_text(SITE)
        self._variables = {**os.environ, "PYTHONPATH": str(site), **variables}

    def run(self, wall_ms: int | None, *commands: Sequence[str]) -> list[Ran]:
        return self.run_with_stdin(wall_ms, [(words, "") for words in commands])

    def run_with_stdin(
        self, wall_ms: int | None, commands: Sequence[tuple[Sequence[str], str]]
    ) -> list[Ran]:
        """Run commands one after the other; None is the real clock."""
        clock = {} if wall_ms is None else {"WALL_MS": str(wall_ms)}
        done = subprocess.run(
            [sys.executable, "-c", RUN_EACH],
            input=json.dumps([[list(words), said] for words, said in commands]),
            cwd=self.folder,
            env={**self._variables, **clock},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        answers = json.loads(done.stdout)
        return [
            Ran(tuple(words), *answer) for (words, _), answer in zip(commands, answers, strict=True)
        ]
