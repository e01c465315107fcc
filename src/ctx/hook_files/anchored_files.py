"""The files that memory has rules, failures or decisions about, for the hook before an edit.

    CTX_HOME/anchored/1f2e3d4c    for each working tree: paths from its top, each with the names of
                                  items that memory mentions there

Most files are not among them, so most of these hooks end without opening a store. The worker writes
the lists; the hook asks the store what it says now.

Hooks load this module: it imports nothing but `os`, `stat` and `zlib`.
"""

import os
import stat
from zlib import crc32

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

FOLDER = "anchored"

_LARGEST = 4 * 1024 * 1024
_DEEPEST = 40
_SEPARATOR = "\t"


def path_of(home: str, top: str) -> str:
    return f"{home}/{FOLDER}/{crc32(os.fsencode(top)):08x}"


def content(files: "Mapping[str, Iterable[str]]") -> bytes:
    """The list of a working tree: its files, with the items in each."""
    lines = [
        _SEPARATOR.join([path, *filter(_fits, items)])
        for path, items in sorted(files.items())
        if _fits(path)
    ]
    return os.fsencode("".join(f"{line}\n" for line in lines))


def find(home: str, file: str) -> "tuple[str, list[str]] | None":
    """The path of a file from the top of its working tree, and its items; None if it is not
    listed."""
    if not os.path.isdir(f"{home}/{FOLDER}"):
        return None
    for path in dict.fromkeys((os.path.normpath(file), os.path.realpath(file))):
        top = path
        for _ in range(_DEEPEST):
            top, above = os.path.dirname(top), top
            if top == above:
                break
            inside = path[len(top) :].lstrip("/")
            listed = b"\n" + _read(path_of(home, top))
            for end in (b"\n", b"\t"):
                at = listed.find(b"\n%s%s" % (os.fsencode(inside), end))
                if at >= 0:
                    line = listed[at + 1 :].partition(b"\n")[0]
                    return inside, os.fsdecode(line).split(_SEPARATOR)[1:]
    return None


def _fits(text: str) -> bool:
    return bool(text) and "\n" not in text and _SEPARATOR not in text


def _read(path: str) -> bytes:
    try:
        # A FIFO in its place must not block.
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return b""
    try:
        return os.read(fd, _LARGEST) if stat.S_ISREG(os.fstat(fd).st_mode) else b""
    except OSError:
        return b""
    finally:
        os.close(fd)
