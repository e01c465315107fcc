"""Starts detached processes: the worker, or `ctx hook apply`.

Hooks load this module: it imports nothing but `os` and `sys`, and what imports no more.
"""

import os
import sys

from ctx import detached

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MARK = "worker.starting"
"""A file in `CTX_HOME`: a worker was just started and is not ready yet."""

_OF_A_SESSION = ("CTX_SESSION", "CTX_OFF", "CTX_DB")
STARTING_S = 5.0
"""After this, a start that left the file has failed."""
_RUN = (
    "import sys; sys.path.insert(0, sys.argv.pop(1));"
    " from ctx.cli.main import main; sys.exit(main(sys.argv[1:]))"
)


def start_worker(home: str, environment: "Mapping[str, str]", now_s: float) -> int | None:
    """Start a worker unless one was started moments ago; return its process id.

    If several start at once, the lock lets one run.
    """
    if not _claim_start(home, now_s):
        return None
    # The worker belongs to no session. The caller removes the variables of its host.
    kept = {name: value for name, value in environment.items() if name not in _OF_A_SESSION}
    return spawn(home, ("worker", "run", "--detached"), {**kept, "CTX_HOME": home})


def is_starting(home: str, now_s: float, limit_s: float) -> bool:
    """Whether a worker was started within this time and is not ready yet."""
    try:
        # In whole seconds, the present lies before the time of a new file.
        return abs(now_s - os.stat(f"{home}/{MARK}").st_mtime) < limit_s
    except OSError:
        return False


def _claim_start(home: str, now_s: float) -> bool:
    mark = f"{home}/{MARK}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    try:
        os.close(os.open(mark, flags, 0o600))
    except FileExistsError:
        if is_starting(home, now_s, STARTING_S):
            return False
        try:
            # That start failed.
            os.unlink(mark)
            os.close(os.open(mark, flags, 0o600))
        except OSError:
            return False
    return True


def spawn(
    home: str,
    arguments: "Sequence[str]",
    environment: "Mapping[str, str]",
    output: int | None = None,
) -> int:
    """Run ctx in the user store's folder, detached; return the process id."""
    return detached.start(command(home, arguments), environment, output)


def command(home: str, arguments: "Sequence[str]") -> list[str]:
    """The command line that runs the installed ctx."""
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    # A project's folder and variables must not affect which modules are loaded.
    return [sys.executable, "-E", "-P", "-c", _RUN, package, "-C", home, *arguments]
