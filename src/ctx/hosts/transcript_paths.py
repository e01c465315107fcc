"""The files of a host that writes one transcript per session."""

import os
from collections.abc import Callable

from ctx import disk
from ctx.hosts.transcripts import TranscriptStamp

START = 256 * 1024
"""Bytes of the beginning of a transcript that say what it is about."""


def files_below(path: str, depth: int, session_of: Callable[[str], str]) -> list[str]:
    """The transcripts in a folder and so many levels of folders below it; or a file itself."""
    if not os.path.isdir(path):
        return [path] if session_of(path) and os.path.isfile(path) else []
    level = [os.path.join(path, name) for name in disk.names(path)]
    every = list(level)
    for _ in range(depth):
        folders = filter(os.path.isdir, level)
        level = [os.path.join(folder, name) for folder in folders for name in disk.names(folder)]
        every += level
    return [each for each in every if session_of(each) and os.path.isfile(each)]


def stamp(path: str) -> TranscriptStamp:
    status = os.stat(path)
    return TranscriptStamp(status.st_size, status.st_mtime_ns // 1_000_000)


def first_bytes(path: str) -> bytes:
    return disk.read_plain(path, START)[:START]
