"""Shell commands that change files of the project.

The command line shows which files `sed -i` or `cat >` change. For a patch, an install or an
automatic fix it does not: only the fact of a change is known.
"""

import posixpath
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from ctx.capture import shell_line

_MOVERS = frozenset("mv git".split())
_LONGEST = 2_000
_MOST_PARTS = 12
_MOST_PATHS = 20
_WORD = re.compile(r"""(?:'[^']*'|"[^"]*"|[^\s'"]|['"])+""")
_FILE = re.compile(r"[\w@+./-]*(?:\w\.\w{1,8}|(?:Make|Docker|Rake|Gem)file)\Z")
_PRINTED = re.compile(r"\.(?:log|txt|out|tmp)\Z")
_INTO = re.compile(r"(?<![<>0-9&])>{1,2}\s*([^\s>&|;]+)")
_IN_PLACE = re.compile(r"-(?:[a-zA-Z]*i(?:\.\w+)?[a-z]*|-in-place(?:=.*)?)\Z")
_PATCHES = re.compile(r"git (?:-\S+ )*(?:apply|am|revert|cherry-pick)\b|patch\b")
_INSTALLS_OR_MENDS = re.compile(
    r"(?:uv )?pip3? install|(?:uv|poetry|pdm|cargo|yarn|pnpm|bun) add|(?:npm|pnpm|bun) (?:i|install"
    r"|ci|add)\b|yarn(?: install)?\s*\Z|go (?:get|mod tidy)|bundle (?:install|add)|composer require"
    r"|(?:apt|apt-get|brew|dnf) install|uv sync|poetry install|gofmt -w|cargo fix"
)
_FIXES_BY_ITSELF = re.compile(r"\s(?:--fix|--write|--unsafe-fixes|--in-place)(?=\s|\Z)")
_BEFORE = re.compile(r"(?:[A-Za-z_]\w*=\S* |sudo |command |python3? -m |[\w./]*/bin/)*")


class ShellEdit(NamedTuple):
    paths: tuple[str, ...]
    """The paths as written; empty if the command does not name them."""


@lru_cache(maxsize=2_048)
def shell_edit(command: str) -> ShellEdit | None:
    """The files that a command line changes; None if it changes none."""
    line = shell_line.read(command[:_LONGEST])
    found: list[str] = []
    is_edit = False
    for part in line.parts[:_MOST_PARTS]:
        paths = _changed_files(part)
        if paths is not None:
            is_edit = True
            found += [_relative_to_start(line.folder, path) for path in paths]
    return ShellEdit(tuple(dict.fromkeys(found))[:_MOST_PATHS]) if is_edit else None


def _changed_files(part: shell_line.CommandPart) -> Sequence[str] | None:
    text = part.text[_prefix_length(part.text) :]
    words = [word.strip("'\"") for word in _WORD.findall(text)]
    if part.verb in ("sed", "perl") and any(map(_IN_PLACE.match, words)):
        return [word for word in words[1:] if not word.startswith("-") and _FILE.match(word)]
    if part.verb == "tee":
        return _project_files(words[1:]) or None
    if part.verb in ("cat", "echo", "printf"):
        return _project_files(_INTO.findall(text)) or None
    if part.verb in _MOVERS and words[-3:-2] in (["mv"], ["-f"], ["-k"]):
        return _project_files(words[-1:]) or None
    if _PATCHES.match(text) or _INSTALLS_OR_MENDS.match(text) or _FIXES_BY_ITSELF.search(text):
        return []
    return None


def _prefix_length(text: str) -> int:
    before = _BEFORE.match(text)
    return before.end() if before else 0


def _project_files(words: Iterable[str]) -> list[str]:
    """The project files among the words, without logs and other output files."""
    bare = (word.strip("'\"") for word in words)
    return [word for word in bare if _FILE.match(word) and not _PRINTED.search(word)]


def _relative_to_start(folder: str, path: str) -> str:
    """A path relative to the folder in which the command line started."""
    joined = path if path.startswith("/") else posixpath.join(folder, path)
    return posixpath.normpath(joined)
