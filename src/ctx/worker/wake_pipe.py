"""The bell: a pipe with a name, on which hooks tell the worker that there is something to do.

While the worker holds it open, a hook can write to it, and knows by that alone that there is a
worker. What a killed worker has left is a name that nobody reads from, and is used again.
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
        # Open for writing too: so it does not end when the last hook has closed it.
        self._fd = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        self._is_open = True

    def fileno(self) -> int:
        return self._fd

    def was_written(self) -> bool:
        """Whether somebody rang since this was asked last."""
        try:
            return bool(os.read(self._fd, _ENOUGH))
        except BlockingIOError:
            return False

    def close(self) -> None:
        """From now on hooks see that there is no worker."""
        if self._is_open:
            self._is_open = False
            os.close(self._fd)
