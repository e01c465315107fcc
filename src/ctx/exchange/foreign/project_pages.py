"""Finds and reads the text files of a project or a folder of notes.

The files are untrusted: links that lead out of the folder, large and binary files are skipped.
"""

import os
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ctx import checkouts, clock, disk
from ctx.errors import PathRefused
from ctx.exchange.foreign.foreign_items import SkippedItem
from ctx.sqlite.connection import path_text

PASSED_OVER = frozenset({"node_modules", "target", "dist", "build", "vendor", "venv"})
_LARGEST_PAGE = 1024 * 1024
MOST_FOLDERS = 20_000
_MOST_FILES = 20_000


class ProjectPage(NamedTuple):
    path: str
    name: str
    """The path relative to the root."""
    text: str
    changed_at: str


def project_of(folder: str) -> tuple[str, str]:
    """The name and root of the project that a folder belongs to."""
    checkout = checkouts.find_checkout(folder)
    if checkout is None:
        return os.path.basename(folder), folder
    common = checkout.common_dir
    named = os.path.dirname(common) if os.path.basename(common) == ".git" else checkout.top
    return os.path.basename(named), checkout.top


def require_folder(path: str) -> None:
    if not os.path.isdir(path):
        raise PathRefused(f"{path_text(path)} is not a folder.", hint="Give one that exists.")


def find_files(
    folder: str, is_wanted: Callable[[str], bool], hidden: frozenset[str] = frozenset()
) -> Iterator[str | SkippedItem]:
    """The files below a folder whose relative path is wanted; of hidden folders only these."""
    count = 0
    for number, (here, folders, names) in enumerate(os.walk(folder)):
        if number == MOST_FOLDERS:
            reason = f"more than {MOST_FOLDERS:,} folders: name a smaller one"
            yield SkippedItem(path_text(here), reason)
            return
        folders[:] = sorted(
            name
            for name in folders
            if name in hidden or not (name.startswith(".") or name in PASSED_OVER)
        )
        for name in sorted(names):
            path = os.path.join(here, name)
            if is_wanted(os.path.relpath(path, folder)):
                count += 1
                if count > _MOST_FILES:
                    yield SkippedItem(path_text(path), f"more than {_MOST_FILES:,} files")
                    return
                yield path


def read_page(path: str, root: str, *, is_named: bool = False) -> ProjectPage | SkippedItem:
    """A file below `root`. Only a file that a person named may be a link to another place."""
    name = os.path.relpath(path, root)
    real = os.path.realpath(path)
    if not (is_named or is_inside(real, root)):
        return SkippedItem(name, "it is a link to another place")
    try:
        data = disk.read_plain(real, _LARGEST_PAGE + 1)
        changed_at = clock.iso(int(os.stat(real).st_mtime * 1000))
    except OSError as error:
        return SkippedItem(name, f"it cannot be read: {error.strerror}")
    if len(data) > _LARGEST_PAGE:
        return SkippedItem(name, f"it has more than {_LARGEST_PAGE:,} bytes")
    if b"\0" in data:
        return SkippedItem(name, "it is binary")
    return ProjectPage(path, name, data.decode("utf-8-sig", "surrogateescape"), changed_at)


def is_inside(path: str, folder: str) -> bool:
    """Whether a path is in a folder after all links are followed."""
    inner, outer = os.path.realpath(path), os.path.realpath(folder)
    return inner == outer or inner.startswith(outer.rstrip("/") + "/")
