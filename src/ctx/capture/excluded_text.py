"""Whether a path, a command or a line of output names a file that the capture rules exclude.

Commands name files in many ways, so every word that may be a path counts as one: losing something
is better than storing what the user excluded.
"""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase

from ctx import disk
from ctx.capture.capture_rules import CaptureRules

_LONGEST_PATH = 500
_LONGEST_READ = 8_000
_MOST_WORDS = 300
_BETWEEN = re.compile(r"""[\s'"`<>(){},;|&=:@$!#]+""")
_GLOB = re.compile(r"[*?\[]")


def locate(path: str, folder: str, root: str) -> tuple[str, str]:
    """A path as written in a folder: relative to the project's root, and absolute."""
    full = os.path.normpath(os.path.join(folder or root, path))
    inside = _relative_path(full, root)
    if inside is None and "\0" not in full and os.path.isabs(full):
        # The project was entered through a symbolic link.
        full = os.path.join(os.path.realpath(os.path.dirname(full)), os.path.basename(full))
        inside = _relative_path(full, root)
    shown = inside if inside is not None else path
    return shown.replace(os.sep, "/")[:_LONGEST_PATH], full


def _relative_path(path: str, root: str) -> str | None:
    """A path relative to a folder; None if it is not in it. The folder itself is `.`."""
    if path == root:
        return "."
    top = root.rstrip("/")
    return path[len(top) + 1 :] if root and path.startswith(f"{top}/") else None


def is_excluded(rules: CaptureRules, path: str, folder: str, root: str) -> bool:
    """Whether a path is excluded, by its name or by the target of a link."""
    if not (rules.ignored or rules.folders):
        return False
    inside, full = locate(path, folder, root)
    if rules.ignores_path(inside, full):
        return True
    if "\0" in full or not os.path.isabs(full):
        return False
    slash = "/" if path.endswith("/") or os.path.isdir(full) else ""
    if slash and rules.ignores_path(f"{inside}/", full):
        return True
    real = os.path.realpath(full)
    if real == full:
        return False
    inside, real = locate(real, "", os.path.realpath(root))
    return rules.ignores_path(inside + slash, real)


def names_excluded(rules: CaptureRules, command: str, folders: Sequence[str], root: str) -> bool:
    """Whether a command names an excluded file, seen from one of the folders it runs in."""
    if not (rules.ignored or rules.folders):
        return False
    return any(
        is_excluded(rules, each, folder, root)
        for word in words(command)
        for folder in folders
        for each in _possible_paths(word, folder)
    )


def without_excluded(rules: CaptureRules, output: str, folder: str, root: str) -> str:
    """An output without the lines that name an excluded file."""
    if not (rules.ignored or rules.folders):
        return output
    kept = [
        line
        for line in output.split("\n")
        if not any(
            is_excluded(rules, word, folder, root)
            for word in words(line)
            if "/" in word or "." in word
        )
    ]
    return "\n".join(kept)


def words(text: str) -> list[str]:
    """All words that may be a file name, also attached to an option: `-fpath`."""
    found: dict[str, None] = {}
    for word in _BETWEEN.split(text[:_LONGEST_READ]):
        if word.startswith("-"):
            found |= dict.fromkeys((word.lstrip("-"), word[2:]))
        else:
            found[word] = None
    return [word for word in found if word.strip("/.-")][:_MOST_WORDS]


def _possible_paths(word: str, folder: str) -> Iterator[str]:
    """The paths that a word may mean. A word without `/` or `.` is a path if the file exists."""
    first, slash, rest = word.partition("/")
    is_folder = os.path.isabs(folder) and "\0" not in folder
    if is_folder and first and _GLOB.search(first):
        with suppress(OSError):
            every = (name for name in disk.names(folder) if fnmatchcase(name, first))
            yield from (f"{name}{slash}{rest}" for name in every)
    elif slash or "." in word or (is_folder and os.path.lexists(os.path.join(folder, word))):
        yield word
