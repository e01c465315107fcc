"""Get back what a crash, a damaged disk or a hand has taken from what is staged.

Of a chain that is damaged, everything is saved that is whole. What was aborted is a session again,
a commit that git threw away is a head again, and what a removed working tree had staged is staged
here. What is staged on a history that no branch has is taken up. Looking twice changes nothing.
"""

import os
from typing import NamedTuple

from ctx.errors import RefNotFound, UsageError
from ctx.ids import SessionId, session_id, short
from ctx.narrative import narrative_files, narrative_scan
from ctx.objects import local_state, refs, untracked_survey
from ctx.objects.git_history import GitHistory
from ctx.objects.object_store import read_typed
from ctx.objects.object_types import WorkCommit
from ctx.objects.repository import Repository
from ctx.objects.untracked_survey import DISCARDED_STATE, DROPPED
from ctx.project import (
    broken_chains,
    compaction,
    current_session,
    parked_sessions,
    staging,
    staging_chains,
)
from ctx.project.broken_chains import RepairedChain
from ctx.project.parked_sessions import ParkedSession
from ctx.project.recover_commits import RecoveredCommit, recover_commits, recover_discarded
from ctx.workspace import Workspace


class StageRecoverResult(NamedTuple):
    """The answer of `ctx stage recover`."""

    dry_run: bool
    checked: int
    mended: tuple[RepairedChain, ...]
    restored: SessionId | None
    """The session that an aborted chain is again."""
    stage_reset: bool
    """Whether the file that names the joined session named none that is there."""
    missing: tuple[str, ...]
    """Documents that sessions have flushed, and that are not in the narrative any more."""
    rewritten: bool
    """Whether they were written again."""
    commits: tuple[RecoveredCommit, ...]
    """What git threw away before it was in a git commit, one for each line of commits."""
    worktrees: tuple[str, ...]
    """Working trees that were removed, and whose staged work is in this one now."""
    documents: tuple[str, ...] = ()
    """Documents that were removed when the session was aborted, and that are back."""
    worktree_texts: tuple[str, ...] = ()
    """What these working trees left: staged texts, and those of commits that git does not have."""
    parked: tuple[ParkedSession, ...] = ()
    """Sessions that are not in the history that is checked out. Those without a branch are taken
    up."""
    dropped: tuple[RecoveredCommit, ...] = ()
    """Commits that git had and dropped. They are restored only by their id."""


def recover(
    workspace: Workspace, name: str | None, *, documents: bool, dry_run: bool
) -> StageRecoverResult:
    """Save the undamaged part of chains; by name also restore an aborted one.

    With `documents`, also restore flushed documents that are missing: they may have been deleted on
    purpose.
    """
    repository = workspace.repository
    with repository.locked("ctx stage recover"):
        wanted = _find_ref(repository, name)
        worktrees: list[str] = []
        left: list[str] = []
        if name is None:
            untracked_survey.prune(repository)
            worktrees = local_state.removed_worktrees(workspace.project)
            for folder in worktrees:
                left += parked_sessions.texts_left_in(repository, folder)
                if not dry_run:
                    local_state.adopt_local_state(workspace.project, folder)
        broken = [each for each in broken_chains.broken_refs(repository) if wanted in (None, each)]
        mended = [broken_chains.repair_chain(repository, each, dry_run=dry_run) for each in broken]
        commits, dropped, parked = _take_up(repository, name, dry_run=dry_run)
        restored, brought_back = None, []
        set_aside = {refs.aborted_ref(each.session) for each in mended if not each.steps}
        if wanted and refs.aborted_name(wanted) and wanted not in set_aside:
            brought_back = _restore_documents(repository, wanted, dry_run=dry_run)
            restored = _restore_chain(repository, wanted, dry_run=dry_run)
        reset = _is_nowhere(workspace) if name is None else False
        if reset and not dry_run:
            current_session.leave(workspace.project, None)
        checked = len(staging_chains.names(repository)) if wanted is None else 1
        missing = {} if dry_run and mended else _missing_documents(repository, name)
        rewritten = bool(missing) and documents and not dry_run
        if rewritten:
            for path, content in missing.items():
                narrative_files.create(workspace.project.narrative, path, content)
    return StageRecoverResult(
        dry_run,
        checked,
        tuple(mended),
        restored,
        reset,
        tuple(sorted(missing)),
        rewritten,
        tuple(commits),
        tuple(os.path.basename(folder) for folder in worktrees),
        tuple(brought_back),
        tuple(left),
        tuple(parked),
        tuple(dropped),
    )


