"""Restores commits whose files git removed before they were added to git.

A commit is restored with its documents and with its removed ancestors. A commit of another branch
stays parked until that branch is checked out. A commit that git had and dropped is restored if
staged work is built on it, or by its id.
"""

import os
from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import suppress
from typing import NamedTuple

from ctx import git
from ctx.errors import CtxError, ObjectNotFound, RefNotFound
from ctx.ids import ObjectId
from ctx.memory.records import Record
from ctx.narrative import decisions_page, narrative_files
from ctx.objects import commits, untracked_commits, untracked_survey
from ctx.objects.git_history import GitHistory
from ctx.objects.object_store import Reader, read_typed
from ctx.objects.object_types import Commit
from ctx.objects.repository import Repository
from ctx.objects.untracked_commits import UntrackedCommit
from ctx.project import batches

_TOGETHER = 100


class RecoveredCommit(NamedTuple):
    """A restored commit, which is a head again."""

    commit: ObjectId
    message: str
    commits: int
    """How many commits are restored, including its ancestors."""
    objects: int
    """How many object files were written."""
    documents: tuple[str, ...]
    """The narrative documents that were written."""
    problem: str | None = None
    """Why it cannot be restored."""
    texts: tuple[str, ...] = ()
    """The texts of nodes that come back with it."""


def recover_commits(
    repository: Repository, history: GitHistory, state: str, *, dry_run: bool
) -> list[RecoveredCommit]:
    """Restore all commits in a state. The caller holds the lock."""
    known = untracked_survey.entries(repository, history.dropped)
    survey = untracked_survey.survey(repository, history)
    not_in_git = {entry.commit: known[entry.commit] for entry in survey}
    return [
        _recover(
            repository,
            history,
            untracked_survey.line(not_in_git, [entry.commit]),
            dry_run=dry_run,
        )
        for entry in survey
        if entry.is_tip and entry.state == state
    ]


def recover_discarded(
    repository: Repository, history: GitHistory, prefix: str, *, dry_run: bool
) -> RecoveredCommit:
    """Restore a commit that was discarded, or that git dropped."""
    project = repository.project
    known = {**history.dropped, **dict.fromkeys(untracked_commits.discarded_commits(project))}
    matching = [id for id in known if id.startswith(prefix)]
    entry = None
    if len(matching) == 1:
        entry = history.dropped.get(matching[0]) or untracked_commits.read(project, matching[0])
    if entry is None:
        raise RefNotFound(
            f"No commit that was given up or dropped begins with {prefix}.",
            hint="`ctx gc` or `git gc` may have removed it.",
        )
    if not dry_run and entry.commit not in history.dropped:
        untracked_commits.write(project, entry)
    line = untracked_survey.line({**history.dropped, entry.commit: entry}, [entry.commit])
    done = _recover(repository, history, line, dry_run=dry_run)
    if not dry_run:
        untracked_commits.remove_discarded(project, entry.commit)
    return done


def texts_of_commits(reader: Reader, ids: Iterable[ObjectId]) -> tuple[str, ...]:
    """The texts of the nodes in some commits, as far as they can be read."""
    records: list[Record] = []
    with suppress(CtxError):
        for id in ids:
            for batch in read_typed(reader, id, Commit).record_batches:
                records += batches.read(reader, batch)
    return batches.texts(records)


def discard_commit(
    repository: Repository, history: GitHistory, prefix: str, *, dry_run: bool
) -> UntrackedCommit:
    """Discard a commit that is not in git. The caller holds the lock."""
    known = {entry.commit: entry for entry in untracked_survey.survey(repository, history)}
    matching = [id for id in known if id.startswith(prefix)]
    if len(matching) != 1:
        what = "No" if not matching else f"{len(matching)}"
        raise RefNotFound(
            f"{what} commits that are not in git begin with {prefix}.",
            hint="`ctx status` lists them.",
        )
    if known[matching[0]].state == untracked_commits.HERE:
        raise RefNotFound(
            f"Commit {matching[0][:12]} is in use.",
            hint="Only what git threw away, or what is parked, can be given up.",
        )
    entry = untracked_survey.entries(repository, history.dropped)[matching[0]]
    if not dry_run:
        history.keep([entry.commit])
        untracked_commits.discard(repository.project, entry.commit)
    return entry


