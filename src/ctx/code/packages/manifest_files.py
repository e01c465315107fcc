"""The files of a project for the readers of manifests: names, and content within limits.

Manifests may be untrusted. Values of an unexpected shape are ignored, and no path leads out of the
project.
"""

import json
import os
import posixpath
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, TypeVar
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from ctx import disk
from ctx.code.packages.package_model import ManifestProblem

Table = Mapping[str, Any]
T = TypeVar("T")

_LARGEST = 1024 * 1024
# Python's TOML parser takes time quadratic in the parts of a key.
_MOST_DOTS = 30
_QUOTED = re.compile(r'"[^"\\]*+(?>(?:\\.[^"\\]*+)*)"?|\'[^\']*+\'?')
_LONGEST_NAME = 300


class ManifestTree:
    def __init__(self, root: str, paths: Iterable[str]) -> None:
        self._root = os.path.realpath(root)
        self._paths = frozenset(path for path in paths if path.isprintable())
        self.problems: list[ManifestProblem] = []

    def __contains__(self, path: str) -> bool:
        return path in self._paths

    def called(self, name: str) -> list[str]:
        """The files with a name, those in the outermost folders first."""
        return sorted(self._by_name.get(name, ()), key=lambda path: (path.count("/"), path))

    def files(self, folder: str) -> list[str]:
        """The names of the files in a folder, in order."""
        return sorted(self._names_by_folder.get(folder, ((), ()))[0])

    def folders(self, folder: str) -> list[str]:
        """The names of the folders in a folder, in order."""
        return sorted(self._names_by_folder.get(folder, ((), ()))[1])

    @cached_property
    def _by_name(self) -> dict[str, list[str]]:
        by_name: dict[str, list[str]] = {}
        for path in self._paths:
            by_name.setdefault(path.rpartition("/")[2], []).append(path)
        return by_name

    @cached_property
    def _names_by_folder(self) -> dict[str, tuple[set[str], set[str]]]:
        by_folder: dict[str, tuple[set[str], set[str]]] = {}
        for path in self._paths:
            folder, name = split(path)
            at = 0
            while folder not in by_folder or name not in by_folder[folder][at]:
                by_folder.setdefault(folder, (set(), set()))[at].add(name)
                if folder == ".":
                    break
                folder, name = split(folder)
                at = 1
        return by_folder

    def toml(self, path: str) -> Table | None:
        """The parsed file; None, and a problem, if it cannot be read."""
        return self._read(path, _toml)

    def json(self, path: str) -> Table | None:
        return self._read(path, _json)

    def xml(self, path: str) -> Element | None:
        return self._read(path, _xml)

    def text(self, path: str) -> str | None:
        return self._read(path, str)

    def _read(self, path: str, parse: Callable[[str], T]) -> T | None:
        try:
            return parse(self._content(path))
        except RecursionError:
            self.problem(path, "is nested too deeply")
        except OSError as error:
            self.problem(path, f"cannot be read: {error.strerror}")
        except ValueError as error:
            self.problem(path, f"cannot be read: {_one_line(str(error))}")
        return None

    def _content(self, path: str) -> str:
        full = os.path.join(self._root, path)
        if os.path.realpath(full) != full:
            raise ValueError("it is behind a link")
        content = disk.read_plain(full, _LARGEST + 1)
        if len(content) > _LARGEST:
            raise ValueError(f"it is larger than {_LARGEST:,} bytes")
        try:
            return content.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise ValueError("it is not UTF-8") from None

    def problem(self, path: str, reason: str) -> None:
        self.problems.append(ManifestProblem(path, reason))


def split(path: str) -> tuple[str, str]:
    """The folder and the last component of a path; `.` is the project's root."""
    folder, _, name = path.rpartition("/")
    return folder or ".", name


def inside(folder: str, name: str) -> str:
    """The path of a file in a folder of the project."""
    return name if folder == "." else f"{folder}/{name}"


def joined(folder: str, path: str) -> str | None:
    """A path in a manifest, relative to the project's root; None if it leads out of it."""
    if not path or path.startswith("/") or "\\" in path or not is_name(path, longest=1000):
        return None
    normal = posixpath.normpath(posixpath.join(folder, path))
    return None if normal == ".." or normal.startswith("../") else normal


def is_name(text: str, longest: int = _LONGEST_NAME) -> bool:
    """Whether a text can be shown and stored as a name."""
    return 0 < len(text) <= longest and text.isprintable()


def text_of(value: Any, *keys: str) -> str:
    """The text at a place in a table; empty if there is none."""
    entry = _value_at(value, keys)
    return entry if isinstance(entry, str) and is_name(entry) else ""


def texts_of(value: Any, *keys: str) -> list[str]:
    entry = _value_at(value, keys)
    every = entry if isinstance(entry, list) else []
    return [text for text in every if isinstance(text, str) and is_name(text, longest=1000)]


def table_of(value: Any, *keys: str) -> Table:
    """The table at a place in a table; empty if there is none."""
    entry = _value_at(value, keys)
    return entry if isinstance(entry, dict) else {}


def tables_of(value: Any, *keys: str) -> list[Table]:
    """The array of tables at a place in a table."""
    entry = _value_at(value, keys)
    return [table for table in entry if isinstance(table, dict)] if isinstance(entry, list) else []


def entries(value: Table) -> Iterator[tuple[str, Any]]:
    """The entries of a table whose keys can be names."""
    return ((key, inner) for key, inner in value.items() if isinstance(key, str) and is_name(key))


def _value_at(value: Any, keys: Iterable[str]) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _toml(text: str) -> dict[str, Any]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.count(".") > _MOST_DOTS and _without_comments(line).count(".") > _MOST_DOTS:
            raise ValueError(f"a key with too many parts in line {number}")
    return tomllib.loads(text)


def _json(text: str) -> dict[str, Any]:
    parsed = json.loads(text)
    if not isinstance(parsed, dict):
        raise ValueError("it holds no object")
    return parsed


def _xml(text: str) -> Element:
    # Entity definitions can expand without bound.
    if "<!" in text.replace("<!--", "").replace("<![CDATA[", ""):
        raise ValueError("it has a definition of its own document type")
    try:
        return ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise ValueError(str(error)) from None


def _without_comments(line: str) -> str:
    """A line without quoted text and comments.

    At the beginning or the end of a multi-line string this is unclear, and the whole line is
    returned.
    """
    is_part = '"""' in line or "'''" in line
    return line if is_part else _QUOTED.sub("", line).partition("#")[0]


def _one_line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:200]
