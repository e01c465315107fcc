"""Starting processes that outlive whoever starts them: the worker, or `ctx hook apply`.

Each is a session of its own, so that whoever ends the client's processes does not end it. Hooks
load this module: it imports nothing but `os` and `sys`.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MARK = "worker.starting"
"""In `CTX_HOME`: that somebody has just started a worker, which needs a moment to be there."""

_STARTING_S = 5
_RUN = (
    "import sys; sys.path.insert(0, sys.argv.pop(1));"
    " from ctx.cli.main import main; sys.exit(main(sys.argv[1:]))"
)


def start_worker(home: str, environment: "Mapping[str, str]", now_s: float) -> int | None:
    """Start a worker unless somebody has done so a moment ago; its process.

    Of several that are started all the same, the lock lets one be.
    """
    if not _claim_start(f"{home}/{MARK}", now_s):
        return None
    # It belongs to nobody's session.
    kept = {name: value for name, value in environment.items() if not _is_session_variable(name)}
    null = os.open(os.devnull, os.O_RDWR)
    try:
        return spawn(home, ("worker", "run", "--detached"), {**kept, "CTX_HOME": home}, null)
    finally:
        os.close(null)


def _claim_start(mark: str, now_s: float) -> bool:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    try:
        os.close(os.open(mark, flags, 0o600))
    except FileExistsError:
        try:
            if 0 <= now_s - os.stat(mark).st_mtime < _STARTING_S:
                return False
            # Whoever made it did not come far.
            os.unlink(mark)
            os.close(os.open(mark, flags, 0o600))
        except OSError:
            return False
    return True


def _is_session_variable(name: str) -> bool:
    if name in ("CTX_SESSION", "CTX_OFF", "CTX_DB"):
        return True
    return name.startswith("CLAUDE") and name != "CLAUDE_CONFIG_DIR"


def spawn(home: str, arguments: "Sequence[str]", environment: "Mapping[str, str]", out: int) -> int:
    """Run ctx in the user store's folder, with what it prints going to `out`; its process."""
    program = command(home, arguments)
    null = os.open(os.devnull, os.O_RDWR)
    actions = [
        (os.POSIX_SPAWN_DUP2, null, 0),
        (os.POSIX_SPAWN_DUP2, out, 1),
        (os.POSIX_SPAWN_DUP2, null, 2),
    ]
    try:
        return os.posix_spawn(
            sys.executable, program, environment, file_actions=actions, setsid=True
        )
    except NotImplementedError:
        # Not every system can do that on the way; a group of its own is nearly as good.
        return os.posix_spawn(
            sys.executable, program, environment, file_actions=actions, setpgroup=0
        )
    finally:
        os.close(null)


def command(home: str, arguments: "Sequence[str]") -> list[str]:
    """The command line that runs ctx with what is installed here."""
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    # Neither the folder nor the variables of a project may say which modules are loaded.
    return [sys.executable, "-E", "-P", "-c", _RUN, package, "-C", home, *arguments]