def _recover(
    repository: Repository,
    history: GitHistory,
    line_by_id: Mapping[ObjectId, UntrackedCommit],
    *,
    dry_run: bool,
) -> RecoveredCommit:
    """Write the objects first and the head last: an interrupted recovery can be repeated.

    Ancestors whose objects exist are included: an interrupted recovery may not have written their
    documents.
    """
    line = list(line_by_id.values())
    project, last = repository.project, line[0]
    dropped = [entry.commit for entry in line if entry.commit in history.dropped]
    reader = history.reader if dropped else repository.everything
    missing = [
        id
        for entry in reversed(line)
        for id in sorted(entry.objects, key=entry.commit.__eq__)
        if not os.path.exists(untracked_commits.committed_path(project, id))
    ]
    message = untracked_survey.message_of(reader, last.commit)
    texts = texts_of_commits(reader, [entry.commit for entry in reversed(line)])
    recovered = RecoveredCommit(last.commit, message, len(line), len(missing), (), None, texts)
    lacking = [id for id in missing if id not in reader]
    if lacking:
        problem = f"{len(lacking)} of its objects are gone, also from the git folder"
        return recovered._replace(problem=problem)
    try:
        documents = _documents(repository, reader, line)
    except ObjectNotFound as error:
        return recovered._replace(problem=error.message)
    recovered = recovered._replace(documents=tuple(sorted(documents)))
    if dry_run:
        return recovered
    history.keep(dropped)
    _write(repository, [id for id in missing if id != last.commit])
    for path, text in documents.items():
        narrative_files.create(project.narrative, path, text)
    _write(repository, [last.commit])
    heads = repository.named_heads()
    for entry in line:
        untracked_commits.write(
            project, _adopt_entry(repository, entry, {entry.commit for entry in line}, heads)
        )
    named = {*heads, last.commit}
    overtaken = named.difference(commits.newest(repository.objects, named))
    repository.heads.advance(last.commit, overtaken)
    with suppress(CtxError, OSError):
        # The list of decisions was removed too, and can be regenerated.
        decisions_page.write_decisions(project.narrative)
    return recovered


def _adopt_entry(
    repository: Repository, entry: UntrackedCommit, line: Set[ObjectId], heads: Sequence[ObjectId]
) -> UntrackedCommit:
    """An entry that belongs to this branch, even if its own branch is gone."""
    entry = entry._replace(is_parked=False)
    before = [parent for parent in entry.parents if parent not in line]
    if commits.contain(repository.objects, heads, before):
        return entry
    inside = [parent for parent in entry.parents if parent in line]
    return entry._replace(parents=(*inside, *heads))


def _documents(
    repository: Repository, reader: Reader, line: Iterable[UntrackedCommit]
) -> dict[str, str]:
    """The last versions of the removed documents that git does not track."""
    project = repository.project
    assert project.checkout is not None
    top = project.checkout.top
    tracked = {
        os.path.relpath(os.path.join(top, path), project.narrative)
        for path in git.tracked_files(project.checkout, project.narrative)
    }
    texts: dict[str, str] = {}
    for entry in line:
        for ref in read_typed(reader, entry.commit, Commit).narrative_refs:
            is_there = os.path.lexists(os.path.join(project.narrative, ref.path))
            if not is_there and ref.path not in tracked and ref.path not in texts:
                data = reader.read(ref.blob_id).payload
                texts[ref.path] = data.decode("utf-8", "surrogateescape")
    return texts


def _write(repository: Repository, ids: Sequence[ObjectId]) -> None:
    """Write objects, in batches that fit into memory."""
    for start in range(0, len(ids), _TOGETHER):
        part = ids[start : start + _TOGETHER]
        repository.objects.write(repository.staged.read(id) for id in part)
