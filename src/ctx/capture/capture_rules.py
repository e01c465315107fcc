"""The capture rules of one place: what is captured and what is excluded.

The user's settings and the project's `.ctxignore` both exclude things. Neither can undo the other:
a `.ctxignore` from somebody else can only reduce what is captured.
"""

import os
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from ctx import disk
from ctx.code import patterns
from ctx.config.resolve import Config
from ctx.layout import STORE_NAME, Place

IGNORE_FILE = ".ctxignore"

_LARGEST = 256 * 1024
_MOST_SYMBOLS = 40
_MOST_PATTERNS = 500
_LONGEST_PATH = 4_096


class CaptureRules(NamedTuple):
    closed: str = ""
    """Why nothing at all is captured here; empty if something is."""
    tools: tuple[str, ...] = ()
    """Tools whose calls make no step; `*` is a wildcard."""
    ignored: tuple[patterns.Rules, ...] = ()
    folders: tuple[str, ...] = ()
    """Excluded folders, as absolute paths."""
    own: tuple[str, ...] = ()
    """Folders of ctx itself."""
    log_lines: int = 500
    symbols: int = _MOST_SYMBOLS
    files: int = 10
    """The most files that the errors of a command may name."""
    step_bytes: int = 1_048_576
    """The most bytes of a step's texts."""

    def ignores_tool(self, name: str) -> bool:
        return any(fnmatchcase(name, pattern) for pattern in self.tools)

    def ignores_path(self, inside: str, full: str) -> bool:
        """`inside` is relative to the project root if the path is in it, else equal to `full`."""
        if any(_is_below(full, folder) for folder in self.folders):
            return True
        path = inside.lstrip("/")[:_LONGEST_PATH]
        return bool(path) and any(patterns.ignores(rules, path) for rules in self.ignored)

    def is_own(self, inside: str, full: str) -> bool:
        """Whether a path belongs to ctx: a store, or the skill."""
        parts = inside.split("/")
        if STORE_NAME in parts or any(_is_below(full, folder) for folder in self.own):
            return True
        return "/skills/ctx/" in f"/{inside}"


EVERYTHING = CaptureRules()
"""Nothing is excluded."""


def rules(config: Config, place: Place, home: str, person: str) -> CaptureRules:
    """The rules of a place. `person` is the user's home folder."""
    paths = config.texts("capture.ignore_paths")
    projects = config.texts("capture.ignore_projects")
    folders = [_expanded(path, person) for path in paths if path.startswith("~/")]
    # Files there are excluded from wherever they are accessed.
    folders += [_expanded(word, person) for word in projects if word.startswith(("~", "/"))]
    folders += [os.path.realpath(folder) for folder in folders if "\0" not in folder]
    written = [path for path in paths if not path.startswith("~/")]
    lines = _lines(place.folder)
    # Compiled separately, so that neither re-includes what the other excludes.
    ignored = [patterns.compile_rules(some[:_MOST_PATTERNS]) for some in (written, lines)]
    return CaptureRules(
        disabling_setting(config, place, person) or _too_many(max(written, lines, key=len)),
        config.texts("capture.ignore_tools"),
        tuple(filter(None, ignored)),
        tuple(dict.fromkeys(folder.removesuffix("/**").rstrip("/") for folder in folders)),
        (home, os.path.realpath(home)),
        config.integer("ingestion.max_log_lines"),
        min(_MOST_SYMBOLS, config.integer("ingestion.max_edges_per_step")),
        config.integer("ingestion.max_files_per_step"),
        config.integer("ingestion.max_bytes_per_step"),
    )


def disabling_setting(config: Config, place: Place, person: str) -> str:
    """Which setting turns capture off at a place; empty if none does."""
    if not config.flag("capture.enabled"):
        return "capture.enabled is false"
    for word in config.texts("capture.ignore_projects"):
        if word.startswith(("~", "/")):
            is_meant = _is_below(place.folder, os.path.realpath(_expanded(word, person)))
        else:
            is_meant = place.project is not None and fnmatchcase(place.project, word)
        if is_meant:
            return "the project is left out by capture.ignore_projects"
    return ""


def _expanded(path: str, person: str) -> str:
    return person + path[1:] if path == "~" or path.startswith("~/") else path


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def _too_many(lines: Sequence[str]) -> str:
    """Too many patterns take too long, and none may be ignored: capture is off then."""
    if len(lines) <= _MOST_PATTERNS:
        return ""
    return f"there are more than {_MOST_PATTERNS:,} patterns of what is left out"


def _lines(root: str) -> list[str]:
    try:
        found = disk.read_plain(os.path.join(root, IGNORE_FILE), _LARGEST)
    except (OSError, ValueError):
        return []
    return found[:_LARGEST].decode("utf-8-sig", "replace").splitlines()
