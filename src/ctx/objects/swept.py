"""Whether the commit made here last is gone, and git never had it.

Until `git add`, a commit is files that git does not know, and `git clean -fdx` takes them all. What
a commit brought has second names in the staging store for a while, so it can be got back.

Every command asks: this looks at two names, and loads nothing of the object store. git is asked
only where a commit is missing, and mostly once.
"""

import os
from contextlib import suppress

from ctx import disk, git
from ctx.errors import CtxError, GitFailure
from ctx.ids import ObjectId
from ctx.layout import Project
from ctx.objects import refs
from ctx.objects.refs import Refs


def swept_away(project: Project) -> ObjectId | None:
    """The commit made here last, if nothing but the staging store has it."""
    try:
        last = Refs(project.refs).read(refs.MAIN)
    except CtxError:
        # It is damaged, which is for `ctx debug verify` to say.
        return None
    copy = f"{project.staged_objects}/{last}"
    if last is None or os.path.exists(committed(project, last)) or not os.path.exists(copy):
        return None
    git_has = is_in_git(project, last)
    if git_has:
        # It is on another branch, or was taken back on purpose: git need not be asked again.
        with suppress(OSError):
            disk.discard(copy)
    return last if git_has is False else None


def is_in_git(project: Project, id: ObjectId) -> bool | None:
    """Whether git has, or had, an object that is in the staging store too; None: it cannot say."""
    if project.checkout is None:
        return None
    try:
        content = disk.read(f"{project.staged_objects}/{id}")
        return git.has_content(project.checkout, committed(project, id), content)
    except (GitFailure, OSError):
        return None


def committed(project: Project, id: ObjectId) -> str:
    """Where a committed object lies, as long as it is there."""
    return f"{project.objects}/{id[:2]}/{id}"
