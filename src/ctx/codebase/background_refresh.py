"""Have the index of the code made, or brought up to date, behind the back of an answer.

It is done by a process of its own: in a session of its own, so that it outlives the command and its
terminal; below everybody else's work; silent. The lock of the index lets one be at it at a time.
"""

import json
import os
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from ctx import checkouts, clock, locks
from ctx.code.vocabulary import LARGEST_FILE
from ctx.codebase import code_index
from ctx.codebase.code_index import Codebase
from ctx.errors import CtxError
from ctx.layout import CodePlace, UserStore

if TYPE_CHECKING:
    import subprocess

_NICE = 10
_START = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from ctx.codebase.background_refresh import run; run(sys.argv[2])"
)

_started: "dict[str, subprocess.Popen[bytes]]" = {}
"""By this process, for which index: whoever lives long has to take note of their end."""


def start(codebase: Codebase) -> int | None:
    """Start a process, unless somebody is at it or nothing can be written there. Its id."""
    for path in [path for path, each in _started.items() if each.poll() is not None]:
        del _started[path]
    place = codebase.place
    is_at_it = place.database in _started or locks.is_held(place.lock)
    if is_at_it or not can_be_written(place) or not sys.executable:
        return None
    # Loading it takes longer than all else here, and mostly nothing is to be started.
    import subprocess

    # Where we are, and nowhere else: the folder we stand in belongs to a stranger.
    own = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    try:
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", _START, own, _encode(codebase)],
            # It must not keep anybody's folder from being unmounted.
            cwd=os.sep,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        # No more processes may be started: the answer does not depend on this one.
        return None
    _started[place.database] = process
    return process.pid


def end() -> None:
    """End what this process has started and is not done. An index half made is made later."""
    for path, process in list(_started.items()):
        if process.poll() is None:
            with suppress(ProcessLookupError, PermissionError):
                # It leads a session of its own, with the processes that it has started itself.
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        del _started[path]


def run(told: str) -> None:
    """What the process does."""
    os.nice(_NICE)
    codebase = _decode(told)
    # Whoever is at it does the same. What goes wrong shows when somebody asks for the index.
    with suppress(CtxError):
        code_index.index(codebase, clock.no_tick, wait_seconds=0)


def can_be_written(place: CodePlace) -> bool:
    """Whether an index can be made there."""
    if os.path.exists(place.database):
        return os.access(place.database, os.W_OK)
    folder = os.path.dirname(place.database)
    while not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    return os.access(folder, os.W_OK | os.X_OK)


def _encode(codebase: Codebase) -> str:
    """What the process has to know, as text: a path may be any bytes."""
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


def _decode(told: str) -> Codebase:
    said = json.loads(told)
    root, database, local = said["place"]
    checkout = checkouts.Checkout(*said["checkout"]) if said["checkout"] else None
    return Codebase(
        CodePlace(root, checkout, database, local),
        "",
        tuple(said["ignore_globs"]),
        min(int(said["max_bytes"]), LARGEST_FILE),
        UserStore(said["home"]) if said["home"] else None,
    )
