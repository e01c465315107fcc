"""When the process ends: with its input, with its parent, or at a signal.

A host closes the input of a server that it no longer needs. If the host is killed, another process
may still hold that pipe open, so the parent is checked too. In every case a call that is running
gets a moment to finish, because it may be storing something.
"""

import os
import signal
import threading
from collections.abc import Callable

_CHECK_SECONDS = 1.0
_FINISH_SECONDS = 5.0


class Lifetime:
    def __init__(self, finish: Callable[[float], None]) -> None:
        """`finish` waits for the running call, at most for some seconds."""
        self._finish = finish
        self._parent = os.getppid()
        self._ending = threading.Lock()

    def watch(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, lambda received, _frame: self.end(128 + received))
        threading.Thread(target=self._watch_parent, name="ctx-parent", daemon=True).start()

    def end(self, code: int) -> None:
        """End the process. Threads that wait for input would keep the interpreter from exiting."""
        if self._ending.acquire(blocking=False):
            self._finish(_FINISH_SECONDS)
            os._exit(code)

    def _watch_parent(self) -> None:
        pause = threading.Event()
        while os.getppid() == self._parent:
            pause.wait(_CHECK_SECONDS)
        self.end(0)
