"""Which files make up the repository, and how they look from outside: size and time stamps.

Inside git the answer is git's: what is tracked, and what `git add` would offer. Elsewhere the
folder is walked under the rules of its `.gitignore` files, and what tools write for themselves
is left out. In both the project's ignore globs and its `.ctxignore` files hold, also for what
git tracks: they say what the index need not know.

It runs before every answer about code, over every file. So a file is a plain tuple, and what can
be said of a folder is asked once for the folder.
"""

import os
import stat
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from ctx import checkouts, disk, git, layout
from ctx.code import patterns
from ctx.code.patterns import Rules, verdict
from ctx.layout import STORE_NAME

Stamps: TypeAlias = tuple[int, int, int, int]
ListedFile: TypeAlias = tuple[str, int, int, int, int]
"""A plain file: its path from the project's root, with `/`; size; mtime and ctime in
nanoseconds; inode."""

COARSEST_STAMP_NS = 2_000_000_000
"""FAT keeps even seconds. No file system in use is coarser."""

_GITIGNORE = ".gitignore"
_CTXIGNORE = ".ctxignore"
_NEVER = frozenset({STORE_NAME, ".git"})
_NEVER_INSIDE = tuple(f"/{name}/" for name in _NEVER)

# Folders that are never anyone's source, whatever is around them.
_MADE_BY_TOOLS = frozenset(
    ".eggs .gradle .hg .mypy_cache .nox .pytest_cache .ruff_cache .svn .terraform .tox .venv"
    " __pycache__ bower_components node_modules".split()
)

# Names that people use too. They are output where the manifest of the tool that writes there
# lies beside them.
_MADE_BESIDE = {
    "target": frozenset({"Cargo.toml", "build.sbt", "pom.xml"}),
    "build": frozenset({"build.gradle", "build.gradle.kts", "setup.py"}),
    "dist": frozenset({"package.json", "pyproject.toml", "setup.py"}),
}

# What a folder holds that is a cache (https://bford.info/cachedir/) or a Python environment.
_TELLTALE = frozenset({"CACHEDIR.TAG", "pyvenv.cfg"})

_DOING = "listing the project's files"
_LINK = "it is a symbolic link"
_NOT_PLAIN = "it is not a plain file"
_OTHER_REPOSITORY = "it is a git repository of its own"


class ExcludedPath(NamedTuple):
    """Something that a person could expect in the index, and that is not taken."""

    path: str
    reason: str


def _always() -> bool:
    return True


class FileListing(NamedTuple):
    files: list[ListedFile]
    """Sorted by path."""
    left_out: list[ExcludedPath]


def list_files(
    project_root: str,
    checkout: checkouts.Checkout | None,
    ignore_globs: Sequence[str],
    is_in_time: Callable[[], bool] = _always,
) -> FileListing:
    """The files of a project, as they are on disk now; for who cannot wait, some of them."""
    own = patterns.compiled(ignore_globs)
    if checkout is None:
        return _walked(project_root, own, is_in_time)
    inside = os.path.relpath(project_root, checkout.top)
    cut = 0 if inside == "." else len(inside) + 1
    looked = _FolderWalk(project_root, own, is_in_time)
    # Who only reads the index lists nothing.
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as beside:
        # While git searches for files that it does not know, we look at those that it knows.
        searching = beside.submit(git.belonging_files, checkout, project_root)
        # An unmerged file is named once for each side.
        tracked = dict.fromkeys(git.tracked_files(checkout, project_root))
        looked.look_at([path[cut:] for path in tracked])
        offered = [path[cut:] for path in searching.result() if path not in tracked]
    # Somebody's home may be a repository that ignores all but a few files, and so this project.
    if cut and not tracked and not offered and git.ignored_files(checkout, [inside]):
        return _walked(project_root, own, is_in_time)
    looked.look_at(offered)
    return FileListing(sorted(looked.files), sorted(set(looked.left_out)))


def why_not(project_root: str, path: str) -> str | None:
    """Why a path that is there is left out; None where nothing speaks against it, or it is not
    there."""
    try:
        return _why_not(project_root, path, os.lstat(os.path.join(project_root, path)))
    except (OSError, ValueError):
        return None


def is_settled(mtime_ns: int, ctime_ns: int, seen_at_ns: int) -> bool:
    """Whether a file that still has these stamps still has the content it was read with.

    `seen_at_ns` is the time before the stamps were taken and the file was read. Stamps advance
    in steps, of a few milliseconds on most file systems and of two seconds on the coarsest. A
    file that was written in the same step in which it was read can be written once more, to the
    same size, and look the same for ever. So the content counts as known by its stamps only if
    the newest of them was older than a step; else it must be hashed again next time, until a
    reading finds it settled. A stamp from the future never settles: what will the next one be?
    """
    return max(mtime_ns, ctime_ns) + COARSEST_STAMP_NS < seen_at_ns


def stamps(found: os.stat_result) -> Stamps:
    """By what a file is known again: size, times, inode."""
    times = disk.storable_ns(found.st_mtime_ns), disk.storable_ns(found.st_ctime_ns)
    return found.st_size, *times, found.st_ino


def _listed(path: str, found: os.stat_result) -> ListedFile:
    return path, *stamps(found)


def _why_not(root: str, path: str, found: os.stat_result) -> str | None:
    if stat.S_ISDIR(found.st_mode):
        # A submodule, or what git will not look into. A file that became a folder is neither.
        dot_git = os.path.join(root, path, ".git")
        return _OTHER_REPOSITORY if os.path.lexists(dot_git) else None
    if stat.S_ISLNK(found.st_mode):
        return _LINK
    if not stat.S_ISREG(found.st_mode):
        return _NOT_PLAIN
    # What is printable is fit: nearly all names need no closer look.
    return None if path.isprintable() else layout.unfit_name(path)


