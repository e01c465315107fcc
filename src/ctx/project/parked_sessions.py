"""Parked sessions: staged work that was begun in a history that is not checked out.

Such work returns with its branch. If no branch has that history any more, `ctx stage recover` takes
the work up in the history that is checked out.
"""

import os
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from ctx.errors import CtxError
from ctx.ids import ObjectId, SessionId
from ctx.objects import commits, refs, untracked_commits, untracked_survey
from ctx.objects.git_history import GitHistory
from ctx.objects.object_store import LayeredReader, Object, typed
from ctx.objects.repository import Repository
from ctx.objects.untracked_survey import STASHED
from ctx.project import batches, recover_commits, staging, staging_chains


class ParkedSession(NamedTuple):
    session: SessionId
    branch: str | None
    """A branch, or another ref, that contains what it is built on; None if there is none, and
    `ctx stage recover` takes it up."""
    texts: tuple[str, ...]
    """The texts of its nodes."""


def survey(repository: Repository, history: GitHistory) -> list[ParkedSession]:
    """The parked sessions of this working tree. Damaged ones are left out."""
    heads = repository.tips()
    found = []
    for session in _sessions(repository):
        try:
            steps = staging.chain(repository, session)
            if commits.contain(repository.objects, heads, steps[0].work.bases):
                continue
            texts = batches.texts(staging_chains.records(repository, steps))
        except CtxError:
            continue
        found.append(ParkedSession(session, None, texts))
    if not found:
        return []
    states = {each.commit: each.state for each in untracked_survey.survey(repository, history)}
    return [
        each._replace(branch=_branch_of(repository, history, each.session, states))
        for each in found
    ]


def _sessions(repository: Repository) -> Iterator[SessionId]:
    return (name for ref in repository.refs.names() if (name := refs.session_of(ref)))


def _branch_of(
    repository: Repository, history: GitHistory, session: SessionId, states: dict[ObjectId, str]
) -> str | None:
    bases = set(staging.chain(repository, session)[0].work.bases)
    if branch := history.branch_with(bases):
        return branch
    known = untracked_survey.entries(repository, history.dropped)
    mine = [id for id, entry in known.items() if not bases.isdisjoint((id, *entry.replaces))]
    mine_in = {states.get(id) for id in mine}
    if STASHED in mine_in:
        return "refs/stash"
    if untracked_commits.PARKED in mine_in:
        return history.branch_with(id for each in mine for id in untracked_survey.base(known, each))
    return None


def take_up(repository: Repository, session: SessionId) -> None:
    """Continue a parked session in the history that is checked out. The caller holds the lock.

    Nothing happens if that history contains what the session is built on by now.
    """
    steps = staging.chain(repository, session)
    heads = repository.tips()
    if commits.contain(repository.objects, heads, steps[0].work.bases):
        return
    made: list[Object] = []
    for step in reversed(steps):
        parents = (made[-1].id,) if made else ()
        work = msgspec.structs.replace(step.work, parents=parents, bases=heads, heads=())
        made.append(typed(work))
    repository.staged.write(made)
    name, tip, own = refs.work(session), made[-1].id, refs.work(steps[0].work.session_id)
    repository.refs.put(name, tip)
    if name != own and repository.refs.read(own) is None:
        repository.refs.rename(name, tip, own)


def texts_left_in(repository: Repository, folder: str) -> list[str]:
    """The texts in the local folder of a removed working tree: staged ones, and those of commits
    that git does not have."""
    project = repository.project
    assert project.checkout is not None
    worktree = os.path.basename(folder).removeprefix("worktree-").removesuffix(project.part)
    git_dir = os.path.join(project.checkout.common_dir, "worktrees", worktree)
    there = Repository(project._replace(checkout=project.checkout._replace(git_dir=git_dir)))
    # An interrupted recovery has moved some objects.
    there.everything = LayeredReader(there.everything, repository.everything)
    known = untracked_survey.entries(there)
    held = untracked_survey.commits_in_git(there, known, in_refs=True)
    left = [id for id in known if id not in held]
    texts = [*recover_commits.texts_of_commits(there.everything, left)]
    for session in _sessions(there):
        try:
            steps = staging.chain(there, session)
            texts += batches.texts(staging_chains.records(there, steps))
        except CtxError:
            # It is repaired when it is here.
            continue
    return texts
