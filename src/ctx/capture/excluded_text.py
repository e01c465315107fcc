"""What a path leads to, and whether that is left out by the rules of its place.

Commands name files in many ways, so whatever may be a name in one is taken for it: rather something
is lost than kept that was to be left out.
"""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase

from ctx import disk
from ctx.capture.capture_rules import Rules

_LONGEST_PATH = 500
_LONGEST_READ = 8_000
_MOST_WORDS = 300
_BETWEEN = re.compile(r"""[\s'"`<>(){},;|&=:@$!#]+""")
_GLOB = re.compile(r"[*?\[]")


def placed(path: str, folder: str, root: str) -> tuple[str, str]:
    """A path that is told in a folder: from the project's root, and from the root of the disk."""
    full = os.path.normpath(os.path.join(folder or root, path))
    inside = _below(full, root)
    if inside is None and "\0" not in full and os.path.isabs(full):
        # Somebody came to the project by a link.
        full = os.path.join(os.path.realpath(os.path.dirname(full)), os.path.basename(full))
        inside = _below(full, root)
    shown = inside if inside is not None else path
    return shown.replace(os.sep, "/")[:_LONGEST_PATH], full


def _below(path: str, root: str) -> str | None:
    """A path from a folder; None where it does not lie there. The folder itself is `.`."""
    if path == root:
        return "."
    top = root.rstrip("/")
    return path[len(top) + 1 :] if root and path.startswith(f"{top}/") else None


def is_left_out(rules: Rules, path: str, folder: str, root: str) -> bool:
    """Whether a path is left out, by its name or by where a link leads."""
    if not (rules.ignored or rules.folders):
        return False
    inside, full = placed(path, folder, root)
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
    inside, real = placed(real, "", os.path.realpath(root))
    return rules.ignores_path(inside + slash, real)


def is_spoken_of(rules: Rules, command: str, folders: Sequence[str], root: str) -> bool:
    """Whether a command names something that is left out, from one of the folders it works in."""
    if not (rules.ignored or rules.folders):
        return False
    return any(
        is_left_out(rules, each, folder, root)
        for word in words(command)
        for folder in folders
        for each in _meant(word, folder)
    )


def without(rules: Rules, output: str, folder: str, root: str) -> str:
    """What was printed, without the lines that name something that is left out."""
    if not (rules.ignored or rules.folders):
        return output
    kept = [
        line
        for line in output.split("\n")
        if not any(
            is_left_out(rules, word, folder, root)
            for word in words(line)
            if "/" in word or "." in word
        )
    ]
    return "\n".join(kept)


def words(text: str) -> list[str]:
    """All that may be the name of a file, also behind an option: `-fpath`."""
    found: dict[str, None] = {}
    for word in _BETWEEN.split(text[:_LONGEST_READ]):
        if word.startswith("-"):
            found |= dict.fromkeys((word.lstrip("-"), word[2:]))
        else:
            found[word] = None
    return [word for word in found if word.strip("/.-")][:_MOST_WORDS]


def _meant(word: str, folder: str) -> Iterator[str]:
    """The paths that a word stands for. A mere word is one where there is such a file."""
    first, slash, rest = word.partition("/")
    is_folder = os.path.isabs(folder) and "\0" not in folder
    if is_folder and first and _GLOB.search(first):
        with suppress(OSError):
            every = (name for name in disk.names(folder) if fnmatchcase(name, first))
            yield from (f"{name}{slash}{rest}" for name in every)
    elif slash or "." in word or (is_folder and os.path.lexists(os.path.join(folder, word))):
        yield word
