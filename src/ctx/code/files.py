"""Which files a person means by the paths they name, and which of those can be kept.

Inside git the rules are git's own: what is tracked, and what `git add` would offer. Outside git
the folder is walked with the `.gitignore` files in it. The project's ignore globs hold in both.
"""

import glob
import os
import stat
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pathspec

from ctx import disk, git
from ctx.errors import PathRefused
from ctx.layout import STORE_NAME, Project

_NEVER = frozenset({STORE_NAME, ".git"})
_BINARY_PROBE = 8192
_DEEPEST = 200


class Rules(NamedTuple):
    ignore_globs: Sequence[str]
    max_file_bytes: int
    include_ignored: bool = False


class Candidate(NamedTuple):
    path: str
    """From the project's root, with `/`."""
    named: bool
    """Named outright by the user, rather than found in a folder or by a glob."""


class Refused(NamedTuple):
    path: str
    reason: str
    named: bool


def choose(
    project: Project, folder: str, wanted: Sequence[str], rules: Rules
) -> tuple[list[Candidate], list[Refused]]:
    """The files behind paths, folders and globs given relative to `folder`.

    A path that does not exist or lies outside the project, and a glob that matches nothing, is
    an error: nothing is chosen at all.
    """
    named: set[str] = set()
    found: set[str] = set()
    for word in wanted:
        full = os.path.join(folder, word)
        if os.path.lexists(full):
            inside = _inside(project, full, word)
            (found if os.path.isdir(os.path.join(project.root, inside)) else named).add(inside)
        elif glob.has_magic(word):
            matches = glob.glob(word, root_dir=folder, recursive=True, include_hidden=True)
            found.update(_inside(project, os.path.join(folder, match), word) for match in matches)
            if not matches:
                raise PathRefused(f"Nothing matches {word!r}.")
        else:
            raise PathRefused(f"{word!r} does not exist.")
    folders = {path for path in found if os.path.isdir(os.path.join(project.root, path))}
    files = (found - folders).union(*(_belonging(project, path) for path in folders)) - named
    ignored = _ignored(project, sorted(named | files), rules)
    chosen = [Candidate(path, named=True) for path in sorted(named)]
    chosen += [Candidate(path, named=False) for path in sorted(files)]
    return (
        [candidate for candidate in chosen if candidate.path not in ignored],
        [Refused(path, ignored[path], named=True) for path in sorted(named) if path in ignored],
    )


def read(project: Project, candidate: Candidate, rules: Rules) -> bytes | Refused:
    """A file's bytes, or why it is not kept."""
    path = os.path.join(project.root, candidate.path)

    def refused(reason: str) -> Refused:
        return Refused(candidate.path, reason, candidate.named)

    try:
        candidate.path.encode("utf-8")
    except UnicodeEncodeError:
        return refused("its name is not UTF-8")
    if candidate.path.count("/") > _DEEPEST:
        return refused("it lies too many folders deep")
    if any(not character.isprintable() for character in candidate.path):
        return refused("its name has a control character in it")
    try:
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode):
            return refused("it is a symbolic link")
        if not stat.S_ISREG(status.st_mode):
            return refused("it is not a plain file")
        if status.st_size > rules.max_file_bytes:
            limit = f"{rules.max_file_bytes:,} bytes (ingestion.max_file_bytes)"
            return refused(f"its {status.st_size:,} bytes are over the limit of {limit}")
        content = disk.read(path)
    except OSError as error:
        return refused(f"it cannot be read: {error.strerror}")
    if b"\0" in content[:_BINARY_PROBE]:
        return refused("it is binary")
    return content


def _inside(project: Project, full: str, word: str) -> str:
    """A path from the project's root. Links on the way are followed, the last name is not."""
    try:
        parent = os.path.realpath(os.path.dirname(os.path.abspath(full)), strict=True)
    except OSError as error:
        raise PathRefused(f"{word!r} cannot be reached: {error.strerror}.") from error
    real = os.path.join(parent, os.path.basename(os.path.abspath(full)))
    inside = os.path.relpath(real, project.root)
    if inside == ".." or inside.startswith("../"):
        raise PathRefused(
            f"{word!r} is outside the project {project.root}.",
            hint="A project store keeps only files of its own project.",
        )
    if _NEVER.intersection(inside.split("/")):
        raise PathRefused(f"{word!r} belongs to ctx or git itself.")
    return inside


def _belonging(project: Project, folder: str) -> Iterator[str]:
    full = os.path.normpath(os.path.join(project.root, folder))
    if project.checkout is None:
        yield from _walk(project.root, full)
        return
    for path in git.belonging_files(project.checkout, full):
        inside = os.path.relpath(os.path.join(project.checkout.top, path), project.root)
        # Tracked files that were deleted from the working tree are listed too.
        exists = os.path.lexists(os.path.join(project.root, inside))
        if exists and not _NEVER.intersection(inside.split("/")):
            yield inside


def _walk(root: str, start: str) -> Iterator[str]:
    for folder, folders, names in os.walk(start):
        kept = [name for name in sorted(folders) if name not in _NEVER]
        folders[:] = kept
        for name in sorted(names):
            yield os.path.relpath(os.path.join(folder, name), root)


def _ignored(project: Project, paths: Sequence[str], rules: Rules) -> dict[str, str]:
    """Those of the paths that are ignored, and by what."""
    if rules.include_ignored:
        return {}
    globs = pathspec.GitIgnoreSpec.from_lines(rules.ignore_globs)
    ignored = {
        path: "ingestion.ignore_globs lists it (--force adds it)"
        for path in paths
        if globs.match_file(path)
    }
    by_git = _ignored_by_git if project.checkout else _ignored_by_files
    for path in by_git(project, [path for path in paths if path not in ignored]):
        ignored[path] = ".gitignore lists it (--force adds it)"
    return ignored


def _ignored_by_git(project: Project, paths: Sequence[str]) -> Iterator[str]:
    assert project.checkout is not None
    top = project.checkout.top
    from_top = {os.path.relpath(os.path.join(project.root, path), top): path for path in paths}
    for ignored in git.ignored_files(project.checkout, from_top):
        yield from_top[ignored]


def _ignored_by_files(project: Project, paths: Sequence[str]) -> Iterator[str]:
    """What the `.gitignore` files say, without git: the deepest that has an opinion decides."""
    specs: dict[str, pathspec.GitIgnoreSpec | None] = {}

    def spec(folder: str) -> pathspec.GitIgnoreSpec | None:
        if folder not in specs:
            found = disk.read_or_none(os.path.join(project.root, folder, ".gitignore"))
            lines = found.decode("utf-8", "replace").splitlines() if found is not None else None
            specs[folder] = pathspec.GitIgnoreSpec.from_lines(lines) if lines else None
        return specs[folder]

    for path in paths:
        folder = os.path.dirname(path)
        while True:
            rules = spec(folder)
            if rules is not None:
                verdict = rules.check_file(os.path.relpath(path, folder or ".")).include
                if verdict is not None:
                    if verdict:
                        yield path
                    break
            if not folder:
                break
            folder = os.path.dirname(folder)
