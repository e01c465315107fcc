"""Which files a person's paths refer to, and which of them can be stored.

Inside git, git's rules apply: tracked files, and those that `git add` would add. Outside of git,
the folder is walked with its `.gitignore` files. The project's ignore globs apply in both cases.
"""

import glob
import os
import re
import stat
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ctx import disk, git, layout
from ctx.code import patterns
from ctx.errors import PathRefused
from ctx.layout import STORE_NAME, Project

_NEVER = frozenset({STORE_NAME, ".git"})
_BINARY_PROBE = 8192
_DEEPEST = 200


class SelectionRules(NamedTuple):
    ignore_globs: Sequence[str]
    max_file_bytes: int
    include_ignored: bool = False


class SelectedFile(NamedTuple):
    path: str
    """Relative to the project's root, with `/`."""
    named: bool
    """Named explicitly by the user, rather than found in a folder or by a glob."""


class RefusedFile(NamedTuple):
    path: str
    reason: str
    named: bool


def choose(
    project: Project, folder: str, wanted: Sequence[str], rules: SelectionRules
) -> tuple[list[SelectedFile], list[RefusedFile]]:
    """The files for paths, folders and globs relative to `folder`.

    A path that does not exist or is outside of the project, or a glob without a match, is an error,
    and no file is selected.
    """
    choose_one: set[str] = set()
    listed: set[str] = set()
    for word in wanted:
        if not word:
            raise PathRefused("An empty path names nothing.", hint="`.` is this folder.")
        # With a trailing slash, a link would look like the folder it points to.
        full = os.path.join(folder, word.rstrip("/") or "/")
        inside = project_path(project, full, word)
        if (
            os.path.isdir(full)
            and not os.path.islink(full)
            and not _other_repository(project, inside)
        ):
            listed.update(_unignored_files(project, inside, rules))
        elif os.path.lexists(full):
            choose_one.add(inside)
        elif glob.has_magic(word):
            matches = _files_matching_glob(project, folder, inside, rules)
            if not matches:
                raise PathRefused(
                    f"Nothing matches {word!r}.",
                    hint="To add ignored files, use `ctx add file --force`.",
                )
            listed.update(matches)
        else:
            raise PathRefused(
                f"{word!r} does not exist.", hint="Paths are relative to this folder."
            )
    refused = [
        RefusedFile(path, f"it belongs to the git repository in {other}", named=True)
        for path in sorted(choose_one)
        if (other := _other_repository(project, path))
    ]
    choose_one -= {item.path for item in refused}
    ignored = _ignored_paths(project, sorted(choose_one | listed), rules)
    refused += [
        RefusedFile(path, ignored[path], named=True) for path in sorted(choose_one & set(ignored))
    ]
    chosen = [SelectedFile(path, path in choose_one) for path in sorted(choose_one | listed)]
    return [candidate for candidate in chosen if candidate.path not in ignored], refused


def choose_one(
    project: Project, folder: str, word: str, rules: SelectionRules
) -> SelectedFile | RefusedFile:
    """The file for one path, whether or not it exists."""
    if not word or word.endswith("/") or "\0" in word:
        raise PathRefused(f"{word!r} names no file.")
    path = project_path(project, os.path.join(folder, word), word)
    if os.path.isdir(os.path.join(project.root, path)):
        raise PathRefused(f"{word!r} is a folder.", hint="Name a file in it.")
    if other := _other_repository(project, path):
        return RefusedFile(path, f"it belongs to the git repository in {other}", named=True)
    ignored = _ignored_paths(project, [path], rules)
    return (
        RefusedFile(path, ignored[path], named=True) if ignored else SelectedFile(path, named=True)
    )


def read(project: Project, candidate: SelectedFile, rules: SelectionRules) -> bytes | RefusedFile:
    """The content of a file, or the reason why it is not stored."""
    path = os.path.join(project.root, candidate.path)

    def refused(reason: str) -> RefusedFile:
        return RefusedFile(candidate.path, reason, candidate.named)

    try:
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode):
            return refused("it is a symbolic link")
        if not stat.S_ISREG(status.st_mode):
            return refused("it is not a plain file")
        if status.st_size > rules.max_file_bytes:
            return refused(_too_large(status.st_size, rules))
        content = disk.read(path)
    except (OSError, ValueError) as error:
        return refused(f"it cannot be read: {getattr(error, 'strerror', error)}")
    return unfit(candidate, content, rules) or content


