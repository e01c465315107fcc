"""Sessions and what they have staged: begin one, keep it, compact it, give it up.

Every step of a session is durable when its command returns. So there is nothing to save here, and
hardly anything to lose: what is aborted can be had back for a while (see `recover`).
"""

import os
import secrets
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

from ctx import disk, git, layout, redaction
from ctx.errors import CtxError, GitFailure, RefNotFound, StagingConflict, UsageError
from ctx.ids import CLI_SESSION, ObjectId, SessionId, session_id, short
from ctx.memory import pending
from ctx.memory.graph import USER
from ctx.memory.records import Record
from ctx.narrative import narrative_scan, narrative_snapshots
from ctx.narrative.narrative_snapshots import SkippedDocument, Snapshot
from ctx.objects import commits, refs
from ctx.objects.commits import WorkStep
from ctx.objects.git_history import GitHistory
from ctx.objects.object_store import blob
from ctx.objects.object_types import StepKind
from ctx.objects.repository import Repository
from ctx.operations import commit as committing
from ctx.operations import compact as compacting
from ctx.operations import document
from ctx.operations import task as tasks
from ctx.operations.commit import CommitResult, ExcludedSecret
from ctx.operations.compact import CompactResult
from ctx.operations.task import Task
from ctx.project import (
    broken_chains,
    captured_staging,
    current_session,
    parked_sessions,
    recover_commits,
    staging,
    staging_chains,
)
from ctx.project.project_memory import ProjectMemory
from ctx.project.staging_chains import Chain
from ctx.workspace import Memory, Workspace

_LONGEST_SLUG = 40
_LONGEST_REASON = 10_000


class StageStartResult(NamedTuple):
    """The answer of `ctx stage start`."""

    session: SessionId
    task: Task
    resumed: bool
    """Whether the session has staged something before."""
    compacted: CompactResult | None
    """What became of what was staged before."""
    left: SessionId | None
    """The previous session, if it keeps its staging."""


class StageFlushResult(NamedTuple):
    """The answer of `ctx stage flush`."""

    session: SessionId
    step: ObjectId | None
    """None where nothing had changed."""
    documents: tuple[str, ...]
    steps: int
    """What the session has staged in all."""
    skipped: tuple[SkippedDocument, ...]
    secrets: tuple[ExcludedSecret, ...]


class StageAbortResult(NamedTuple):
    """The answer of `ctx stage abort`."""

    session: SessionId
    aborted: str | None
    """The name under which it can be had back; None where only the question was asked."""
    reason: str | None
    steps: int
    records: int
    files: int
    documents: tuple[str, ...]
    """Files of the narrative that it made and that stay: git or the history has them."""
    keep_days: int
    task_left: str | None
    """The current task, which is not any more: it was begun in what was aborted."""
    removed: tuple[str, ...] = ()
    """Files of the narrative that it made. They are kept with it."""


class StageAbortCommitResult(NamedTuple):
    """The answer of `ctx stage abort --commit`."""

    dry_run: bool
    commit: ObjectId
    keep_days: int


class StageStatus(NamedTuple):
    """The answer of `ctx stage status`."""

    joined: SessionId
    """The session that commands join."""
    started: SessionId | None
    """The session that `ctx stage start` began last, if it is still on."""
    problem: str | None
    """What is wrong with the file that names it."""
    chains: tuple[Chain, ...]


def new_session(task: str) -> SessionId:
    """A name for a session that is begun for a task."""
    plain = "".join(c if c.isascii() and c.isalnum() else " " for c in redaction.redact(task).text)
    slug = "-".join(plain.lower().split())[:_LONGEST_SLUG].strip("-") or "session"
    return session_id(f"{slug}-{secrets.token_hex(3)}")


def start(memory: Memory, task: str) -> StageStartResult:
    """Begin the session of this memory, or take it up again, and let commands join it."""
    beside = _project(memory)
    session = memory.session
    before = current_session.read(beside.project).session or CLI_SESSION
    compacted = None
    if before != session:
        compacted = compacting.compact(beside, before, f"session {session} begins")
    begun = start_given(memory, task)
    current_session.join(beside.project, session)
    has_left = before != session and refs.work(before) in beside.repository.refs.names()
    return begun._replace(compacted=compacted, left=before if has_left else None)


