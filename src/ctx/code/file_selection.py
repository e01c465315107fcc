"""Which files a person means by the paths they name, and which of those can be kept.

Inside git the rules are git's own: what is tracked, and what `git add` would offer. Outside git
the folder is walked with the `.gitignore` files in it. The project's ignore globs hold in both.
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
    """From the project's root, with `/`."""
    named: bool
    """Named outright by the user, rather than found in a folder or by a glob."""


class RefusedFile(NamedTuple):
    path: str
    reason: str
    named: bool


def choose(
    project: Project, folder: str, wanted: Sequence[str], rules: SelectionRules
) -> tuple[list[SelectedFile], list[RefusedFile]]:
    """The files behind paths, folders and globs given relative to `folder`.

    A path that does not exist or lies outside the project, and a glob that matches nothing, is
    an error: nothing is chosen at all.
    """
    choose_one: set[str] = set()
    found: set[str] = set()
    for word in wanted:
        if not word:
            raise PathRefused("An empty path names nothing.", hint="`.` is this folder.")
        # Behind a slash at its end, a link would look like the folder it leads to.
        full = os.path.join(folder, word.rstrip("/") or "/")
        inside = _inside(project, full, word)
        if (
            os.path.isdir(full)
            and not os.path.islink(full)
            and not _other_repository(project, inside)
        ):
            found.update(_belonging(project, inside, rules))
        elif os.path.lexists(full):
            choose_one.add(inside)
        elif glob.has_magic(word):
            matches = _matching(project, folder, inside, rules)
            if not matches:
                raise PathRefused(
                    f"Nothing matches {word!r}.",
                    hint="What is ignored counts only for `ctx add file --force`.",
                )
            found.update(matches)
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
    ignored = _ignored(project, sorted(choose_one | found), rules)
    refused += [
        RefusedFile(path, ignored[path], named=True) for path in sorted(choose_one & set(ignored))
    ]
    chosen = [SelectedFile(path, path in choose_one) for path in sorted(choose_one | found)]
    return [candidate for candidate in chosen if candidate.path not in ignored], refused


def choose_one(
    project: Project, folder: str, word: str, rules: SelectionRules
) -> SelectedFile | RefusedFile:
    """The file that one path means, whether it is there or not."""
    if not word or word.endswith("/"):
        raise PathRefused(f"{word!r} names no file.")
    path = _inside(project, os.path.join(folder, word), word)
    if os.path.isdir(os.path.join(project.root, path)):
        raise PathRefused(f"{word!r} is a folder.", hint="Name a file in it.")
    if other := _other_repository(project, path):
        return RefusedFile(path, f"it belongs to the git repository in {other}", named=True)
    ignored = _ignored(project, [path], rules)
    return (
        RefusedFile(path, ignored[path], named=True) if ignored else SelectedFile(path, named=True)
    )


def read(project: Project, candidate: SelectedFile, rules: SelectionRules) -> bytes | RefusedFile:
    """A file's bytes, or why it is not kept."""
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
    """Why a file with some content is not kept."""
    reason = layout.unfit_name(candidate.path)
    if not reason and candidate.path.count("/") > _DEEPEST:
        reason = "it lies too many folders deep"
    elif not reason and len(content) > rules.max_file_bytes:
        reason = _too_large(len(content), rules)
    elif not reason and b"\0" in content[:_BINARY_PROBE]:
        reason = "it is binary"
    return RefusedFile(candidate.path, reason, candidate.named) if reason else None


def _too_large(size: int, rules: SelectionRules) -> str:
    limit = f"{rules.max_file_bytes:,} bytes (ingestion.max_file_bytes)"
    return f"its {size:,} bytes are over the limit of {limit}"


def _inside(project: Project, full: str, word: str) -> str:
    """A path from the project's root. Links on the way are followed, the last name is not."""
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


def _belonging(project: Project, folder: str, rules: SelectionRules) -> Iterator[str]:
    """The files under a folder that count, from the project's root."""
    full = os.path.normpath(os.path.join(project.root, folder))
    if project.checkout is None or rules.include_ignored:
        yield from _walk(project.root, full)
        return
    for path in git.belonging_files(project.checkout, full):
        inside = os.path.relpath(os.path.join(project.checkout.top, path), project.root)
        # Tracked files that were deleted are listed too, and submodules as folders.
        there = os.path.join(project.root, inside)
        is_file = os.path.islink(there) or (os.path.lexists(there) and not os.path.isdir(there))
        if is_file and not _NEVER.intersection(inside.split("/")):
            yield inside


def _matching(project: Project, folder: str, pattern: str, rules: SelectionRules) -> set[str]:
    """The files that a glob means, `**` for any number of folders. The glob is held against the
    list of files, so that links which lead in circles are never followed."""
    here = os.path.relpath(os.path.realpath(folder), project.root).split("/")
    parts = pattern.split("/")
    for number, (part, own) in enumerate(zip(parts, here, strict=False)):
        if part != own:
            break
        # The folder we stand in has a name, not a glob.
        parts[number] = re.sub(r"([\\*?\[\]])", r"\\\1", part)
    wanted = patterns.compiled(["/" + "/".join(parts)])
    return {path for path in _belonging(project, ".", rules) if patterns.ignores(wanted, path)}


def _walk(root: str, start: str) -> Iterator[str]:
    for folder, folders, names in os.walk(start):
        if folder != root and ".git" in (*folders, *names):
            # Another repository: what is in it is not ours.
            folders[:] = []
            continue
        here = sorted(name for name in folders if name not in _NEVER)
        links = [name for name in here if os.path.islink(os.path.join(folder, name))]
        folders[:] = [name for name in here if name not in links]
        for name in sorted([*names, *links]):
            if name not in _NEVER:
                yield os.path.relpath(os.path.join(folder, name), root)


def _other_repository(project: Project, path: str) -> str | None:
    """The folder inside the project, above a path, that is a git repository of its own."""
    folder = path
    while folder not in ("", "."):
        if os.path.lexists(os.path.join(project.root, folder, ".git")):
            return folder
        folder = os.path.dirname(folder)
    return None


def _ignored(project: Project, paths: Sequence[str], rules: SelectionRules) -> dict[str, str]:
    """Those of the paths that are ignored, and by what."""
    if rules.include_ignored:
        return {}
    globs = patterns.compiled(rules.ignore_globs)
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
    """What the `.gitignore` files say, without git."""
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
