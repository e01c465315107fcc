"""Moves the files of a commit of another branch out of the working tree, and back.

git leaves untracked files in place when another branch is checked out. `git add -A` would then add
them to a history to which they do not belong. The staging store has a copy of every object,
including the documents of the commit. Callers hold the project's lock.
"""

import os
from collections.abc import Iterator, Set
from contextlib import suppress
from typing import TYPE_CHECKING

from ctx import disk
from ctx.errors import CtxError
from ctx.layout import Project
from ctx.objects import untracked_commits
from ctx.objects.object_store import read_typed
from ctx.objects.object_types import Commit
from ctx.objects.untracked_commits import UntrackedCommit, committed_path

if TYPE_CHECKING:
    from ctx.objects.repository import Repository


def has_files(project: Project, entry: UntrackedCommit) -> bool:
    head = os.path.join(project.heads, entry.commit)
    return os.path.lexists(head) or os.path.exists(committed_path(project, entry.commit))


def park(repository: "Repository", entry: UntrackedCommit, kept: Set[str]) -> None:
    """Remove a commit's files, except those in `kept`, which git tracks or others use.

    The entry is marked first: before that, missing files mean that git removed them.
    """
    project = repository.project
    if not entry.is_parked:
        untracked_commits.write(project, entry._replace(is_parked=True))
    head = os.path.join(project.heads, entry.commit)
    paths = [path for path, content in _documents(repository, entry) if _holds(path, content)]
    # The commit goes last: while it is there, interrupted parking is resumed.
    objects = sorted(entry.objects, key=entry.commit.__eq__)
    paths += [committed_path(project, id) for id in objects if id in repository.staged]
    with disk.explain_errors("parking a commit of another branch"):
        disk.discard(head)
        disk.sync_folder(project.heads)
        for path in paths:
            if path not in kept:
                disk.discard(path)
        for folder in sorted({os.path.dirname(path) for path in paths}):
            if os.path.isdir(folder):
                disk.sync_folder(folder)


def unpark(repository: "Repository", entry: UntrackedCommit, *, is_head: bool) -> None:
    """Restore a commit's files, its head last, and then update its entry."""
    project = repository.project
    absent = [id for id in entry.objects if not os.path.exists(committed_path(project, id))]
    repository.objects.write(repository.staged.read(id) for id in absent if id in repository.staged)
    with disk.explain_errors("bringing back a commit with its branch"):
        for path, content in _documents(repository, entry):
            if not os.path.lexists(path):
                disk.make_folder(os.path.dirname(path))
                disk.replace(path, content)
    if is_head:
        repository.heads.advance(entry.commit, ())
    untracked_commits.write(project, entry._replace(is_parked=False))


def _documents(repository: "Repository", entry: UntrackedCommit) -> Iterator[tuple[str, bytes]]:
    """The narrative files of a commit, with their content."""
    folder = os.path.realpath(repository.project.narrative)
    with suppress(CtxError):
        for ref in read_typed(repository.everything, entry.commit, Commit).narrative_refs:
            path = os.path.join(folder, ref.path)
            if os.path.realpath(path).startswith(folder + os.sep) and ref.blob_id in entry.objects:
                yield path, repository.everything.read(ref.blob_id).payload


def _holds(path: str, content: bytes) -> bool:
    """Whether a file is unchanged; the user's edits are kept."""
    try:
        return disk.read_plain(path, len(content) + 1) == content
    except OSError:
        return False
