"""Whether code waits for the lock that another thread holds."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


def waits(holder: Any, action: Callable[[], object]) -> bool:
    """Whether an action, which takes the `_lock` of an object once, waits until it is free."""
    lock: threading.Lock = holder._lock
    is_asked, is_done = threading.Event(), threading.Event()

    @contextmanager
    def watched() -> Iterator[None]:
        is_asked.set()
        with lock:
            yield

    def act() -> None:
        try:
            action()
        finally:
            is_done.set()
            is_asked.set()

    holder._lock = watched()
    thread = threading.Thread(target=act)
    with lock:
        thread.start()
        is_asked.wait()
        is_waiting = not is_done.is_set()
    thread.join()
    holder._lock = lock
    return is_waiting
