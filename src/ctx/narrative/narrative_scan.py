"""Which documents exist now, and their bytes.

Every command in a project looks for documents that a person has edited, so a scan costs one `stat`
per file. A cloned repository is untrusted: links, pipes and devices are skipped, and nothing
outside the folder is read.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from ctx import disk, layout
from ctx.errors import PathRefused
from ctx.narrative import document_roles

PROJECTION = "decisions.md"
"""Generated from the decisions."""

_LARGEST = 4 * 1024 * 1024
# It does not exist, is a link or not a plain file, or has an invalid name.
_NOT_THERE = frozenset(
    {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EINVAL, errno.EISDIR, errno.ENXIO,
     errno.ENAMETOOLONG}
)  # fmt: skip


class ScannedFile(NamedTuple):
    """A document as listed by the file system, without reading it."""

    path: str
    """Below `narrative/`."""
    mtime_ns: int
    size: int
    inode: int


class GivenNarrative(NamedTuple):
    """A narrative folder, and what of it is given to agents."""

    folder: str
    given: Callable[[Mapping[str, bytes]], set[str]]
    """The paths of those documents that are given."""


def documents(folder: str) -> Iterator[ScannedFile]:
    """The documents that people edit, in order of paths: all but the log, which is written once."""
    scanned = files(folder, lambda path: document_roles.place(f"{path}/_").role != "log")
    return (file for file, why_not in scanned if why_not is None)


def files(
    folder: str, enters: Callable[[str], bool] = lambda _: True
) -> list[tuple[ScannedFile, str | None]]:
    """Every markdown file in order of paths; with a reason if it is not a document."""
    scanned = []
    waiting = [""]
    while waiting:
        above = waiting.pop()
        try:
            entries = os.scandir(os.path.join(folder, above))
        except OSError:
            continue
        with entries:
            for entry in entries:
                path = above + entry.name
                if entry.is_dir(follow_symlinks=False):
                    if enters(path):
                        waiting.append(f"{path}/")
                # Files that begin with a dot are left by editors and file managers.
                elif entry.name.endswith(".md") and entry.name[0] != "." and path != PROJECTION:
                    try:
                        status = entry.stat(follow_symlinks=False)
                    except OSError:
                        continue
                    file = ScannedFile(
                        path, disk.storable_ns(status.st_mtime_ns), status.st_size, status.st_ino
                    )
                    scanned.append((file, _skip_reason(path, status)))
    return sorted(scanned)


def read(folder: str, path: str) -> bytes | None:
    """The bytes of a document; None if it cannot be read."""
    try:
        data = disk.read_plain(located(folder, path), _LARGEST + 1)
    except PathRefused:
        return None
    except OSError as error:
        if error.errno in _NOT_THERE:
            return None
        raise disk.failure(f"reading the narrative file {path}", error) from error
    return data if len(data) <= _LARGEST else None


def located(folder: str, path: str) -> str:
    """The path of a document below `narrative/`. It cannot lead out of the folder, and neither can
    a link."""
    parts = path.split("/")
    if "\0" in path or any(part in ("", ".", "..") for part in parts):
        raise PathRefused(f"{path!r} is no place in the narrative folder.")
    here = folder
    for part in parts[:-1]:
        here = os.path.join(here, part)
        if os.path.islink(here):
            raise PathRefused(
                f"{here} is a symbolic link.", hint="A project store must be plain folders."
            )
    return os.path.join(here, parts[-1])


def _skip_reason(path: str, status: os.stat_result) -> str | None:
    if not stat.S_ISREG(status.st_mode):
        return "it is not a plain file"
    if status.st_size > _LARGEST:
        return f"it is larger than {_LARGEST:,} bytes"
    # Usual names need no check of each character.
    return None if path.isprintable() else layout.unfit_name(path)
