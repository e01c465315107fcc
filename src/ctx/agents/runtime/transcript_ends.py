"""Searches the beginning and the end of a transcript. Hooks load this module."""

import os

_ENDS = 512 * 1024


def mentions(path: str, mark: bytes) -> bool:
    """Whether a mark is near the beginning or the end of a file."""
    if not os.path.isfile(path):
        return False
    try:
        with open(path, "rb") as file:
            if mark in file.read(_ENDS):
                return True
            file.seek(max(_ENDS, os.fstat(file.fileno()).st_size - _ENDS))
            return mark in file.read(_ENDS)
    except (OSError, ValueError):
        return False