def start_given(memory: Memory, task: str) -> StageStartResult:
    """The same for a session that the environment names: no other command joins it."""
    beside = _project(memory)
    repository, session = beside.repository, memory.session
    with repository.locked("ctx stage start"):
        steps, _ = staging.open_steps(repository, session, repository.tips())
        begun = None if steps else _begin(repository, session, task)
    try:
        started = tasks.start(memory, task)
    except CtxError:
        if begun is not None:
            with repository.locked("ctx stage start"):
                if repository.refs.read(refs.work(session)) == begun:
                    repository.refs.move(refs.work(session), begun, None)
        raise
    captured_staging.start(memory.local, session)
    return StageStartResult(session, started.task, bool(steps), started.compacted, None)


def _begin(repository: Repository, session: SessionId, task: str) -> ObjectId:
    said = blob(redaction.redact(task.strip()).text.encode("utf-8", "replace"))
    return staging.append(repository, session, StepKind.SESSION_START, [said], [said.id])


def flush(workspace: Workspace) -> StageFlushResult:
    """Keep documents that have changed with the session, where `git clean` does not reach."""
    repository, session = workspace.repository, workspace.session
    folder = workspace.project.narrative
    with repository.locked("ctx stage flush"):
        steps, _ = staging.open_steps(repository, session, repository.tips())
        known = workspace.memory.snapshots()
        for step in reversed(steps):
            known.update((ref.path, ref.blob_id) for ref in step.work.narrative_refs)
        paths, skipped = narrative_snapshots.documents(folder)
        taken = narrative_snapshots.take_snapshots(folder, paths, known)
        step_id = None
        if taken:
            step_id = staging.append(
                repository,
                session,
                StepKind.NOTE,
                [each.content for each in taken],
                (),
                [each.ref for each in taken],
            )
    return StageFlushResult(
        session,
        step_id,
        tuple(each.ref.path for each in taken),
        len(steps) + (step_id is not None),
        tuple(skipped),
        tuple(
            ExcludedSecret(f"narrative/{each.ref.path}", finding.line, finding.rule)
            for each in taken
            for finding in each.secrets
        ),
    )


def compact(workspace: Workspace, message: str | None) -> CommitResult:
    """Turn what the session has staged into a commit, and leave the session."""
    repository, session = workspace.repository, workspace.session
    steps = _chain(repository, session)
    if steps:
        if not commits.contain(repository.objects, repository.tips(), steps[0].work.bases):
            raise StagingConflict(
                f"Session {session} started from a history that is not checked out here.",
                hint="`ctx stage status` names its branch, or what to do without one.",
            )
    elif session not in (CLI_SESSION, current_session.read(workspace.project).session):
        raise RefNotFound(f"Session {session} has nothing staged.", hint="See `ctx stage status`.")
    try:
        made = committing.commit(workspace, committing.Options(message, auto=message is None))
    except CtxError as error:
        if refs.work(session) in broken_chains.broken_refs(repository):
            raise _to_be_recovered(error, session) from error
        raise
    current_session.leave(workspace.project, session)
    return made


def abort(memory: Memory, reason: str | None, *, dry_run: bool) -> StageAbortResult:
    """Hide what a session has staged. It can be had back until garbage is collected."""
    beside = _project(memory)
    repository, session = beside.repository, memory.session
    keep_days = beside.config.integer("gc.keep_days")
    said = redaction.redact((reason or "").strip()[:_LONGEST_REASON]).text or None
    with repository.locked("ctx stage abort"):
        steps = _chain(repository, session)
        if not steps:
            raise UsageError(
                f"Session {session} has nothing staged.", hint="See `ctx stage status`."
            )
        files = len(staging.files(repository, steps))
        said_in_it = staging_chains.records(repository, steps)
        documents = _documents(beside, said_in_it)
        taken = _own_documents(beside, documents)
        task = _task_of(memory, staging_chains.started_for(repository, steps), said_in_it)
        name = None
        if not dry_run:
            told = blob((said or "No reason was given.").encode("utf-8", "replace"))
            tip = staging.append(
                *(repository, session, StepKind.NOTE),
                [told, *(each.content for each in taken)],
                [told.id],
                [each.ref for each in taken],
            )
            name = f"{session[:100]}-{short(tip)}"
            repository.refs.rename(refs.work(session), tip, refs.aborted_ref(name))
            _remove(beside, taken)
    if not dry_run:
        beside.close()
        current_session.leave(beside.project, session)
        captured_staging.abort(memory.local, session)
        document.project_decisions(memory)
        if task:
            with memory.transaction("stage abort", USER) as change:
                change.set_current_task(memory.place.task_key, None)
    removed = tuple(each.ref.path for each in taken)
    return StageAbortResult(
        session,
        name,
        said,
        len(steps),
        len(said_in_it),
        files,
        tuple(path for path in documents if path not in removed),
        keep_days,
        task if not dry_run else None,
        removed,
    )


