"""Finds working trees of git repositories by reading the files under `.git`.

It starts no process, because every command and every hook needs it.
"""

import os
import stat
from typing import NamedTuple

_LONGEST_LINE = 8192


class Checkout(NamedTuple):
    """One working tree of a repository."""

    top: str
    """The folder that holds `.git`."""
    git_dir: str
    """This working tree's own git folder."""
    common_dir: str
    """The git folder that all working trees of the repository share."""

    @property
    def worktree(self) -> str:
        """`main` for the first working tree, `worktree-NAME` for a linked one."""
        if self.git_dir == self.common_dir:
            return "main"
        return f"worktree-{os.path.basename(self.git_dir)}"


def find_checkout(folder: str) -> Checkout | None:
    """The checkout that contains a folder, or None."""
    here = os.path.abspath(folder)
    while True:
        git_dir = _git_dir(os.path.join(here, ".git"))
        if git_dir is not None:
            return Checkout(here, git_dir, _common_dir(git_dir))
        parent = os.path.dirname(here)
        if parent == here:
            return None
        here = parent


def _git_dir(dot_git: str) -> str | None:
    if os.path.isdir(dot_git):
        return dot_git if _is_git_dir(dot_git) else None
    target = _first_line(dot_git)
    if target is None or not target.startswith("gitdir: "):
        return None
    git_dir = os.path.normpath(os.path.join(os.path.dirname(dot_git), target[len("gitdir: ") :]))
    return git_dir if _is_git_dir(git_dir) else None


def _is_git_dir(folder: str) -> bool:
    """Whether git accepts a folder as a repository.

    If not, git searches further up and would use the settings of another repository.
    """
    head = os.path.join(folder, "HEAD")
    if os.path.islink(head):
        is_head = os.readlink(head).startswith("refs/")
    else:
        line = _first_line(head) or ""
        is_head = line.startswith("ref:") and line[4:].lstrip().startswith("refs/")
        is_head = is_head or _commit_id(line) is not None
    common = _common_dir(folder)
    parts = (os.path.join(common, name) for name in ("objects", "refs"))
    return is_head and all(os.access(part, os.X_OK) for part in parts)


def _common_dir(git_dir: str) -> str:
    shared = _first_line(os.path.join(git_dir, "commondir"))
    return git_dir if shared is None else os.path.normpath(os.path.join(git_dir, shared))


def _first_line(path: str) -> str | None:
    try:
        # A FIFO in its place must not block.
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        first = os.read(fd, _LONGEST_LINE).partition(b"\n")[0]
    except OSError:
        return None
    finally:
        os.close(fd)
    return first.rstrip(b"\r").decode("utf-8", "surrogateescape")


def branch_and_commit(checkout: Checkout) -> tuple[str | None, str | None]:
    """The current branch and commit, as far as plain files show them.

    No process is started: capture calls this for every session.
    """
    said = _first_line(os.path.join(checkout.git_dir, "HEAD")) or ""
    ref = said.removeprefix("ref: ").strip()
    if ref == said:
        return None, _commit_id(said)
    if not ref.startswith("refs/heads/") or ".." in ref.split("/"):
        return None, None
    commit = _first_line(os.path.join(checkout.common_dir, *ref.split("/")))
    return ref.removeprefix("refs/heads/"), _commit_id(commit or _packed_ref(checkout, ref))


def _packed_ref(checkout: Checkout, ref: str) -> str:
    """The commit of a ref in `packed-refs`."""
    wanted = f" {ref}\n"
    try:
        # A FIFO in its place must not block.
        fd = os.open(os.path.join(checkout.common_dir, "packed-refs"), os.O_RDONLY | os.O_NONBLOCK)
        with open(fd, encoding="utf-8", errors="surrogateescape") as lines:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                return ""
            return next((line[: -len(wanted)] for line in lines if line.endswith(wanted)), "")
    except OSError:
        return ""


def _commit_id(text: str) -> str | None:
    text = text.strip()
    return text if len(text) in (40, 64) and not text.strip("0123456789abcdef") else None
