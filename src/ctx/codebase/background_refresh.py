"""Build or refresh the code index in the background.

A separate process does the work. It has its own session, so it outlives the command and its
terminal, it runs at low priority, and it prints nothing. The lock of the index admits one such
process at a time.
"""

import json
import os
import signal
import sys
from contextlib import suppress

from ctx import checkouts, clock, detached, locks
from ctx.code.vocabulary import LARGEST_FILE
from ctx.codebase import indexing
from ctx.codebase.indexing import Codebase
from ctx.errors import CtxError
from ctx.layout import CodePlace, UserStore

_NICE = 10
_START = (
    # The process must not keep a folder from being unmounted, or a file of somebody else open.
    "import os, sys; os.closerange(3, 1024); os.chdir(os.sep); sys.path.insert(0, sys.argv[1]); "
    "from ctx.codebase.background_refresh import run; run(sys.argv[2])"
)

_started: dict[str, int] = {}
"""The ids of the processes that this process started, by index. A long-lived process must reap
them."""


def start(codebase: Codebase) -> int | None:
    """Start a process and return its id; None if one is running already or the index cannot be
    written."""
    _reap()
    place = codebase.place
    is_at_it = place.database in _started or locks.is_held(place.lock)
    if is_at_it or not can_be_written(place) or not sys.executable:
        return None
    # Import from our own location only: the working folder may belong to somebody else.
    own = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    command = [sys.executable, "-P", "-c", _START, own, _encode(codebase)]
    try:
        process = detached.start(command)
    except OSError:
        # The process limit is reached. The answer does not depend on this process.
        return None
    _started[place.database] = process
    return process


def wait() -> None:
    """Wait until the processes that this process started have ended."""
    _reap(0)


def end() -> None:
    """Kill the processes that this process started and that still run. A later refresh
    continues."""
    _reap()
    for process in list(_started.values()):
        with suppress(ProcessLookupError, PermissionError):
            # The process leads its own session, which contains the processes that it started.
            os.killpg(process, signal.SIGKILL)
    wait()


def _reap(options: int = os.WNOHANG) -> None:
    for path, process in list(_started.items()):
        try:
            ended, _ = os.waitpid(process, options)
        except ChildProcessError:
            # Somebody else has reaped it.
            ended = process
        if ended:
            _started.pop(path, None)


def run(encoded: str) -> None:
    """The main function of the background process."""
    os.nice(_NICE)
    codebase = _decode(encoded)
    # The process that holds the lock does the same work. A failure shows when the index is used.
    with suppress(CtxError):
        indexing.update(codebase, clock.no_tick, wait_seconds=0)


def can_be_written(place: CodePlace) -> bool:
    """Whether an index can be written there."""
    if os.path.exists(place.database):
        return os.access(place.database, os.W_OK)
    folder = os.path.dirname(place.database)
    while not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    return os.access(folder, os.W_OK | os.X_OK)


def _encode(codebase: Codebase) -> str:
    """Encode what the process needs as text. A path may contain any bytes."""
    place, store = codebase.place, codebase.user_store
    return json.dumps(
        {
            "place": [place.root, place.database, place.local],
            "checkout": place.checkout,
            "ignore_globs": codebase.ignore_globs,
            "max_bytes": codebase.max_bytes,
            "home": store.home if store else None,
        }
    )


def _decode(encoded: str) -> Codebase:
    fields = json.loads(encoded)
    root, database, local = fields["place"]
    checkout = checkouts.Checkout(*fields["checkout"]) if fields["checkout"] else None
    return Codebase(
        CodePlace(root, checkout, database, local),
        "",
        tuple(fields["ignore_globs"]),
        min(int(fields["max_bytes"]), LARGEST_FILE),
        UserStore(fields["home"]) if fields["home"] else None,
    )
