"""Compaction: a session's chain of steps becomes one canonical commit.

The order is what makes it safe: every object the commit needs is durable in `.ctx/objects/`
before the commit becomes a head, and the chain is let go in the same breath (see
`Repository.publish`).
"""

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from ctx import clock, git
from ctx.errors import NewerFormat, ObjectNotFound, UsageError
from ctx.ids import ObjectId, SessionId, short
from ctx.narrative import snapshots
from ctx.objects import codec, commits, gc, refs, trees
from ctx.objects.commits import Head
from ctx.objects.model import Commit
from ctx.objects.repository import Repository
from ctx.objects.store import Object, typed
from ctx.sessions import staging

_MOST_PENDING = 32 * 1024 * 1024


class Wish(NamedTuple):
    """What a commit should be like."""

    session: SessionId
    message: str | None
    author: str
    amend: bool = False
    narrative: bool = True


class Made(NamedTuple):
    """A commit that was made."""

    id: ObjectId
    commit: Commit
    files: Mapping[str, ObjectId]
    """What changed in the tree: path to blob."""
    documents: Sequence[snapshots.Snapshot]
    skipped: Sequence[snapshots.Skipped]
    steps: int


def commit(repository: Repository, wish: Wish) -> Made | None:
    """Turn what is staged, and what changed in the narrative, into a commit.

    None where there is nothing to commit. The caller holds the lock.
    """
    heads = repository.current()
    head_ids = [head.id for head in heads]
    steps, _ = staging.open_steps(repository, wish.session, heads)
    amended = _amended(repository, heads) if wish.amend else None
    base = [amended] if amended else heads
    root, files, new_trees = _tree(repository, base, steps)
    documents, skipped = _documents(repository, head_ids) if wish.narrative else ([], [])
    reworded = amended is not None and wish.message not in (None, amended.commit.message)
    joins = len(base) > 1
    if heads and not (files or documents or reworded or joins):
        if steps:
            repository.refs.move(refs.work(wish.session), steps[0].id, None)
        return None

    value = _commit(wish, base, amended, root, steps, documents)
    made = typed(value)
    _keep_blobs(repository, files.values(), head_ids)
    _keep(repository, [*(d.content for d in documents), *new_trees, made], head_ids)
    # Besides the heads it replaces, the commit clears away those that were overtaken before.
    overtaken = set(repository.heads.named()).difference(head_ids)
    repository.publish(
        made.id,
        [*(head.id for head in base), *overtaken],
        (wish.session, steps[0].id) if steps else None,
    )
    return Made(made.id, value, files, documents, skipped, len(steps))


def _amended(repository: Repository, heads: Sequence[Head]) -> Head:
    """The commit that `--amend` means: the one made here last, or the only head."""
    last = repository.refs.read(refs.MAIN)
    meant = [head for head in heads if head.id == last] or heads
    if len(meant) != 1:
        raise UsageError(
            f"There are {len(meant)} heads and none of them was made here last, "
            "so it is not clear which commit to amend.",
            hint="Commit without --amend: the new commit joins them.",
        )
    if codec.is_newer(repository.objects.read(meant[0].id).payload):
        raise NewerFormat(f"Commit {short(meant[0].id)} was written by a newer ctx.")
    return meant[0]


def _tree(
    repository: Repository,
    base: Sequence[Head],
    steps: Iterable[staging.Step],
) -> tuple[ObjectId, Mapping[str, ObjectId], list[Object]]:
    """The new root, the paths that differ from what the base heads hold, and the new trees."""
    reader = repository.everything
    staged = {path: file.blob_id for path, file in staging.files(repository, steps).items()}
    present = trees.Present(reader, base)
    changed = {path: blob for path, blob in staged.items() if present.blob_at(path) != blob}
    changes = trees.over(present.missing_in_first(), changed)
    root, made = trees.updated(reader, present.first, changes)
    return root, changed, made


def _documents(
    repository: Repository, heads: Sequence[ObjectId]
) -> tuple[list[snapshots.Snapshot], list[snapshots.Skipped]]:
    folder = repository.project.narrative
    paths, skipped = snapshots.documents(folder)
    known = snapshots.last_kept(repository.objects, heads, paths)
    return snapshots.changed(folder, paths, known), skipped


def _commit(
    wish: Wish,
    base: Sequence[Head],
    amended: Head | None,
    root: ObjectId,
    steps: Sequence[staging.Step],
    documents: Sequence[snapshots.Snapshot],
) -> Commit:
    refs_made = {document.ref.path: document.ref for document in documents}
    if amended:
        amends, old = amended
        refs_made = {ref.path: ref for ref in old.narrative_refs} | refs_made
        parents, message = old.parents, wish.message or old.message
    else:
        amends, old = None, Commit((), 0, "", root)
        parents, message = tuple(id for id, _ in base), wish.message or ""
    return msgspec.structs.replace(
        old,
        parents=parents,
        timestamp_unix=commits.timestamp(clock.now_s(), [commit for _, commit in base]),
        message=message,
        root_tree=root,
        author=wish.author,
        session_id=wish.session,
        narrative_refs=tuple(refs_made[path] for path in sorted(refs_made)),
        compacted=steps[0].id if steps else old.compacted,
        amends=amends,
    )


def _keep_blobs(repository: Repository, ids: Iterable[ObjectId], heads: Sequence[ObjectId]) -> None:
    """Move file contents from staging to the objects, in parts that fit into memory."""
    batch: list[Object] = []
    pending = 0
    for id in sorted(set(ids)):
        batch.append(repository.everything.read(id))
        pending += len(batch[-1].payload)
        if pending > _MOST_PENDING:
            _keep(repository, batch, heads)
            batch, pending = [], 0
    _keep(repository, batch, heads)


def _keep(repository: Repository, objects: Sequence[Object], heads: Sequence[ObjectId]) -> None:
    """Write what the commit needs.

    An object that is here already, but that no head reaches, may be deleted by a garbage
    collection on another branch; it is written a second time under a name of this branch.
    """
    at_risk = {item.id for item in objects if item.id in repository.objects}
    repository.objects.write(objects)
    checkout = repository.project.checkout
    if checkout is None or not at_risk:
        return
    # Where something is missing, what is behind it counts as out of reach.
    with contextlib.suppress(ObjectNotFound):
        for id in gc.reachable(repository.objects, heads):
            at_risk.discard(id)
            if not at_risk:
                return
    listed = git.tracked_files(checkout, repository.objects.folder)
    tracked = {path.rpartition("/")[2] for path in listed}
    repository.objects.write_again(
        item for item in objects if item.id in at_risk and item.id in tracked
    )
