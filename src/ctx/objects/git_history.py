"""What git has of memory that is not in this working tree.

Other branches have commits of memory, and reflogs have those of git commits that `git reset --hard
HEAD~1`, a rebase or `git branch -D` dropped. Both are read from git's objects.
"""

import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Self

from ctx import disk, git
from ctx.checkouts import Checkout
from ctx.errors import CtxError, GitFailure, ObjectNotFound
from ctx.ids import ObjectId, is_object_id
from ctx.objects import commits, references, untracked_commits, untracked_survey
from ctx.objects.loose_objects import unseal
from ctx.objects.object_store import LayeredReader, Object, Reader, parse, read_typed
from ctx.objects.object_types import Commit
from ctx.objects.repository import Repository
from ctx.objects.untracked_commits import UntrackedCommit

_GIT_COMMIT = re.compile(f"{untracked_commits.IN_GIT}([0-9a-f]{{40,64}})")


class GitObjects:
    """Object files of other branches, read from git."""

    def __init__(self, repository: Repository, additions: Mapping[str, git.Addition]) -> None:
        assert repository.project.checkout is not None
        files = repository.objects
        ids = ((files.id_of_file(path), addition.blob) for path, addition in additions.items())
        self._blobs = {id: blob for id, blob in ids if id is not None}
        self._replaced = repository.replaced
        self._git = git.Blobs(repository.project.checkout)

    def read(self, id: ObjectId) -> Object:
        # What was scrubbed stays scrubbed.
        now = self._replaced.current(id)
        blob = self._blobs.get(now)
        if blob is None:
            raise ObjectNotFound(f"Object {id} does not exist.")
        return parse(now, unseal(now, self._git.read(blob)))

    def __contains__(self, id: ObjectId) -> bool:
        return self._replaced.current(id) in self._blobs

    def close(self) -> None:
        self._git.close()


class GitHistory:
    """The memory in git's refs and reflogs. Nothing is read before it is needed."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._project = repository.project
        self._in_git: GitObjects | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._in_git is not None:
            self._in_git.close()

    @cached_property
    def reader(self) -> Reader:
        """Reads what is here, and then what git has."""
        checkout = self._project.checkout
        if checkout is None:
            return self._repository.everything
        additions = git.additions(checkout, self._project.objects, "--reflog", *self._unnamed)
        self._in_git = GitObjects(self._repository, additions)
        return LayeredReader(self._repository.everything, self._in_git)

    def branch_with(self, wanted: Iterable[ObjectId]) -> str | None:
        """A branch, or another ref, whose memory contains these commits; None if there is none."""
        wanted = set(wanted)
        every = [head for _, heads in self._heads_of_refs for head in heads]
        if not every or not commits.contain(self.reader, every, wanted):
            return None
        found = (
            name
            for name, heads in self._heads_of_refs
            if commits.contain(self.reader, heads, wanted)
        )
        return next(found, None)

    @cached_property
    def _heads_of_refs(self) -> list[tuple[str, list[ObjectId]]]:
        checkout = self._project.checkout
        if checkout is None:
            return []
        names = git.ref_names(checkout)
        inside = os.path.relpath(self._project.heads, checkout.top)
        trees = git.ids_of(checkout, [f"{name}:{inside}" for name in names])
        # Of refs with the same heads, one is enough.
        first = dict(reversed(list(zip(trees, names, strict=True))))
        first.pop("", None)
        return [
            (
                name.removeprefix("refs/heads/").removeprefix("refs/remotes/"),
                [ObjectId(head) for head in git.names_in(checkout, name, self._project.heads)],
            )
            for name in names
            if name in first.values()
        ]

    @cached_property
    def dropped(self) -> dict[ObjectId, UntrackedCommit]:
        """The commits made here that git had, and that no ref has now."""
        checkout = self._project.checkout
        if checkout is None:
            return {}
        heads = self._project.heads
        with_heads = git.reflog_adders(checkout, heads, *self._unnamed)
        names = set(map(os.path.basename, with_heads)) & self._made_here
        if not names:
            return {}
        living = {
            *map(os.path.basename, git.adders(checkout, heads)),
            *self._repository.heads.named(),
        }
        # The commits that have an entry, and those that they amend.
        known = set(untracked_commits.discarded_commits(self._project))
        for entry in untracked_survey.entries(self._repository).values():
            known.update((entry.commit, *entry.replaces))
        if names <= living | known:
            return {}
        known |= self._reached(ObjectId(id) for id in living if is_object_id(id))
        found: dict[ObjectId, UntrackedCommit] = {}
        waiting = [ObjectId(name) for name in names if is_object_id(name)]
        while waiting:
            id = waiting.pop()
            # git may have pruned it, or a part of it.
            with suppress(CtxError):
                if id not in known and id in self._made_here:
                    known.add(id)
                    found[id] = self._entry(id, checkout)
                    waiting += found[id].parents
        return found

    def keep(self, ids: Iterable[ObjectId]) -> None:
        """Copy dropped commits, so that they are treated like those that git never had. The caller
        holds the lock."""
        repository = self._repository
        for entry in (self.dropped[id] for id in ids if id in self.dropped):
            lacking = (id for id in entry.objects if id not in repository.staged)
            repository.staged.write(self.reader.read(id) for id in lacking)
            untracked_commits.write(self._project, entry)

    @cached_property
    def _made_here(self) -> set[str]:
        """The commits that were made here, in any working tree: others may be anybody's."""
        together = os.path.dirname(self._project.local)
        files = (os.path.join(together, name, "mine") for name in disk.names(together))
        texts = (disk.read_or_none(path) or b"" for path in files)
        return {id for text in texts for id in text.decode("ascii", "replace").split()}

    @cached_property
    def _unnamed(self) -> list[str]:
        """git commits with commits made here that no ref has, and perhaps no reflog."""
        assert self._project.checkout is not None
        noted = filter(None, map(_GIT_COMMIT.fullmatch, sorted(self._made_here)))
        return git.commits_outside(self._project.checkout, (each[1] for each in noted), "--all")

    def _reached(self, heads: Iterable[ObjectId]) -> set[ObjectId]:
        """The commits in the history of heads, and those that they amend."""
        amended = commits.AmendedCommits(self.reader)
        reached: set[ObjectId] = set()
        for id, commit in commits.walk_past_damage(self.reader, heads):
            reached.update((id, *(amended.by(commit) if commit else ())))
        return reached

    def _entry(self, id: ObjectId, checkout: Checkout) -> UntrackedCommit:
        value = read_typed(self.reader, id, Commit)
        return UntrackedCommit(
            id,
            value.parents,
            tuple(sorted(references.added_ids(self.reader, id))),
            git.head_commit(checkout),
            number=len(untracked_commits.ids(self._project)) + 1,
            replaces=commits.AmendedCommits(self.reader).by(value),
        )


def keep_needed(repository: Repository) -> None:
    """Copy the dropped commits on which something is built, before git forgets them. The caller
    holds the lock."""
    with suppress(GitFailure), GitHistory(repository) as history:
        if history.dropped:
            survey = untracked_survey.survey(repository, history)
            history.keep(each.commit for each in survey if each.state != untracked_survey.DROPPED)
