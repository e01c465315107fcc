"""Commands in separate processes that start fast and can be stopped at any moment.

One process has everything imported. For each command it forks, so that a command begins at once,
and a delay says when in the middle of its work it is killed.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

PROGRAM = """
import gc, json, os, pkgutil, resource, sys, time
from importlib import import_module
import ctx.cli
from ctx.cli import commands
from ctx.cli.main import main

for module in pkgutil.iter_modules(ctx.cli.__path__):
    import_module(f"ctx.cli.{module.name}")
for name in commands.COMMANDS:
    if name != "help":
        commands.command_named(name)
import ctx.memory.changes, ctx.config.resolve, difflib, json

# What a command imports when it is run must be there too: another user may not be able to read it.
warm = sys.argv[1] + "/warm.db"
kept = os.dup(1), os.dup(2)
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
os.dup2(1, 2)
for words in (
    ["add", "--type=fact", "warm"], ["add", "--type=fatc", "x"], ["list"], ["search", "warm"],
    ["store", "check"], ["store", "recover"], ["list", "--db", "/dev/null/x"], ["nonsense"],
):
    main(["--db", warm, *words])
sys.stdout.flush()
os.dup2(kept[0], 1)
os.dup2(kept[1], 2)
# Whoever ends would look through all that was loaded here.
gc.freeze()

for line in sys.stdin:
    folder, variables, words, delay, largest_file, said, nobody = json.loads(line)
    started = time.monotonic()
    pid = os.fork()
    if not pid:
        for number, name in ((0, os.devnull), (1, said + ".out"), (2, said + ".err")):
            os.dup2(os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC), number)
        sys.stdin = open(0)
        os.chdir("/" if nobody else folder)
        os.environ.clear()
        os.environ.update(variables)
        if largest_file:
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))
        if nobody and os.getuid() == 0:
            os.setgid(65534)
            os.setuid(65534)
        code = 70
        try:
            code = main(words)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    if delay is not None:
        time.sleep(delay)
        os.kill(pid, 9)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    print(json.dumps([status, time.monotonic() - started]), flush=True)
"""


class Done(NamedTuple):
    code: int
    """-9 if it was killed."""
    seconds: float
    out: str
    err: str


class Forker:
    def __init__(self, process: "subprocess.Popen[str]", space: Path) -> None:
        self._process = process
        self._said = space / "said"

    def run(
        self,
        words: Sequence[str],
        *,
        kill_after: float | None = None,
        largest_file: int = 0,
        as_nobody: bool = False,
    ) -> Done:
        """Run a command in the current folder and environment; kill it after so many seconds, or
        let no file become larger, or run it as a user who may not do everything, as root may."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        files = [Path(f"{self._said}.{name}") for name in ("out", "err")]
        for path in files:
            path.unlink(missing_ok=True)
        said = str(self._said)
        request = [os.getcwd(), dict(os.environ), words, kill_after, largest_file, said, as_nobody]
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        code, seconds = json.loads(self._process.stdout.readline())
        # One that is killed at once has said nothing, and not even made the files.
        out, err = (path.read_text() if path.exists() else "" for path in files)
        return Done(code, seconds, out, err)


@contextmanager
def forker(space: Path) -> Iterator[Forker]:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(space)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        # The first commands, which load everything, have a folder and a home of their own.
        cwd=space,
        env={**os.environ, "CTX_HOME": str(space / ".ctx")},
    ) as process:
        yield Forker(process, space)