def _with_file(rules: Rules, root: str, file: str) -> Rules:
    """The rules with those of one more file before them."""
    try:
        content = disk.read_plain(os.path.join(root, file), patterns.LARGEST)
    except OSError:
        return rules
    return patterns.read_patterns(content, file.rfind("/") + 1) + rules


class _FolderWalk:
    """What was found where git's paths lead. All names of folders end with a slash; the root's
    is empty."""

    def __init__(self, root: str, own: Rules, is_in_time: Callable[[], bool]) -> None:
        self.files: list[ListedFile] = []
        self.left_out: list[ExcludedPath] = []
        self._root = root
        self._is_in_time = is_in_time
        # What is ignored in a folder; None for one of which nothing counts.
        self._folders: dict[str, Rules | None] = {"": _with_file(own, root, _CTXIGNORE)}

    def look_at(self, paths: Sequence[str]) -> None:
        """Take of these paths what is there and counts."""
        folders, files = self._folders, self.files
        lstat, is_plain, is_in_time = os.lstat, stat.S_ISREG, self._is_in_time
        with disk.explained(_DOING):
            top = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY)
        try:
            for path in paths:
                if not is_in_time():
                    break
                folder = path[: path.rfind("/") + 1]
                rules = folders[folder] if folder in folders else self._rules(folder, top)
                if rules is None or (rules and verdict(rules, path)):
                    continue
                try:
                    found = lstat(path, dir_fd=top)
                except OSError:
                    # Deleted, or never checked out.
                    continue
                if is_plain(found.st_mode) and path.isprintable():
                    files.append(_listed(path, found))
                elif reason := _why_not(self._root, path, found):
                    self.left_out.append(ExcludedPath(path.rstrip("/"), reason))
                elif is_plain(found.st_mode):
                    files.append(_listed(path, found))
        finally:
            os.close(top)

    def _rules(self, folder: str, top: int) -> Rules | None:
        unknown = []
        while folder not in self._folders:
            unknown.append(folder)
            folder = folder[: folder.rfind("/", 0, -1) + 1]
        rules = self._folders[folder]
        for folder in reversed(unknown):
            if rules is not None:
                rules = self._inside(folder, rules, top)
            self._folders[folder] = rules
        return rules

    def _inside(self, folder: str, rules: Rules, top: int) -> Rules | None:
        if ("/" + folder).endswith(_NEVER_INSIDE) or (rules and verdict(rules, folder)):
            return None
        try:
            mode = os.lstat(folder[:-1], dir_fd=top).st_mode
        except OSError:
            return None
        if stat.S_ISLNK(mode):
            # It was a folder once, and git still knows what was in it.
            self.left_out.append(ExcludedPath(folder[:-1], _LINK))
        if not stat.S_ISDIR(mode):
            return None
        rules = patterns.inside(rules, folder) if rules else rules
        if os.access(folder + _CTXIGNORE, os.F_OK, dir_fd=top):
            return _with_file(rules, self._root, folder + _CTXIGNORE)
        return rules


def _walked(root: str, own: Rules, is_in_time: Callable[[], bool]) -> FileListing:
    """The files under a folder without git. Every folder is looked at once, and none recurses."""
    files: list[ListedFile] = []
    left_out: list[ExcludedPath] = []
    # What `.gitignore` and what `.ctxignore` say are two questions, as they are inside git:
    # neither can take back what the other ignores.
    unseen: list[tuple[str, Rules, Rules]] = [("", (), own)]
    while unseen and is_in_time():
        folder, by_git, by_ctx = unseen.pop()
        try:
            with os.scandir(os.path.join(root, folder)) as found:
                entries = {entry.name: entry for entry in found}
        except OSError as error:
            if not folder:
                raise disk.failure(_DOING, error) from error
            left_out.append(ExcludedPath(folder[:-1], f"it cannot be read: {error.strerror}"))
            continue
        if folder and ".git" in entries:
            left_out.append(ExcludedPath(folder[:-1], _OTHER_REPOSITORY))
            continue
        if folder and _TELLTALE & entries.keys():
            continue
        if _GITIGNORE in entries:
            by_git = _with_file(by_git, root, folder + _GITIGNORE)
        if _CTXIGNORE in entries:
            by_ctx = _with_file(by_ctx, root, folder + _CTXIGNORE)
        for name, entry in entries.items():
            path = folder + name
            if entry.is_dir(follow_symlinks=False):
                inside = path + "/"
                if not (
                    _is_output(name, entries) or verdict(by_git, inside) or verdict(by_ctx, inside)
                ):
                    unseen.append((inside, by_git, by_ctx))
            elif name not in _NEVER and not (verdict(by_git, path) or verdict(by_ctx, path)):
                try:
                    status = entry.stat(follow_symlinks=False)
                except OSError:
                    continue
                if reason := _why_not(root, path, status):
                    left_out.append(ExcludedPath(path, reason))
                else:
                    files.append(_listed(path, status))
    return FileListing(sorted(files), sorted(left_out))


def _is_output(name: str, beside: dict[str, os.DirEntry[str]]) -> bool:
    """Whether a folder is what some tool wrote for itself. Inside git nobody has to guess."""
    if name in _NEVER or name in _MADE_BY_TOOLS:
        return True
    return not beside.keys().isdisjoint(_MADE_BESIDE.get(name, ()))
