"""Publish a commit again that was swept away before git had it.

It takes its ancestors along that went the same way, and the documents that went with them. Where
git has a commit, it is on another branch or was taken back on purpose: those are left alone.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from ctx import git
from ctx.errors import CtxError, ObjectNotFound
from ctx.ids import ObjectId
from ctx.narrative import files as narrative_files
from ctx.narrative import projection
from ctx.objects import commits, references, refs, swept
from ctx.objects.model import Commit, Tree
from ctx.objects.repository import Repository
from ctx.objects.store import decode

_TOGETHER = 100


class Republished(NamedTuple):
    """A commit that was swept away, and is a head again."""

    commit: ObjectId
    message: str
    commits: int
    """How many come back: with those before it that went the same way."""
    objects: int
    documents: tuple[str, ...]
    """What was written again of the narrative."""
    problem: str | None = None
    """Why it stays away, where something is in the way."""


def republish(repository: Repository, *, dry_run: bool) -> Republished | None:
    """Get back the commit made here last, if it is gone and git never had it.

    The commit itself comes last, and then its head: stopped before that, this begins again.
    """
    last = _lost(repository)
    if last is None:
        return None
    gone = _gone(repository, last)
    told = Republished(last, gone[last].message, len(gone), 0, ())
    if _began_elsewhere(repository, gone):
        problem = "it was made on another branch: check that one out, and recover there"
        return told._replace(problem=problem)
    try:
        contents = _contents(repository, gone.values())
    except ObjectNotFound as error:
        return told._replace(problem=error.message)
    documents = _documents(repository, gone.values())
    missing = [*contents, *(id for id in reversed(gone) if id not in repository.objects)]
    told = told._replace(objects=len(missing), documents=tuple(sorted(documents)))
    if dry_run:
        return told
    _write(repository, contents)
    for path, text in documents.items():
        narrative_files.create(repository.project.narrative, path, text)
    _write(repository, list(reversed(gone)))
    named = {*repository.heads.named(), last}
    repository.heads.advance(last, named.difference(commits.newest(repository.objects, named)))
    with suppress(CtxError, OSError):
        # This page went too, and can be made at any time.
        projection.write_decisions(repository.project.narrative)
    return told


def _lost(repository: Repository) -> ObjectId | None:
    last = repository.refs.read(refs.MAIN)
    if last is None or last not in repository.staged:
        return None
    history = commits.walk(repository.objects, repository.heads.named())
    if last in repository.objects and any(id == last for id, _ in history):
        return None
    return last if swept.is_in_git(repository.project, last) is False else None


def _gone(repository: Repository, last: ObjectId) -> dict[ObjectId, Commit]:
    """The commit and those before it that only the staging store has, children first."""
    found: dict[ObjectId, Commit] = {}
    for id, commit in commits.walk(repository.staged, [last]):
        is_expected = id == last or any(id in child.parents for child in found.values())
        if commit is None or not is_expected:
            continue
        if id == last or _is_gone(repository, id):
            found[id] = commit
    return found


def _is_gone(repository: Repository, id: ObjectId) -> bool:
    return id not in repository.objects and swept.is_in_git(repository.project, id) is False


def _began_elsewhere(repository: Repository, gone: Mapping[ObjectId, Commit]) -> bool:
    """Whether what came before is not in the history here, but in that of another branch."""
    before = {parent for commit in gone.values() for parent in commit.parents}.difference(gone)
    project = repository.project
    assert project.checkout is not None
    missing = [swept.committed(project, id) for id in before if id not in repository.objects]
    # What git has not seen either is lost, which is no reason to lose more.
    if any(git.has_seen(project.checkout, path) for path in missing):
        return True
    heads = repository.heads.named()
    here = [id for id in before if id in repository.objects]
    # The sweep may have taken the only head, and the one before it had to go for that.
    return bool(heads) and not commits.contain(repository.objects, heads, here)


def _contents(repository: Repository, gone: Iterable[Commit]) -> list[ObjectId]:
    """What commits need and is not here. E001 where it is nowhere."""
    waiting = [(id, False) for commit in gone for id in references.needed(commit)]
    found: dict[ObjectId, None] = {}
    while waiting:
        id, is_content = waiting.pop()
        if id in found or id in repository.objects:
            continue
        if is_content and id not in repository.staged:
            # A file that came from behind a boundary of history.
            continue
        value = decode(repository.staged.read(id))
        found[id] = None
        waiting += [(each, isinstance(value, Tree)) for each in references.needed(value)]
    return list(found)


def _documents(repository: Repository, gone: Iterable[Commit]) -> dict[str, str]:
    """The documents that went along: as they were last, where git does not know the file."""
    project = repository.project
    assert project.checkout is not None
    top = project.checkout.top
    tracked = {
        os.path.relpath(os.path.join(top, path), project.narrative)
        for path in git.tracked_files(project.checkout, project.narrative)
    }
    found: dict[str, str] = {}
    for ref in (ref for commit in gone for ref in commit.narrative_refs):
        there = os.path.lexists(os.path.join(project.narrative, ref.path))
        if not there and ref.path not in tracked and ref.path not in found:
            data = repository.everything.read(ref.blob_id).payload
            found[ref.path] = data.decode("utf-8", "surrogateescape")
    return found


def _write(repository: Repository, ids: Sequence[ObjectId]) -> None:
    """Bring objects back, in parts that fit into memory, the last one last."""
    for start in range(0, len(ids), _TOGETHER):
        part = ids[start : start + _TOGETHER]
        repository.objects.write(repository.staged.read(id) for id in part)