def _take_up(
    repository: Repository, name: str | None, *, dry_run: bool
) -> tuple[list[RecoveredCommit], list[RecoveredCommit], list[ParkedSession]]:
    """Restore commits that git removed, and take up sessions that no branch has."""
    with GitHistory(repository) as history:
        parked = [
            each
            for each in parked_sessions.survey(repository, history)
            if name in (None, each.session)
        ]
        homeless = [each.session for each in parked if each.branch is None]
        if name is not None and not homeless:
            return [], [], parked
        dropped = recover_commits(repository, history, DROPPED, dry_run=True)
        commits = recover_commits(repository, history, DISCARDED_STATE, dry_run=dry_run)
    for session in homeless if not dry_run else ():
        parked_sessions.take_up(repository, session)
    return commits, dropped, parked


def recover_given_up(workspace: Workspace, prefix: str, *, dry_run: bool) -> StageRecoverResult:
    """Bring back a commit that `ctx stage abort --commit` gave up, or that git dropped."""
    repository = workspace.repository
    with repository.locked("ctx stage recover"), GitHistory(repository) as history:
        found = recover_discarded(repository, history, prefix, dry_run=dry_run)
    return StageRecoverResult(dry_run, 0, (), None, False, (), False, (found,), ())


def _missing_documents(repository: Repository, name: str | None) -> dict[str, str]:
    """What sessions have flushed of documents that are not there any more."""
    found: dict[str, str] = {}
    for ref in repository.refs.names():
        session = refs.session_of(ref)
        if session is None or name not in (None, session):
            continue
        gone = compaction.deleted_documents(repository, staging.chain(repository, session))
        for path, kept in gone.items():
            data = repository.everything.read(kept.blob_id).payload
            found[path] = data.decode("utf-8", "surrogateescape")
    return found


def _find_ref(repository: Repository, name: str | None) -> str | None:
    """The ref that a person means: that of a session, or of one that was aborted."""
    if name is None:
        return None
    known = list(repository.refs.names())
    exact = [
        each for each in (refs.work(session_id(name)), refs.aborted_ref(name)) if each in known
    ]
    if exact:
        return exact[0]
    prefix = refs.aborted_ref(f"{name[:100]}-")
    found = [each for each in known if each.startswith(prefix)]
    if len(found) > 1:
        raise UsageError(
            f"Session {name} was aborted {len(found)} times.",
            detail="\n".join(f"  {refs.aborted_name(each)}" for each in found),
            hint="Name one of these.",
        )
    if not found:
        raise RefNotFound(
            f"There is no session {name} with staged or aborted work.",
            hint="`ctx stage status` shows what there is.",
        )
    return found[0]


def _restore_chain(repository: Repository, ref: str, *, dry_run: bool) -> SessionId:
    """Let an aborted chain be a session's again; where that has gone on, beside it."""
    tip = repository.refs.require(ref)
    session = read_typed(repository.everything, tip, WorkCommit).session_id
    if repository.refs.read(refs.work(session)) is not None:
        session = SessionId(f"{session[:100]}-{short(tip)}")
    if not dry_run:
        repository.refs.rename(ref, tip, refs.work(session))
    return session


def _restore_documents(repository: Repository, ref: str, *, dry_run: bool) -> list[str]:
    """Write the documents again that were removed when a chain was aborted.

    The last step of the chain names them. Where somebody made a file of the same name, it stays.
    """
    folder = repository.project.narrative
    step = read_typed(repository.everything, repository.refs.require(ref), WorkCommit)
    missing = [
        each
        for each in step.narrative_refs
        if not os.path.lexists(narrative_scan.located(folder, each.path))
    ]
    for each in missing if not dry_run else ():
        data = repository.everything.read(each.blob_id).payload
        narrative_files.create(folder, each.path, data.decode("utf-8", "surrogateescape"))
    return [each.path for each in missing]


def _is_nowhere(workspace: Workspace) -> bool:
    """Whether the file that names the joined session names none that has anything staged."""
    found = current_session.read(workspace.project)
    if found.session is None:
        return bool(found.problem)
    return workspace.repository.refs.read(refs.work(found.session)) is None
