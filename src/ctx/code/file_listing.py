"""List the files of the repository with their sizes and time stamps.

Inside git, these are the tracked files and those that `git add` would add. Elsewhere the folder is
walked with its `.gitignore` files, and the output of tools is excluded. In both cases the project's
ignore globs and its `.ctxignore` files apply, also to tracked files: they exclude files from the
index.

This runs before every answer about code, over every file. So a file is a plain tuple, and rules
that apply to a folder are evaluated once for the folder.
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
"""A plain file: its path from the project's root, with `/`; size; mtime and ctime in nanoseconds;
inode."""

COARSEST_STAMP_NS = 2_000_000_000
"""FAT stores even seconds. No file system in use is coarser."""

_GITIGNORE = ".gitignore"
_CTXIGNORE = ".ctxignore"
_NEVER = frozenset({STORE_NAME, ".git"})
_NEVER_INSIDE = tuple(f"/{name}/" for name in _NEVER)

# Folders that never contain source code.
_MADE_BY_TOOLS = frozenset(
    ".eggs .gradle .hg .mypy_cache .nox .pytest_cache .ruff_cache .svn .terraform .tox .venv"
    " __pycache__ bower_components node_modules".split()
)

# Names that people use too. They are output if the manifest of the tool that writes them is beside
# them.
_MADE_BESIDE = {
    "target": frozenset({"Cargo.toml", "build.sbt", "pom.xml"}),
    "build": frozenset({"build.gradle", "build.gradle.kts", "setup.py"}),
    "dist": frozenset({"package.json", "pyproject.toml", "setup.py"}),
}

# A folder that contains one of these is a cache (https://bford.info/cachedir/) or a Python
# environment.
_OUTPUT_FOLDER_MARKERS = frozenset({"CACHEDIR.TAG", "pyvenv.cfg"})

_DOING = "listing the project's files"
_LINK = "it is a symbolic link"
_NOT_PLAIN = "it is not a plain file"
_OTHER_REPOSITORY = "it is a git repository of its own"


class ExcludedPath(NamedTuple):
    """A path that a person might expect in the index, but that is excluded."""

    path: str
    reason: str


def _no_deadline() -> bool:
    return True


class FileListing(NamedTuple):
    files: list[ListedFile]
    """Sorted by path."""
    left_out: list[ExcludedPath]


def list_files(
    project_root: str,
    checkout: checkouts.Checkout | None,
    ignore_globs: Sequence[str],
    is_in_time: Callable[[], bool] = _no_deadline,
) -> FileListing:
    """The current files of a project; incomplete if the time is up."""
    own = patterns.compile_rules(ignore_globs)
    if checkout is None:
        return _walk_folders(project_root, own, is_in_time)
    inside = os.path.relpath(project_root, checkout.top)
    cut = 0 if inside == "." else len(inside) + 1
    looked = _FolderWalk(project_root, own, is_in_time)
    # Reading the index alone lists no files.
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as beside:
        # While git searches for untracked files, we process the tracked ones.
        searching = beside.submit(git.belonging_files, checkout, project_root)
        # An unmerged file is listed once for each side.
        tracked = dict.fromkeys(git.tracked_files(checkout, project_root))
        looked.look_at([path[cut:] for path in tracked])
        untracked = [path[cut:] for path in searching.result() if path not in tracked]
    # A home folder may be a repository that ignores all but a few files, including this project.
    if cut and not tracked and not untracked and git.ignored_files(checkout, [inside]):
        return _walk_folders(project_root, own, is_in_time)
    # A new repository may have no `.gitignore` yet.
    looked.look_at([path for path in untracked if _MADE_BY_TOOLS.isdisjoint(path.split("/"))])
    return FileListing(sorted(looked.files), sorted(set(looked.left_out)))


def exclusion_reason(project_root: str, path: str) -> str | None:
    """Why an existing path is excluded; None if there is no reason, or it does not exist."""
    try:
        return _skip_reason(project_root, path, os.lstat(os.path.join(project_root, path)))
    except (OSError, ValueError):
        return None


def is_settled(mtime_ns: int, ctime_ns: int, seen_at_ns: int) -> bool:
    """Whether a file with unchanged stamps still has the content that was read.

    `seen_at_ns` is the time before the stamps were taken and the file was read. Stamps advance in
    steps: a few milliseconds on most file systems, two seconds on the coarsest. A file that was
    written in the same step in which it was read can be written again with the same size, and its
    stamps stay the same. So stamps identify the content only if the newest one was older than a
    step; otherwise the file is hashed again next time, until it is settled. A stamp from the future
    never settles.
    """
    return max(mtime_ns, ctime_ns) + COARSEST_STAMP_NS < seen_at_ns


def stamps(status: os.stat_result) -> Stamps:
    """What identifies a version of a file: size, times, inode."""
    times = disk.storable_ns(status.st_mtime_ns), disk.storable_ns(status.st_ctime_ns)
    return status.st_size, *times, status.st_ino


def _listed(path: str, status: os.stat_result) -> ListedFile:
    return path, *stamps(status)


def _skip_reason(root: str, path: str, status: os.stat_result) -> str | None:
    if stat.S_ISDIR(status.st_mode):
        # A submodule, or a repository that git does not enter. A file that became a folder is
        # neither.
        dot_git = os.path.join(root, path, ".git")
        return _OTHER_REPOSITORY if os.path.lexists(dot_git) else None
    if stat.S_ISLNK(status.st_mode):
        return _LINK
    if not stat.S_ISREG(status.st_mode):
        return _NOT_PLAIN
    # Printable names are valid, so nearly all names need no further check.
    return None if path.isprintable() else layout.unfit_name(path)


def _with_file(rules: Rules, root: str, file: str) -> Rules:
    """The rules, preceded by those of one more file."""
    try:
        content = disk.read_plain(os.path.join(root, file), patterns.LARGEST)
    except OSError:
        return rules
    return patterns.read_patterns(content, file.rfind("/") + 1) + rules


class _FolderWalk:
    """The files found at git's paths. All folder names end with a slash; the root's is empty."""

    def __init__(self, root: str, own: Rules, is_in_time: Callable[[], bool]) -> None:
        self.files: list[ListedFile] = []
        self.left_out: list[ExcludedPath] = []
        self._root = root
        self._is_in_time = is_in_time
        # The rules of each folder; None for an excluded one.
        self._folders: dict[str, Rules | None] = {"": _with_file(own, root, _CTXIGNORE)}

    def look_at(self, paths: Sequence[str]) -> None:
        """Add those of these paths that exist and are not excluded."""
        folders, files = self._folders, self.files
        lstat, is_plain, is_in_time = os.lstat, stat.S_ISREG, self._is_in_time
        with disk.explain_errors(_DOING):
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
                    status = lstat(path, dir_fd=top)
                except OSError:
                    # Deleted, or never checked out.
                    continue
                if is_plain(status.st_mode) and path.isprintable():
                    files.append(_listed(path, status))
                elif reason := _skip_reason(self._root, path, status):
                    self.left_out.append(ExcludedPath(path.rstrip("/"), reason))
                elif is_plain(status.st_mode):
                    files.append(_listed(path, status))
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
                rules = self._rules_in_folder(folder, rules, top)
            self._folders[folder] = rules
        return rules

    def _rules_in_folder(self, folder: str, rules: Rules, top: int) -> Rules | None:
        if ("/" + folder).endswith(_NEVER_INSIDE) or (rules and verdict(rules, folder)):
            return None
        try:
            mode = os.lstat(folder[:-1], dir_fd=top).st_mode
        except OSError:
            return None
        if stat.S_ISLNK(mode):
            # It used to be a folder, and git still tracks its files.
            self.left_out.append(ExcludedPath(folder[:-1], _LINK))
        if not stat.S_ISDIR(mode):
            return None
        rules = patterns.rules_in_folder(rules, folder) if rules else rules
        if os.access(folder + _CTXIGNORE, os.F_OK, dir_fd=top):
            return _with_file(rules, self._root, folder + _CTXIGNORE)
        return rules


def _walk_folders(root: str, own: Rules, is_in_time: Callable[[], bool]) -> FileListing:
    """The files under a folder without git. Each folder is visited once, without recursion."""
    files: list[ListedFile] = []
    left_out: list[ExcludedPath] = []
    # `.gitignore` and `.ctxignore` are separate, as inside git: neither can re-include what the
    # other ignores.
    unseen: list[tuple[str, Rules, Rules]] = [("", (), own)]
    while unseen and is_in_time():
        folder, by_git, by_ctx = unseen.pop()
        try:
            with os.scandir(os.path.join(root, folder)) as scanned:
                entries = {entry.name: entry for entry in scanned}
        except OSError as error:
            if not folder:
                raise disk.failure(_DOING, error) from error
            left_out.append(ExcludedPath(folder[:-1], f"it cannot be read: {error.strerror}"))
            continue
        if folder and ".git" in entries:
            left_out.append(ExcludedPath(folder[:-1], _OTHER_REPOSITORY))
            continue
        if folder and _OUTPUT_FOLDER_MARKERS & entries.keys():
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
                if reason := _skip_reason(root, path, status):
                    left_out.append(ExcludedPath(path, reason))
                else:
                    files.append(_listed(path, status))
    return FileListing(sorted(files), sorted(left_out))


def _is_output(name: str, beside: dict[str, os.DirEntry[str]]) -> bool:
    """Whether a folder is the output of a tool."""
    if name in _NEVER or name in _MADE_BY_TOOLS:
        return True
    return not beside.keys().isdisjoint(_MADE_BESIDE.get(name, ()))
