"""Make a canonical commit out of what a session has staged."""

from typing import NamedTuple

from ctx import git, redaction
from ctx.errors import GitFailure, UsageError
from ctx.ids import ObjectId, SessionId
from ctx.narrative.snapshots import Skipped
from ctx.objects import refs
from ctx.sessions import compaction
from ctx.workspace import Workspace


class Options(NamedTuple):
    message: str | None
    amend: bool = False
    narrative: bool = True


class Secret(NamedTuple):
    """A secret that was kept out of the store."""

    where: str
    """`message`, or the narrative file that still holds it."""
    line: int
    rule: str


class Committed(NamedTuple):
    """The answer of `ctx commit`. `commit` is None where there was nothing to commit."""

    session: SessionId
    commit: ObjectId | None
    parents: tuple[ObjectId, ...] = ()
    message: str = ""
    amends: ObjectId | None = None
    steps: int = 0
    files: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    """Narrative files that are not kept, and why."""
    secrets: tuple[Secret, ...] = ()
    """What was left out of the message and the narrative snapshots."""
    unknown_to_git: int = 0
    """Files under `.ctx/` that `git add .ctx` would take in."""
    other_sessions: tuple[SessionId, ...] = ()
    """Where there was nothing to commit: the sessions that have something staged."""


def commit(workspace: Workspace, options: Options) -> Committed:
    if options.message is not None or not options.amend:
        require_message(options.message or "")
    message = redaction.redact(options.message.strip()) if options.message else None
    project = workspace.project
    wish = compaction.Wish(
        session=workspace.session,
        message=message.text if message else None,
        author=redaction.redact(git.identity(project.checkout)).text,
        amend=options.amend,
        narrative=options.narrative and workspace.config.flag("narrative.snapshot"),
    )
    with workspace.repository.locked("ctx commit"):
        made = compaction.commit(workspace.repository, wish)
    if made is None:
        return Committed(workspace.session, None, other_sessions=_sessions(workspace))
    found = [("message", finding) for finding in (message.findings if message else ())]
    for document in made.documents:
        found += [(f"narrative/{document.ref.path}", finding) for finding in document.secrets]
    return Committed(
        session=workspace.session,
        commit=made.id,
        parents=made.commit.parents,
        message=made.commit.message,
        amends=made.commit.amends,
        steps=made.steps,
        files=tuple(sorted(made.files)),
        documents=tuple(document.ref.path for document in made.documents),
        skipped=tuple(made.skipped),
        secrets=tuple(Secret(where, finding.line, finding.rule) for where, finding in found),
        unknown_to_git=_unknown_to_git(workspace),
    )


def _sessions(workspace: Workspace) -> tuple[SessionId, ...]:
    names = workspace.repository.refs.names()
    return tuple(session for name in names if (session := refs.session_of(name)))


def require_message(message: str) -> None:
    if not message.strip():
        raise UsageError("A commit needs a message.", hint='Say it with -m "…".')


def _unknown_to_git(workspace: Workspace) -> int:
    project = workspace.project
    if project.checkout is None:
        return 0
    try:
        return len(git.unknown_files(project.checkout, project.store))
    except GitFailure:
        # The commit is made; that git cannot be asked must not look like a failure of it.
        return 0
