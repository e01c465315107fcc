"""The wake pipe: a FIFO through which hooks wake the worker.

A hook can open it for writing only while a worker holds it open, so the hook also learns whether a
worker runs. The file that a killed worker leaves is reused.
"""

import os
import stat

from ctx import disk

_ENOUGH = 65536


class WakePipe:
    def __init__(self, path: str) -> None:
        disk.make_folder(os.path.dirname(path))
        try:
            if not stat.S_ISFIFO(os.lstat(path).st_mode):
                os.unlink(path)
                os.mkfifo(path, disk.FILE_MODE)
        except FileNotFoundError:
            os.mkfifo(path, disk.FILE_MODE)
        # Also open for writing, so that it does not reach end of file when the last hook closes it.
        self._fd = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        self._is_open = True

    def fileno(self) -> int:
        return self._fd

    def was_written(self) -> bool:
        """Whether anything was written since the last call."""
        try:
            return bool(os.read(self._fd, _ENOUGH))
        except BlockingIOError:
            return False

    def close(self) -> None:
        """Close it; hooks now see that no worker runs."""
        if self._is_open:
            self._is_open = False
            os.close(self._fd)