def unfit(candidate: SelectedFile, content: bytes, rules: SelectionRules) -> RefusedFile | None:
    """Why a file with this content is not stored."""
    reason = layout.unfit_name(candidate.path)
    if not reason and candidate.path.count("/") > _DEEPEST:
        reason = "it is in too many nested folders"
    elif not reason and len(content) > rules.max_file_bytes:
        reason = _too_large(len(content), rules)
    elif not reason and b"\0" in content[:_BINARY_PROBE]:
        reason = "it is binary"
    return RefusedFile(candidate.path, reason, candidate.named) if reason else None


def _too_large(size: int, rules: SelectionRules) -> str:
    limit = f"{rules.max_file_bytes:,} bytes (ingestion.max_file_bytes)"
    return f"its {size:,} bytes are over the limit of {limit}"


def project_path(project: Project, full: str, word: str) -> str:
    """A path relative to the project's root. Links in it are followed, except for the last
    component."""
    full = os.path.abspath(full)
    real = os.path.join(os.path.realpath(os.path.dirname(full)), os.path.basename(full))
    inside = os.path.relpath(real, project.root)
    if inside == ".." or inside.startswith("../"):
        raise PathRefused(
            f"{word!r} is outside the project {project.root}.",
            hint="A project store keeps only files of its own project.",
        )
    if _NEVER.intersection(inside.split("/")):
        raise PathRefused(f"{word!r} belongs to ctx or git itself.")
    return inside


def _unignored_files(project: Project, folder: str, rules: SelectionRules) -> Iterator[str]:
    """The files under a folder that are not ignored, relative to the project's root."""
    full = os.path.normpath(os.path.join(project.root, folder))
    if project.checkout is None or rules.include_ignored:
        yield from _walk(project.root, full)
        return
    for path in git.belonging_files(project.checkout, full):
        inside = os.path.relpath(os.path.join(project.checkout.top, path), project.root)
        # The list includes deleted tracked files, and submodules as folders.
        there = os.path.join(project.root, inside)
        is_file = os.path.islink(there) or (os.path.lexists(there) and not os.path.isdir(there))
        if is_file and not _NEVER.intersection(inside.split("/")):
            yield inside


def _files_matching_glob(
    project: Project, folder: str, pattern: str, rules: SelectionRules
) -> set[str]:
    """The files that match a glob, `**` for any number of folders. The glob is matched against the
    list of files, so cyclic links are never followed."""
    here = os.path.relpath(os.path.realpath(folder), project.root).split("/")
    parts = pattern.split("/")
    for number, (part, own) in enumerate(zip(parts, here, strict=False)):
        if part != own:
            break
        # The name of the current folder is not a glob.
        parts[number] = re.sub(r"([\\*?\[\]])", r"\\\1", part)
    wanted = patterns.compile_rules(["/" + "/".join(parts)])
    return {
        path for path in _unignored_files(project, ".", rules) if patterns.ignores(wanted, path)
    }


def _walk(root: str, start: str) -> Iterator[str]:
    for folder, folders, names in os.walk(start):
        if folder != root and ".git" in (*folders, *names):
            # Another repository: its files are not ours.
            folders[:] = []
            continue
        here = sorted(name for name in folders if name not in _NEVER)
        links = [name for name in here if os.path.islink(os.path.join(folder, name))]
        folders[:] = [name for name in here if name not in links]
        for name in sorted([*names, *links]):
            if name not in _NEVER:
                yield os.path.relpath(os.path.join(folder, name), root)


def _other_repository(project: Project, path: str) -> str | None:
    """The folder inside the project, above a path, that is a separate git repository."""
    folder = path
    while folder not in ("", "."):
        if os.path.lexists(os.path.join(project.root, folder, ".git")):
            return folder
        folder = os.path.dirname(folder)
    return None


def _ignored_paths(project: Project, paths: Sequence[str], rules: SelectionRules) -> dict[str, str]:
    """The ignored paths, each with the reason."""
    if rules.include_ignored:
        return {}
    globs = patterns.compile_rules(rules.ignore_globs)
    ignored = {
        path: "ingestion.ignore_globs lists it (--force adds it)"
        for path in paths
        if patterns.ignores(globs, path)
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
    """Apply the `.gitignore` files without git."""
    known: dict[str, patterns.Rules] = {}

    def rules_in(folder: str) -> patterns.Rules:
        if folder not in known:
            try:
                content = disk.read(os.path.join(project.root, folder, ".gitignore"))
            except OSError:
                content = b""
            above = rules_in(os.path.dirname(folder)) if folder else ()
            known[folder] = (
                patterns.read_patterns(content, len(folder) + 1 if folder else 0) + above
            )
        return known[folder]

    for path in paths:
        if patterns.ignores(rules_in(os.path.dirname(path)), path):
            yield path
