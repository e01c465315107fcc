"""Batches as files on a branch of a git repository, which is named by a URL or a path.

ctx has a private bare clone with the newest commit alone, and makes commits without a working tree.
If another machine has pushed first, the commit is made again on top of what that machine pushed. No
two machines write a file of the same name, so there are no conflicts.
"""

import os
import re
import shutil
from collections.abc import Collection, Sequence
from contextlib import suppress

from ctx import disk, git
from ctx.errors import GitFailure, SyncFailure
from ctx.sync import batch_files
from ctx.sync.batch_files import BatchFile, UnreadableFile
from ctx.sync.batch_target import TargetListing

BRANCH = "refs/heads/ctx-sync"
_FETCHED = "refs/ctx/fetched"
_MESSAGE = "sync"
_OLD = ".old"
_REACHABLE = "Check the address, and that `git ls-remote` can reach it without a prompt."
_TRIES = 5
_NETWORK_S = 120.0
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]*@|(?<=password=)[^&\s]*")


def shown(remote: str) -> str:
    """A URL or a message without the user name and password of a URL."""
    return _CREDENTIALS.sub("", remote)


class _ServerFailure(GitFailure):
    """The repository cannot be reached, or it refused."""


class GitTarget:
    def __init__(self, remote: str, clone: str) -> None:
        self._remote = remote
        self._clone = clone

    def listing(self) -> TargetListing:
        try:
            names = self._entries(self._fetch())
        except _ServerFailure:
            raise
        except GitFailure:
            # The clone is damaged, perhaps because the machine lost power.
            self.purge()
            names = self._entries(self._fetch())
        batches = frozenset(name for name in names if batch_files.is_batch_name(name))
        return TargetListing(batches, tuple(sorted(names.keys() - batches)))

    def read(self, name: str) -> bytes:
        try:
            return self._git("cat-file", "blob", f"{_FETCHED}:{name}")
        except GitFailure as error:
            raise UnreadableFile(f"it cannot be read: {error.message}") from error

    def publish(self, added: Sequence[BatchFile], removed: Collection[str] = ()) -> None:
        for _ in range(_TRIES):
            parent = self._fetch()
            entries = self._entries(parent)
            for file in added:
                blob = self._git("hash-object", "-w", "--stdin", stdin=file.data)
                entries[file.name] = f"100644 blob {blob.decode().strip()}"
            for name in removed:
                entries.pop(name, None)
            commit = self._commit(entries, parent)
            try:
                self._git("push", "--quiet", "--", self._remote, f"{commit}:{BRANCH}", far=True)
            except GitFailure:
                if self._remote_commit() == parent:
                    raise
                continue
            self._git("update-ref", _FETCHED, commit)
            return
        raise SyncFailure(
            f"Other machines push to {shown(self._remote)} all the time.", hint="Try again."
        )

    def projects(self) -> None:
        """There are no projects."""

    def purge(self) -> None:
        """Delete the clone, under another name: a part of it would look like a whole one."""
        old = f"{self._clone}{_OLD}"
        shutil.rmtree(old, ignore_errors=True)
        with disk.explain_errors("deleting a private clone"), suppress(FileNotFoundError):
            os.rename(self._clone, old)
        shutil.rmtree(old, ignore_errors=True)

    def _fetch(self) -> str | None:
        """Fetch the newest commit of the branch; None if it does not exist yet."""
        self._create_clone()
        commit = self._remote_commit()
        if commit and commit != self._fetched_commit():
            self._git(
                "fetch", "--quiet", "--no-tags", "--depth=1", "--", self._remote,
                f"+{BRANCH}:{_FETCHED}", far=True,
            )  # fmt: skip
            return self._fetched_commit()
        return commit

    def _create_clone(self) -> None:
        if os.path.exists(os.path.join(self._clone, "HEAD")):
            return
        self.purge()
        with disk.explain_errors("making a private clone"):
            disk.make_folder(self._clone)
        self._git("init", "--quiet", "--bare", "--template=", "--shared=0600")

    def _remote_commit(self) -> str | None:
        answer = self._git("ls-remote", "--quiet", "--", self._remote, BRANCH, far=True)
        return answer.decode().partition("\t")[0] or None

    def _fetched_commit(self) -> str | None:
        answer = self._git("for-each-ref", "--format=%(objectname)", _FETCHED)
        return answer.decode().strip() or None

    def _entries(self, commit: str | None) -> dict[str, str]:
        """The mode, kind and object of each file of a commit, by name."""
        if commit is None:
            return {}
        listed = self._git("ls-tree", "-z", commit).decode("utf-8", "replace")
        lines = (line.split("\t", 1) for line in listed.split("\0") if line)
        return {name: words for words, name in lines}

    def _commit(self, entries: dict[str, str], parent: str | None) -> str:
        listed = "".join(f"{words}\t{name}\0" for name, words in sorted(entries.items()))
        tree = self._git("mktree", "-z", stdin=listed.encode()).decode().strip()
        parents = ("-p", parent) if parent else ()
        return self._git("commit-tree", tree, *parents, "-m", _MESSAGE).decode().strip()

    def _git(self, *arguments: str, stdin: bytes = b"", far: bool = False) -> bytes:
        try:
            return git.run_private(
                self._clone, *arguments, stdin=stdin, seconds=_NETWORK_S if far else None
            )
        except GitFailure as error:
            if far:
                raise _ServerFailure(shown(error.message), hint=_REACHABLE) from error
            raise
