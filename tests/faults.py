"""A disk that fails on demand: it stops a program at any one of its file-system operations.

`Disk(stop_at=n)` lets n operations happen. Then it either ends the program on the spot, as a
kill would (`Stopped` passes every handler, and nothing works any more for clean-up code), or
refuses that one operation with an error and works again, or sends this process a signal and lets
the operation happen.

With `power_loss` it also takes back whatever was never synced: bytes of files, and names in
folders. That is the worst that a file system may legally do.
"""

import contextlib
import errno
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest


class Stopped(BaseException):
    """The program was killed here."""


class Disk:
    def __init__(
        self,
        stop_at: int | None = None,
        *,
        refuse_with: int = 0,
        signal_with: int = 0,
        power_loss: bool = False,
    ) -> None:
        self.operations = 0
        self.log: list[str] = []
        self._stop_at = stop_at
        self._refuse_with = refuse_with
        self._signal_with = signal_with
        self._power_loss = power_loss
        self._stopped = False
        self._paths: dict[int, str] = {}
        self._unsynced_bytes: set[str] = set()
        self._unsynced_names: list[tuple[str, Callable[[], None]]] = []

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        ours = {
            "open": self._open,
            "close": self._close,
            "write": self._write,
            "fsync": self._fsync,
            "replace": self._replace,
            "rename": self._replace,
            "unlink": self._unlink,
            "link": self._link,
            "mkdir": self._mkdir,
            "pwrite": self._counted("pwrite", os.pwrite),
            "ftruncate": self._counted("ftruncate", os.ftruncate),
            "rmdir": self._counted("rmdir", os.rmdir),
        }
        self._real = {name: getattr(os, name) for name in ours}
        with pytest.MonkeyPatch.context() as patch:
            for name, operation in ours.items():
                patch.setattr(os, name, operation)
            patch.setattr(subprocess, "run", self._counted("run", subprocess.run))
            yield

    def lose_power(self) -> None:
        """Undo everything that was never synced. Called after the program has stopped."""
        for path in self._unsynced_bytes:
            if os.path.isfile(path):
                os.truncate(path, 0)
        for _, undo in reversed(self._unsynced_names):
            undo()

    def _step(self, name: str, path: Any) -> None:
        if self._stopped:
            raise Stopped
        if self.operations == self._stop_at and self._signal_with:
            self._stop_at = None
            os.kill(os.getpid(), self._signal_with)
        if self.operations == self._stop_at:
            if self._refuse_with:
                self._stop_at = None
                raise OSError(self._refuse_with, os.strerror(self._refuse_with), str(path))
            self._stopped = True
            raise Stopped
        self.operations += 1
        self.log.append(f"{name} {path}")

    def _counted(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def operation(*arguments: Any, **options: Any) -> Any:
            self._step(name, arguments[0])
            return real(*arguments, **options)

        return operation

    def _open(self, path: Any, flags: int, mode: int = 0o777, **options: Any) -> int:
        writes = bool(flags & (os.O_CREAT | os.O_WRONLY | os.O_RDWR))
        is_new = writes and not os.path.lexists(path)
        if writes:
            self._step("open", path)
        fd: int = self._real["open"](path, flags, mode, **options)
        self._paths[fd] = os.fspath(path)
        if is_new:
            self._named(path, lambda: _remove(path))
        return fd

    def _close(self, fd: int) -> None:
        self._paths.pop(fd, None)
        self._real["close"](fd)

    def _write(self, fd: int, data: Any) -> int:
        path = self._paths.get(fd)
        if path is None:
            return int(self._real["write"](fd, data))
        try:
            self._step("write", path)
        except (Stopped, OSError):
            # A kill or a full disk in the middle of a write leaves the first part of it.
            self._real["write"](fd, bytes(data)[: len(data) // 2])
            raise
        self._unsynced_bytes.add(path)
        return int(self._real["write"](fd, data))

    def _fsync(self, fd: int) -> None:
        """Counted, but not executed: the files of a test are not at risk."""
        path = self._paths.get(fd, "")
        self._step("fsync", path)
        self._unsynced_bytes.discard(path)
        if os.path.isdir(path):
            here = os.path.realpath(path)
            self._unsynced_names = [
                item for item in self._unsynced_names if os.path.realpath(item[0]) != here
            ]

    def _replace(self, source: Any, target: Any, **options: Any) -> None:
        self._step("replace", target)
        is_folder = os.path.isdir(source)
        before = Path(target).read_bytes() if os.path.isfile(target) else None
        self._real["replace"](source, target, **options)
        if os.fspath(source) in self._unsynced_bytes:
            self._unsynced_bytes.add(os.fspath(target))
        content = Path(target).read_bytes() if os.path.isfile(target) else b""

        def undo() -> None:
            if is_folder:
                if os.path.isdir(target) and os.path.isdir(os.path.dirname(source)):
                    os.rename(target, source)
                return
            if before is None:
                _remove(target)
            else:
                Path(target).write_bytes(before)
            if os.path.isdir(os.path.dirname(source)):
                Path(source).write_bytes(content)

        self._named(target, undo)

    def _unlink(self, path: Any, **options: Any) -> None:
        self._step("unlink", path)
        content = Path(path).read_bytes() if os.path.isfile(path) else None
        self._real["unlink"](path, **options)
        if content is not None:
            kept = content

            def undo() -> None:
                if os.path.isdir(os.path.dirname(path)):
                    Path(path).write_bytes(kept)

            self._named(path, undo)

    def _link(self, source: Any, target: Any, **options: Any) -> None:
        self._step("link", target)
        self._real["link"](source, target, **options)
        self._named(target, lambda: _remove(target))

    def _mkdir(self, path: Any, *arguments: Any, **options: Any) -> None:
        self._step("mkdir", path)
        self._real["mkdir"](path, *arguments, **options)
        self._named(path, lambda: shutil.rmtree(path, ignore_errors=True))

    def _named(self, path: Any, undo: Callable[[], None]) -> None:
        if self._power_loss:
            self._unsynced_names.append((os.path.dirname(os.fspath(path)), undo))


def _remove(path: Any) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


NO_SPACE = errno.ENOSPC
READ_ONLY = errno.EROFS
