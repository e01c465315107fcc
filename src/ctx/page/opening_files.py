"""Files that lead a browser to the page.

Every user of the machine can see what a program was started with. A browser is therefore not
started with an address and its token, but with a file that only this user can read. The file is
removed when the address is used, and otherwise after a minute.
"""

import asyncio
import glob
import html
import os
import secrets
from contextlib import suppress

from ctx import clock, disk

_KEPT_S = 60.0
_PREFIX, _SUFFIX = "page-", ".html"
_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0;url={0}">
<title>ctx</title>
<p><a href="{0}">Open ctx</a></p>
"""


class OpeningFiles:
    """The files of one server."""

    def __init__(self, home: str) -> None:
        self._home = home
        self._paths: set[str] = set()

    def new_path(self) -> str:
        # A server that was killed has left its files, whose tokens nobody knows any more.
        for path in glob.glob(os.path.join(glob.escape(self._home), f"{_PREFIX}*{_SUFFIX}")):
            with suppress(OSError):
                if clock.wall_s() - os.stat(path).st_mtime > _KEPT_S * clock.patience:
                    os.unlink(path)
        return os.path.join(self._home, f"{_PREFIX}{secrets.token_hex(8)}{_SUFFIX}")

    def write(self, path: str, address: str) -> bool:
        """Whether the file was written."""
        try:
            disk.replace(path, _PAGE.format(html.escape(address)).encode())
        except OSError:
            return False
        self._paths.add(path)
        asyncio.get_running_loop().call_later(_KEPT_S * clock.patience, self.remove, path)
        return True

    @property
    def are_waiting(self) -> bool:
        return bool(self._paths)

    def remove(self, path: str) -> None:
        self._paths.discard(path)
        with suppress(OSError):
            disk.discard(path)

    def remove_all(self) -> None:
        for path in list(self._paths):
            self.remove(path)
