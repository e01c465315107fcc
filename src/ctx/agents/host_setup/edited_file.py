"""A file of another program, edited in place.

It is read, changed as text, and replaced atomically; the old content is kept in our backups. Its
mode and owner are kept, and so is a symbolic link: dotfiles are often kept elsewhere. The other
program may write it at any time, so it is checked again right before it is replaced, and if it has
changed, the edit starts again.

Files that we add beside those of another program are created here too. Shared files, such as a
project's settings, get the permissions of the umask; others are private to the owner.
"""

import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from difflib import unified_diff
from typing import NamedTuple

from ctx import clock, disk, interrupts
from ctx.errors import DiskFailure, LockConflict, SettingsUnreadable
from ctx.sqlite.connection import path_text

Edit = Callable[[str | None], str | None]
"""Turns the text of a file into its new text; None: there is no file."""

KEPT_BACKUPS = 10
"""Backups per file: the oldest one, from before ctx changed anything, and the newest ones."""

_LARGEST = 4 * 1024 * 1024
_ATTEMPTS = 20


class FileChange(NamedTuple):
    """What happened to a file, or would happen in a dry run."""

    path: str
    before: str | None
    after: str | None
    backup: str = ""
    """The path of the backup; empty if there was no file."""

    @property
    def is_one(self) -> bool:
        return self.before != self.after

    @property
    def diff(self) -> str:
        """The change as a unified diff."""
        name = path_text(self.path)
        lines = [(text or "").splitlines(keepends=True) for text in (self.before, self.after)]
        names = [name if text is not None else os.devnull for text in (self.before, self.after)]
        diff_lines = unified_diff(lines[0], lines[1], names[0], names[1])
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in diff_lines)


def plan_change(path: str, edit: Edit, *, by_hand: str = "") -> FileChange:
    """The planned change; `by_hand` is the advice if the change is refused."""
    with _in_words(path, by_hand):
        before = read(path)
        return FileChange(path, before, _apply_edit(path, edit, before, by_hand))


def change(
    path: str,
    edit: Edit,
    backup: str,
    *,
    by_hand: str = "",
    mode: int = disk.FILE_MODE,
    dry_run: bool = False,
) -> FileChange:
    """Change a file; `backup` is the path of the backup, to which the time is added.

    `mode` is for a new file.
    """
    if dry_run:
        return plan_change(path, edit, by_hand=by_hand)
    with _in_words(path, by_hand):
        real = os.path.realpath(path)
        for _ in range(_ATTEMPTS):
            before = read(path)
            after = _apply_edit(path, edit, before, by_hand)
            if before == after:
                return FileChange(path, before, after)
            kept = _replace_with_backup(real, before, after, backup, mode)
            if kept is not None:
                _drop_between(backup)
                return FileChange(path, before, after, kept)
    raise LockConflict(f"Another program keeps changing {path_text(path)}.")


def read(path: str) -> str | None:
    """The text of a file, byte for byte; None if there is none."""
    try:
        # Opening a pipe would block until somebody writes to it.
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise SettingsUnreadable(
                f"{path_text(path)} is not a plain file.", hint="Move it away."
            )
        with open(fd, "rb", closefd=False) as file:
            data = file.read(_LARGEST + 1)
    finally:
        os.close(fd)
    if len(data) > _LARGEST:
        raise SettingsUnreadable(
            f"{path_text(path)} has more than {_LARGEST // 2**20} MiB: too large for settings."
        )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SettingsUnreadable(
            f"{path_text(path)}, line {line}: this is not UTF-8 text.",
            hint="Save the file as UTF-8.",
        ) from None


def put(path: str, data: bytes, mode: int) -> None:
    """Write a whole file, and create its folders. An existing file keeps its mode and owner."""
    temporary = _write_temporary_copy(path, data, mode)
    interrupts.defer()
    try:
        os.replace(temporary, path)
    finally:
        disk.discard(temporary)
    disk.sync_folder(os.path.dirname(path))


def _apply_edit(path: str, edit: Edit, before: str | None, by_hand: str) -> str | None:
    try:
        return edit(before)
    except SettingsUnreadable as error:
        hint = f"Fix it, or {by_hand}." if by_hand else "Mend it."
        raise SettingsUnreadable(f"{path_text(path)}, {error.message}", hint=hint) from None


def _replace_with_backup(
    path: str, before: str | None, after: str | None, backup: str, mode: int
) -> str | None:
    """Write the new text and return the path of the backup. None: another process changed the
    file."""
    temporary = None if after is None else _write_temporary_copy(path, after.encode(), mode)
    kept, is_done = "", False
    try:
        if before is not None:
            kept = _new_backup(backup)
            disk.replace(kept, before.encode())
        if read(path) != before:
            return None
        interrupts.defer()
        if temporary is None:
            disk.discard(path)
        else:
            os.replace(temporary, path)
        is_done = True
    finally:
        if temporary is not None:
            disk.discard(temporary)
        if kept and not is_done:
            # Otherwise every attempt would push out an older backup.
            disk.discard(kept)
    disk.sync_folder(os.path.dirname(path))
    return kept


def _write_temporary_copy(path: str, data: bytes, mode: int) -> str:
    """Write a temporary file with the mode and the owner of the file that it replaces."""
    _make_folder(os.path.dirname(path), mode)
    return disk.write_like(path, data, mode)


def _make_folder(folder: str, mode: int) -> None:
    """Create a folder and its missing parents, with the access of the files in it."""
    if os.path.isdir(folder):
        return
    parent = os.path.dirname(folder) or os.curdir
    _make_folder(parent, mode)
    try:
        os.mkdir(folder, mode | (mode & 0o444) >> 2)
    except FileExistsError:
        if not os.path.isdir(folder):
            raise
    disk.sync_folder(parent)


def _new_backup(path: str) -> str:
    """Create an empty backup file, named after the current second, or after the first free one."""
    disk.make_folder(os.path.dirname(path))
    while True:
        older = _backups(path)
        newest = clock.parse_iso(older[-1].rpartition("-")[2]) if older else None
        time = clock.iso(max(clock.now_ms(), (newest or 0) + 1000))
        name = f"{path}-{time.replace('-', '').replace(':', '')}"
        # Exclusive creation: another process that does the same uses the next second.
        with suppress(FileExistsError):
            os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, disk.FILE_MODE))
            return name


def _drop_between(path: str) -> None:
    """Delete old backups, except the oldest one and the newest ones."""
    for backup in _backups(path)[1 : 1 - KEPT_BACKUPS]:
        disk.discard(backup)


def _backups(path: str) -> list[str]:
    """The backups of one file, the oldest first."""
    folder, name = os.path.split(path)
    ours = re.compile(re.escape(name) + r"-\d{8}T\d{6}Z")
    return [os.path.join(folder, name) for name in disk.names(folder) if ours.fullmatch(name)]


@contextmanager
def _in_words(path: str, by_hand: str) -> Iterator[None]:
    """Explain file-system errors, with advice."""
    try:
        yield
    except OSError as error:
        name, real = os.fsdecode(error.filename or ""), os.path.realpath(path)
        # The message names the file once, and no temporary file beside it.
        if name.startswith((path, real)):
            error.filename = None if name.startswith(path) else real
        failure = disk.failure(f"changing {path_text(path)}", error)
        hints = [failure.hint, f"{by_hand[:1].upper()}{by_hand[1:]}." if by_hand else None]
        raise DiskFailure(failure.message, hint=" ".join(filter(None, hints)) or None) from error