def give_up_commit(workspace: Workspace, prefix: str, *, dry_run: bool) -> StageAbortCommitResult:
    """Stop naming a commit that git removed. It can be had back until garbage is collected."""
    repository = workspace.repository
    with repository.locked("ctx stage abort"), GitHistory(repository) as history:
        entry = recover_commits.discard_commit(repository, history, prefix, dry_run=dry_run)
    return StageAbortCommitResult(dry_run, entry.commit, workspace.config.integer("gc.keep_days"))


def _documents(beside: ProjectMemory, said: Iterable[Record]) -> tuple[str, ...]:
    """The documents that some records are about, and that are there."""
    named = (record.body.get("metadata") for record in said if record.kind == "node.put")
    paths = {str(each["file"]) for each in named if isinstance(each, dict) and "file" in each}
    folder = beside.project.narrative
    return tuple(sorted(path for path in paths if os.path.isfile(os.path.join(folder, path))))


def _own_documents(beside: ProjectMemory, documents: Sequence[str]) -> list[Snapshot]:
    """The documents that only a session has, as they are.

    Neither git nor a commit has them. A document with a secret stays where it is: a snapshot would
    lose the secret.
    """
    known = beside.snapshots()
    checkout, folder = beside.project.checkout, beside.project.narrative
    free = [
        path
        for path in documents
        if path not in known
        and not (checkout and git.tracked_files(checkout, os.path.join(folder, path)))
    ]
    taken = narrative_snapshots.take_snapshots(folder, free, {})
    return [each for each in taken if not each.secrets]


def _remove(beside: ProjectMemory, taken: Iterable[Snapshot]) -> None:
    """Remove documents that are kept elsewhere, unless they have changed since."""
    folder = beside.project.narrative
    for each in taken:
        if narrative_scan.read(folder, each.ref.path) == each.content.payload:
            disk.discard(narrative_scan.located(folder, each.ref.path))


def _task_of(memory: Memory, named: str | None, said: Iterable[Record]) -> str | None:
    """The current task, if a session was started for it or made it."""
    word = pending.current_task(memory.user, memory.place.task_key)
    found = tasks.current(memory).task
    if word is None or found is None:
        return word
    made = {record.subject for record in said if record.kind == "node.put"}
    is_named = named is not None and named in (found.name, found.task)
    return word if found.id is None or found.id in made or is_named else None


def status(workspace: Workspace, home: str) -> StageStatus:
    found = current_session.read(workspace.project)
    repository = workspace.repository
    chains = staging_chains.survey(repository, home)
    if any(chain.state == staging_chains.PARKED for chain in chains):
        with suppress(GitFailure), GitHistory(repository) as history:
            parked = parked_sessions.survey(repository, history)
            branches = {str(each.session): each.branch for each in parked}
            chains = [chain._replace(branch=branches.get(chain.session)) for chain in chains]
    return StageStatus(workspace.session, found.session, found.problem or None, tuple(chains))


def _project(memory: Memory) -> ProjectMemory:
    memory.require_trust()
    if memory.project_memory is None:
        layout.require_project(memory.folder, memory.environment.user_store.home)
        raise UsageError(
            "Staging needs a project store, and --db or CTX_DB names a file.",
            hint="Leave out --db and CTX_DB.",
        )
    return memory.project_memory


def _chain(repository: Repository, session: SessionId) -> list[WorkStep]:
    try:
        return staging.chain(repository, session)
    except CtxError as error:
        raise _to_be_recovered(error, session) from error


def _to_be_recovered(error: CtxError, session: SessionId) -> CtxError:
    hint = f"`ctx stage recover {session}` saves the undamaged part of session {session}."
    return type(error)(error.message, hint=hint)
