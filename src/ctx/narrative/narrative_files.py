"""Writes documents: new ones completely or not at all, existing ones only if unchanged since
read."""

import errno
import os
import stat

from ctx import disk, interrupts
from ctx.errors import ContentRefused, PathRefused
from ctx.narrative import narrative_scan

_NO_HARD_LINKS = frozenset(
    {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EACCES}
)


def create(folder: str, path: str, text: str) -> None:
    """Write a new document, durable when this returns. An existing file is never overwritten."""
    data = _encode_text(text)
    full = narrative_scan.located(folder, path)
    within = os.path.dirname(full)
    with disk.explain_errors(f"writing the narrative file {path}"):
        disk.make_folder(within)
        temporary = disk.write_temporary(full, data)
        try:
            interrupts.defer()
            _name(temporary, full)
        except FileExistsError:
            disk.discard(temporary)
            raise PathRefused(
                f"{path} is there already.", hint="Nothing was written; run the command again."
            ) from None
        except BaseException:
            disk.discard(temporary)
            raise
        disk.sync_folder(within)


def replace(folder: str, path: str, text: str, *, expected: bytes) -> bool:
    """Overwrite a document if it is unchanged since it was read.

    False, and nothing is written, if its author saved it meanwhile. The last check is right before
    the new file takes the name.
    """
    data = _encode_text(text)
    if narrative_scan.read(folder, path) != expected:
        return False
    if data == expected:
        return True
    full = narrative_scan.located(folder, path)
    with disk.explain_errors(f"writing the narrative file {path}"):
        temporary = disk.write_temporary(full, data)
        try:
            os.chmod(temporary, stat.S_IMODE(os.lstat(full).st_mode) & 0o777)
            if narrative_scan.read(folder, path) != expected:
                disk.discard(temporary)
                return False
            interrupts.defer()
            os.replace(temporary, full)
        except FileNotFoundError:
            disk.discard(temporary)
            return False
        except BaseException:
            disk.discard(temporary)
            raise
        disk.sync_folder(os.path.dirname(full))
    return True


def _name(temporary: str, full: str) -> None:
    """Rename a new file if the name is free. A hard link cannot overwrite a file, but a rename
    could."""
    try:
        os.link(temporary, full)
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        # No hard links here. Two processes almost never choose the same random name.
        if os.path.lexists(full):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), full) from None
        os.replace(temporary, full)
    else:
        disk.discard(temporary)


def _encode_text(text: str) -> bytes:
    """The text as bytes. Bytes that were not text are restored."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise ContentRefused("The document is not text.") from None
