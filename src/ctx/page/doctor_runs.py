"""The doctor on the page. It runs when the user asks for it, and its last result is kept.

The doctor is part of a layer above the page, so the process that serves the page passes it in.
"""

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ctx import clock

if TYPE_CHECKING:
    from ctx.operations.store_checks import DoctorCheck


class Doctor(NamedTuple):
    examine: "Callable[[str], Sequence[DoctorCheck]]"
    """All checks for a folder. It takes seconds: hooks are run, and clients are asked."""
    recording_hosts: Callable[[str], Sequence[str]]
    """The titles of the hosts that run our hooks in a folder."""


class DoctorRun(NamedTuple):
    at: str
    checks: "tuple[DoctorCheck, ...]"

    def number_of(self, state: str) -> int:
        return sum(check.state == state for check in self.checks)


class DoctorRuns:
    """The doctor, and its last result for each folder."""

    def __init__(self, doctor: Doctor) -> None:
        self._doctor = doctor
        self._last: dict[str, DoctorRun] = {}
        self._lock = threading.Lock()

    def run(self, folder: str) -> DoctorRun:
        with self._lock:
            done = DoctorRun(clock.iso(clock.now_ms()), tuple(self._doctor.examine(folder)))
            self._last[folder] = done
        return done

    def recording_hosts(self, folder: str) -> Sequence[str]:
        return self._doctor.recording_hosts(folder)

    def last(self, folder: str) -> DoctorRun | None:
        return self._last.get(folder)
