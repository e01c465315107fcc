"""Make a canonical commit out of what a session has staged."""

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from ctx import git, redaction
from ctx.errors import CommitOrphan, CtxError, GitFailure, UsageError
from ctx.ids import ObjectId, SessionId, short
from ctx.memory import conflicts
from ctx.narrative import decisions_page, narrative_scan
from ctx.narrative.narrative_snapshots import SkippedDocument
from ctx.objects import refs
from ctx.objects.object_store import read_typed
from ctx.objects.object_types import EdgeBatch
from ctx.objects.untracked_survey import discarded_by_git
from ctx.project import compaction
from ctx.workspace import Workspace


class Options(NamedTuple):
    message: str | None
    """None: words that say what is in it, which takes `auto`; where one is amended, its own."""
    auto: bool = False
    amend: bool = False
    narrative: bool = True


class ExcludedSecret(NamedTuple):
    """A secret that was kept out of the store."""

    where: str
    """`message`, or the narrative file that still holds it."""
    line: int
    rule: str


class CommitResult(NamedTuple):
    """The answer of `ctx commit`. `commit` is None where there was nothing to commit."""

    session: SessionId
    commit: ObjectId | None
    parents: tuple[ObjectId, ...] = ()
    message: str = ""
    amends: ObjectId | None = None
    steps: int = 0
    nodes: int = 0
    """How many are new."""
    records: int = 0
    edges: int = 0
    """The relations that it brings, one for each pair and type."""
    changes: tuple[str, ...] = ()
    """What changed in memory, in a line for each thing."""
    files: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    log: str | None = None
    """The log document of the commit."""
    skipped: tuple[SkippedDocument, ...] = ()
    """Narrative files that are not kept, and why."""
    secrets: tuple[ExcludedSecret, ...] = ()
    """What was left out of the message and the narrative snapshots."""
    disputes: int = 0
    """For a commit that joins heads: fields that both sides changed, not resolved yet."""
    unknown_to_git: int = 0
    """Files under `.ctx/` that `git add .ctx` would add."""
    exposed: tuple[ExcludedSecret, ...] = ()
    """Secrets in narrative files that it would add too."""
    deleted_for_good: int = 0
    """Deleted nodes that were never committed: they cannot be restored any more."""
    other_sessions: tuple[SessionId, ...] = ()
    """Where there was nothing to commit: the sessions that have something staged."""


def commit_for_git(workspace: Workspace) -> CommitResult:
    """For git's hook, which adds everything afterwards: nothing, where a secret would go along."""
    exposed = _exposed_secrets(workspace, _unknown_to_git(workspace))
    if exposed:
        return CommitResult(workspace.session, None, exposed=exposed)
    return commit(workspace, Options(None, auto=True))


def commit(workspace: Workspace, options: Options) -> CommitResult:
    if options.message is not None or not (options.amend or options.auto):
        require_message(options.message or "")
    message = redaction.redact(options.message.strip()) if options.message else None
    project = workspace.project
    wish = compaction.CompactionOptions(
        session=workspace.session,
        message=message.text if message else None,
        author=redaction.redact(git.identity(project.checkout)).text,
        amend=options.amend,
        narrative=options.narrative,
    )
    _refuse_new_history(workspace)
    lost = _deleted_for_good(workspace)
    made = workspace.memory.commit(wish)
    unknown = _unknown_to_git(workspace)
    exposed = _exposed_secrets(workspace, unknown)
    if made is None:
        others = _sessions(workspace)
        return CommitResult(
            workspace.session,
            None,
            exposed=exposed,
            deleted_for_good=lost,
            other_sessions=others,
        )
    with suppress(CtxError, OSError):
        # The commit is made, and this page can be made at any time.
        decisions_page.write_decisions(project.narrative)
    found = [("message", finding) for finding in (message.findings if message else ())]
    for document in made.documents:
        found += [(f"narrative/{document.ref.path}", finding) for finding in document.secrets]
    may_dispute = len(made.commit.parents) > 1 or made.unread
    return CommitResult(
        session=workspace.session,
        commit=made.id,
        parents=made.commit.parents,
        message=made.commit.message,
        amends=made.commit.amends,
        steps=made.steps,
        nodes=made.changes.nodes,
        records=made.records,
        edges=_edges(workspace, made),
        changes=made.changes.lines,
        files=tuple(sorted(made.files)),
        documents=tuple(document.ref.path for document in made.documents),
        log=made.log,
        skipped=tuple(made.skipped),
        secrets=tuple(
            ExcludedSecret(where, finding.line, finding.rule) for where, finding in found
        ),
        disputes=len(conflicts.find_conflicts(workspace.memory.graph)) if may_dispute else 0,
        unknown_to_git=len(unknown),
        exposed=exposed,
        deleted_for_good=lost,
    )


def _refuse_new_history(workspace: Workspace) -> None:
    """Refuse to begin a new history where the one before was thrown away and can come back."""
    if workspace.repository.named_heads():
        return
    if lost := discarded_by_git(workspace.repository):
        raise CommitOrphan(
            f"git removed commit {short(lost[0])} before it was in a git commit.",
            hint="To restore it: `ctx stage recover`",
        )


def _sessions(workspace: Workspace) -> tuple[SessionId, ...]:
    names = workspace.repository.refs.names()
    return tuple(session for name in names if (session := refs.session_of(name)))


def _deleted_for_good(workspace: Workspace) -> int:
    """How many deleted nodes only this session has: nothing of them is committed."""
    staged = workspace.memory.unpublished_deletions().values()
    return sum(sessions == {workspace.session} for sessions in staged)


def _edges(workspace: Workspace, made: compaction.CompactionResult) -> int:
    batches = made.commit.edge_batches
    reader = workspace.repository.objects
    return sum(len(read_typed(reader, batch, EdgeBatch).edges) for batch in batches)


def require_message(message: str) -> None:
    if not message.strip():
        raise UsageError("A commit needs a message.", hint='Use -m "…", or --auto to generate one.')


def _unknown_to_git(workspace: Workspace) -> list[str]:
    """The files that git would add, from the top of the working tree."""
    project = workspace.project
    if project.checkout is None:
        return []
    try:
        return git.unknown_files(project.checkout, project.store)
    except GitFailure:
        # The commit is made; that git cannot be asked must not look like a failure of it.
        return []


def _exposed_secrets(workspace: Workspace, unknown: Sequence[str]) -> tuple[ExcludedSecret, ...]:
    """Secrets in narrative files, which should not enter git's history."""
    project = workspace.project
    top = project.checkout.top if project.checkout else project.root
    found: list[ExcludedSecret] = []
    for name in unknown:
        path = os.path.relpath(os.path.join(top, name), project.narrative)
        data = None if path.startswith(os.pardir) else narrative_scan.read(project.narrative, path)
        if data:
            text = data.decode("utf-8", "surrogateescape")
            where = f"narrative/{path}"
            found += [
                ExcludedSecret(where, each.line, each.rule)
                for each in redaction.redact(text).findings
            ]
    return tuple(found)
