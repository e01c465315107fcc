"""The doctor on the page. It runs when the user asks for it, and its last result is kept.

The doctor is part of a layer above the page, so the process that serves the page passes it in.
"""

import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ctx import clock
from ctx.operations.store_checks import DoctorCheck

Examine = Callable[[str], Sequence[DoctorCheck]]
"""All checks for a folder. It takes seconds: hooks are run, and clients are asked."""


class DoctorRun(NamedTuple):
    at: str
    checks: tuple[DoctorCheck, ...]

    def number_of(self, state: str) -> int:
        return sum(check.state == state for check in self.checks)


class DoctorRuns:
    """The doctor, and its last result for each folder."""

    def __init__(self, examine: Examine) -> None:
        self._examine = examine
        self._last: dict[str, DoctorRun] = {}
        self._lock = threading.Lock()

    def run(self, folder: str) -> DoctorRun:
        with self._lock:
            done = DoctorRun(clock.iso(clock.now_ms()), tuple(self._examine(folder)))
            self._last[folder] = done
        return done

    def last(self, folder: str) -> DoctorRun | None:
        return self._last.get(folder)
