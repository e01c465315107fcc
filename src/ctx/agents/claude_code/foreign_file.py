"""A file of another program, changed where it lies.

It is read, changed as a text, and replaced whole; what was there before is kept among our
backups. Its mode and its owner stay, and so does a link that leads to it: dotfiles are often
kept elsewhere. The program it belongs to may write it at any time, so it is looked at once more
right before it is replaced, and if it is not what was read, everything begins anew.
"""

import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from ctx import clock, disk
from ctx.errors import DiskFailure, LockConflict, SettingsUnreadable
from ctx.sqlite.connection import shown

Edit = Callable[[str | None], str | None]
"""From a file's text to what it should be; None: there is no file."""

KEPT_BACKUPS = 10

_LARGEST = 4 * 1024 * 1024
_ATTEMPTS = 20


class Change(NamedTuple):
    """What became of a file, or what would become of it."""

    path: str
    before: str | None
    after: str | None
    backup: str = ""
    """Where the text before is kept; empty where there was none."""

    @property
    def is_one(self) -> bool:
        return self.before != self.after

    @property
    def diff(self) -> str:
        """What changes, line by line."""
        from difflib import unified_diff

        name = shown(self.path)
        lines = [(text or "").splitlines(keepends=True) for text in (self.before, self.after)]
        names = [name if text is not None else os.devnull for text in (self.before, self.after)]
        told = unified_diff(lines[0], lines[1], names[0], names[1])
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in told)


def planned(path: str, edit: Edit) -> Change:
    """What a change would do."""
    with _in_words(path):
        before = read(path)
        return Change(path, before, _edited(path, edit, before))


def change(path: str, edit: Edit, backup: str) -> Change:
    """Change a file; `backup` is the path of what is kept, to which the time is added."""
    with _in_words(path):
        real = os.path.realpath(path)
        for _ in range(_ATTEMPTS):
            before = read(path)
            after = _edited(path, edit, before)
            if before == after:
                return Change(path, before, after)
            kept = _backed_up(backup, before) if before is not None else ""
            if _replaced(real, before, after):
                return Change(path, before, after, kept)
    raise LockConflict(f"Another program keeps changing {shown(path)}.")


def read(path: str) -> str | None:
    """The text of a file, every byte of it; None where there is none."""
    try:
        # Opening a pipe would wait for somebody to write to it.
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise SettingsUnreadable(f"{shown(path)} is no plain file.", hint="Move it away.")
        with open(fd, "rb", closefd=False) as file:
            data = file.read(_LARGEST + 1)
    finally:
        os.close(fd)
    if len(data) > _LARGEST:
        raise SettingsUnreadable(
            f"{shown(path)} has more than {_LARGEST // 2**20} MiB: too large for settings."
        )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SettingsUnreadable(
            f"{shown(path)}, line {line}: this is not UTF-8 text.", hint="Save the file as UTF-8."
        ) from None


def _edited(path: str, edit: Edit, before: str | None) -> str | None:
    try:
        return edit(before)
    except SettingsUnreadable as error:
        raise SettingsUnreadable(
            f"{shown(path)}, {error.message}",
            hint="Mend it, or add the hooks by hand: `ctx install --print` shows them.",
        ) from None


def _replaced(path: str, before: str | None, after: str | None) -> bool:
    """Put the new text in place, unless somebody else has changed the file meanwhile."""
    if after is None:
        if read(path) != before:
            return False
        disk.discard(path)
        return True
    disk.make_folder(os.path.dirname(path))
    temporary = disk.write_temporary(path, after.encode())
    try:
        _dress(temporary, path)
        if read(path) != before:
            return False
        os.replace(temporary, path)
    finally:
        disk.discard(temporary)
    disk.sync_folder(os.path.dirname(path))
    return True


def _dress(temporary: str, path: str) -> None:
    """Give a file the mode and the owner of the one that it replaces."""
    try:
        old = os.stat(path)
    except FileNotFoundError:
        return
    with suppress(PermissionError):
        os.chown(temporary, old.st_uid, old.st_gid)
    os.chmod(temporary, stat.S_IMODE(old.st_mode))


def _backed_up(path: str, text: str) -> str:
    """Keep a text under the present second, or under the first one after all that are there."""
    folder, name = os.path.split(path)
    disk.make_folder(folder)
    ours = re.compile(re.escape(name) + r"-\d{8}T\d{6}Z")
    older = [os.path.join(folder, each) for each in disk.names(folder) if ours.fullmatch(each)]
    newest = clock.parse_iso(older[-1].rpartition("-")[2]) if older else None
    kept = _dated(path, max(clock.now_ms(), (newest or 0) + 1000))
    disk.replace(kept, text.encode())
    for each in older[: 1 - KEPT_BACKUPS]:
        disk.discard(each)
    return kept


def _dated(path: str, ms: int) -> str:
    return f"{path}-{clock.iso(ms).replace('-', '').replace(':', '')}"


@contextmanager
def _in_words(path: str) -> Iterator[None]:
    """Say what the file system refused, and what can be done all the same."""
    try:
        yield
    except OSError as error:
        told = disk.failure(f"changing {shown(path)}", error)
        by_hand = "`ctx install --print` shows what to put in by hand."
        hint = f"{told.hint} {by_hand}" if told.hint else by_hand
        raise DiskFailure(told.message, hint=hint) from error
