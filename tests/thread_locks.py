"""Whether code waits for the lock that another thread holds."""

import threading
from collections.abc import Callable
from typing import Any


class _Watched:
    """A lock that says when it is asked for."""

    def __init__(self, lock: threading.Lock, is_asked: threading.Event) -> None:
        self._lock = lock
        self._is_asked = is_asked

    def __enter__(self) -> None:
        self._is_asked.set()
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def waits(holder: Any, action: Callable[[], object]) -> bool:
    """Whether an action does not end before the `_lock` of an object is free."""
    lock: threading.Lock = holder._lock
    is_asked, is_done = threading.Event(), threading.Event()
    holder._lock = _Watched(lock, is_asked)

    def act() -> None:
        try:
            action()
        finally:
            is_done.set()
            is_asked.set()

    thread = threading.Thread(target=act)
    with lock:
        thread.start()
        is_asked.wait()
        is_waiting = not is_done.is_set()
    thread.join()
    holder._lock = lock
    return is_waiting
