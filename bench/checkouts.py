"""A working tree that moves from commit to commit of a read-only bare repository.

Its HEAD is at the commit of a task, so the visible history ends before the change that the task
asks for.
"""

import os
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

_QUIET = ("-c", "advice.detachedHead=false", "-c", "core.autocrlf=false", "-c", "gc.auto=0")
_HOOKLESS = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")


class Checkout:
    """One repository in its own folder; the objects stay in the mirror."""

    def __init__(self, mirror: str, root: str) -> None:
        self.root = root
        self._git("init", "-q", root, folder=os.path.dirname(root))
        objects = os.path.join(root, ".git", "objects", "info", "alternates")
        Path(objects).write_text(os.path.join(os.path.realpath(mirror), "objects") + "\n", "utf-8")

    def move_to(self, commit: str) -> None:
        """Files that are equal in both stay untouched, so their index stays fresh."""
        try:
            self._git("checkout", "-q", "--force", "--detach", commit)
        except subprocess.CalledProcessError:
            # A mirror may lack its largest files. The others are checked out without them.
            self._git("update-ref", "--no-deref", "HEAD", commit)
            self._git("read-tree", commit)
            with suppress(subprocess.CalledProcessError):
                self._git("checkout-index", "-q", "-f", "-a")
            self._git("clean", "-q", "-f", "-d", "-x")

    def files(self) -> dict[str, str]:
        """The hash of each tracked file, without links and submodules."""
        listed = self._git("ls-tree", "-r", "-z", "HEAD")
        found: dict[str, str] = {}
        for entry in filter(None, listed.split("\0")):
            (mode, _, hash), path = entry.partition("\t")[0].split(), entry.partition("\t")[2]
            if mode.startswith("100"):
                found[path] = hash
        return found

    def read(self, path: str) -> bytes:
        try:
            return Path(self.root, path).read_bytes()
        except OSError:
            return b""

    def committed_at(self, commit: str) -> int:
        return int(self._git("show", "-s", "--format=%ct", commit).split()[-1])

    def changed_lines(self, commit: str) -> Mapping[str, list[tuple[int, int]]]:
        """The lines that a commit deleted or inserted beside, numbered as in its first parent."""
        diff = self._git("diff", "--no-renames", "--no-color", "-U0", f"{commit}^", commit)
        changed: dict[str, list[tuple[int, int]]] = {}
        path = ""
        for line in diff.splitlines():
            if line.startswith("--- a/"):
                path = line[6:].rstrip("\t")
            elif line.startswith("--- "):
                path = ""
            elif line.startswith("@@ ") and path:
                first, _, count = line.split()[1][1:].partition(",")
                length = max(1, int(count or 1))
                changed.setdefault(path, []).append((int(first), int(first) + length - 1))
        return changed

    def parent_of(self, name: str) -> tuple[str, str] | None:
        """The commit that a short name means and its parent; None if there is none."""
        try:
            commit, parent, *_ = self._git("rev-parse", f"{name}^0", f"{name}^1").split()
        except subprocess.CalledProcessError:
            return None
        return commit, parent

    def _git(self, *words: str, folder: str | None = None) -> str:
        command = ["git", "-c", "core.quotepath=off", *_QUIET, *_HOOKLESS, *words]
        done = subprocess.run(
            command, cwd=folder or self.root, capture_output=True, check=True, env=_environment()
        )
        return done.stdout.decode("utf-8", "replace")


def mirror_of(mirrors: str, repository: str) -> str | None:
    """The git directory of `owner/name`; the case of the folder name does not matter."""
    wanted = repository.replace("/", "+").lower()
    for folder in os.listdir(mirrors):
        if folder.lower() == wanted:
            return os.path.join(mirrors, folder, "repo")
    return None


def _environment() -> dict[str, str]:
    """No user settings, and no fetching of missing objects."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    return kept | {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_TERMINAL_PROMPT": "0",
    }
