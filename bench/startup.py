"""The cost of starting `ctx` above starting Python, in CPU time.

The floor is `python -c pass` with the same interpreter and environment, alternating with ctx. The
last table is the installation as it is. Compiled bytecode makes a difference, and
PYTHONDONTWRITEBYTECODE controls it if ctx is installed from a working copy. So everything is also
shown both ways: with a cache of all bytecode, and without the bytecode of ctx. About 10 ms are
spent in the script that pip generates for a command: it imports `re`.

    python -m bench startup [ROUNDS]
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import partial
from importlib.util import cache_from_source
from pathlib import Path

import ctx
from bench import report, timing
from bench.timing import Figure, more, ms

HEADLINE = "ctx --version"
LIMIT = "+25 ms"
AS_INSTALLED = "as installed"

CTX = str(Path(sys.executable).with_name("ctx"))
COMMANDS = {
    "ctx --version": [CTX, "--version"],
    "ctx config get gc.keep_days": [CTX, "config", "get", "gc.keep_days"],
    "ctx debug refs": [CTX, "debug", "refs"],
    "ctx add file a.py": [CTX, "add", "file", "a.py"],
}
FLOOR = [sys.executable, "-c", "pass"]
BARE = [sys.executable, "-I", "-S", "-c", "pass"]
SOURCES = Path(ctx.__file__).parent

Environment = Mapping[str, str]


def surroundings(space: str) -> Environment:
    """This environment with a temporary home, without settings for ctx."""
    ours = ("CTX_", "CLAUDE")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return {**kept, "HOME": space, "CTX_HOME": f"{space}/.ctx"}


def project(space: str, environment: Environment) -> str:
    """A project store with one staged file."""
    folder = f"{space}/app"
    os.mkdir(folder)
    shutil.copyfile(__file__, f"{folder}/a.py")
    run = partial(subprocess.run, cwd=folder, env=environment, check=True, capture_output=True)
    run([CTX, "init"])
    run(COMMANDS["ctx add file a.py"])
    return folder


def caches(space: str, folder: str, environment: Environment) -> dict[str, Environment]:
    """The same environment with and without the bytecode of ctx; Python's own is always there."""
    compiled = {**environment, "PYTHONPYCACHEPREFIX": f"{space}/compiled"}
    compiled.pop("PYTHONDONTWRITEBYTECODE", None)
    for command in (FLOOR, *COMMANDS.values()):
        timing.of_child(command, environment=compiled, folder=folder)
    without = f"{space}/not compiled"
    shutil.copytree(f"{space}/compiled", without)
    shutil.rmtree(f"{without}/{SOURCES.relative_to('/')}")
    frozen = {"PYTHONPYCACHEPREFIX": without, "PYTHONDONTWRITEBYTECODE": "1"}
    return {"compiled": compiled, "not compiled": {**compiled, **frozen}}


def figures(rounds: int, space: str) -> dict[str, list[Figure]]:
    """The figures by the state of the bytecode."""
    as_installed = surroundings(space)
    folder = project(space, as_installed)
    environments = {AS_INSTALLED: as_installed, **caches(space, folder, as_installed)}
    sides = {"bare": partial(timing.of_child, BARE, environment=as_installed, folder=folder)}
    for state, environment in environments.items():
        for name, command in {"floor": FLOOR, **COMMANDS}.items():
            sides[f"{name}, {state}"] = partial(
                timing.of_child, command, environment=environment, folder=folder
            )
    cost = timing.alternate(rounds, sides)
    bare = f"{ms(cost.cpu('bare'))} for `python -I -S -c pass`"
    lines: dict[str, list[Figure]] = {}
    for state in environments:
        floor = cost.cpu(f"floor, {state}")
        least = f"{ms(floor)} for `python -c pass`"
        for name in COMMANDS:
            ours = cost.cpu(f"{name}, {state}")
            limit = LIMIT if (name, state) == (HEADLINE, AS_INSTALLED) else ""
            figure = Figure(f"`{name}`, CPU", ms(ours), least, bare, more(ours - floor), limit)
            lines.setdefault(state, []).append(figure)
    return lines


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    with tempfile.TemporaryDirectory() as space:
        lines = figures(rounds, space)
    sources = [str(path) for path in SOURCES.rglob("*.py")]
    compiled = sum(os.path.exists(cache_from_source(path)) for path in sources)
    for state in [name for name in lines if name != AS_INSTALLED]:
        print(f"\n{state}")
        report.print_figures(lines[state])
    print(f"\n{AS_INSTALLED}: {compiled} of our {len(sources)} modules have bytecode")
    report.show("startup", lines[AS_INSTALLED])


if __name__ == "__main__":
    main()
