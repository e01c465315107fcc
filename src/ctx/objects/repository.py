"""The object store of one project: its objects, its staging, and the pointers to both.

Committed objects are in `.ctx/` and are shared through git. Staged objects are in the local folder,
where `git add -A` and `git clean` do not reach them, until a commit takes them over.
"""

import contextlib
import os
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Self

from ctx import checkouts, clock, disk, git, locks
from ctx.checkouts import Checkout
from ctx.errors import CtxError, ObjectNotFound, UsageError
from ctx.ids import ObjectId, SessionId, object_id, object_prefix, session_id
from ctx.layout import Project
from ctx.objects import (
    commits,
    local_state,
    references,
    refs,
    untracked_commits,
    untracked_survey,
)
from ctx.objects.commits import Head
from ctx.objects.loose_objects import LooseStore
from ctx.objects.object_store import LayeredReader, Object, decode, read_typed
from ctx.objects.object_types import Commit
from ctx.objects.read_limits import WorkLimit
from ctx.objects.refs import Heads, Refs
from ctx.objects.replaced_objects import ReplacedObjects
from ctx.objects.staged_objects import StagedStore

_WRITER_WAITS_S = 30.0
_READER_WAITS_S = 1.0


class CommittedStore(LooseStore):
    """The objects beside the code, and those of a commit whose branch is checked out again: until
    the next write, their files are only in the staging store."""

    def __init__(
        self,
        project: Project,
        compression_level: int,
        replaced: ReplacedObjects,
        staged: StagedStore,
        limit: WorkLimit | None,
    ) -> None:
        super().__init__(project.objects, compression_level, replaced, limit)
        self._project = project
        self._staged = staged

    def skimming(self) -> Self:
        twin = super().skimming()
        twin._staged = self._staged.skimming()
        return twin

    def read(self, id: ObjectId) -> Object:
        try:
            return super().read(id)
        except ObjectNotFound:
            if id not in untracked_commits.returned_objects(self._project):
                raise
            return self._staged.read(id)

    def _was_written_here(self, id: ObjectId) -> bool:
        return id in self._own or id in self._named_by_own

    @cached_property
    def _own(self) -> set[str]:
        return own_commits(self._project)

    @cached_property
    def _named_by_own(self) -> set[ObjectId]:
        """What commits made here refer to."""
        named: set[ObjectId] = set()
        for id in self._own:
            with contextlib.suppress(CtxError):
                named.update(references.required_ids(decode(self._read_any(ObjectId(id)))))
        return named

    def __contains__(self, id: ObjectId) -> bool:
        if super().__contains__(id):
            return True
        return id in untracked_commits.returned_objects(self._project) and id in self._staged


def own_commits(project: Project) -> set[str]:
    with disk.explain_errors("reading which commits were made here"):
        named = disk.read_or_none(project.own) or b""
    return set(named.decode("ascii", "replace").split())


class Repository:
    def __init__(
        self,
        project: Project,
        compression_level: int = 3,
        limit: WorkLimit | None = None,
    ) -> None:
        self.project = project
        self.limit = limit
        """How much may be read from it; None if it is trusted."""
        self.replaced = ReplacedObjects(project.replaced)
        self.staged = StagedStore(project.staged_objects, compression_level, self.replaced, limit)
        self.objects = CommittedStore(project, compression_level, self.replaced, self.staged, limit)
        self.everything = LayeredReader(self.objects, self.staged)
        self.heads = Heads(project.heads)
        self.refs = Refs(project.refs)

    @contextlib.contextmanager
    def locked(self, doing: str) -> Iterator[None]:
        """Hold the project's lock for a whole write, from the first object to the last pointer, so
        that garbage collection never sees half a step."""
        with locks.hold(self.project.lock, doing, _WRITER_WAITS_S * clock.patience):
            self._adopt_local_state()
            self._finish_publishing()
            untracked_survey.settle(self)
            yield

    def publish(
        self,
        commit: ObjectId,
        instead_of: Iterable[ObjectId],
        chain: tuple[SessionId, ObjectId] | None,
    ) -> None:
        """Make a commit a head, and release the staging chain that it took over.

        Both happen or neither: the plan is written first, and the next holder of the lock finishes
        it after a crash. Otherwise the chain would be committed a second time.
        """
        session, tip = chain or ("", "")
        with disk.explain_errors("publishing a commit"):
            disk.replace(self._note, f"{commit}\n{session}\n{tip}\n".encode())
        amended = read_typed(self.objects, commit, Commit).amends
        if amended is None or amended in self.own():
            self.note_as_own([commit])
        self.heads.advance(commit, instead_of)
        self._settle(commit, chain)

    def own(self) -> set[str]:
        """The commits that were made here and contain nothing from other people.

        Author names do not show this: anybody can write any name.
        """
        return own_commits(self.project)

    def note_as_own(self, ids: Iterable[ObjectId]) -> None:
        """Record what was made here: a commit, or the replacement of an object."""
        self._append_to_own(ids)

    def note_git_commits(self, commits: Iterable[str]) -> None:
        """Record git commits that have commits made here."""
        self._append_to_own(f"{untracked_commits.IN_GIT}{commit}" for commit in commits)

    def _append_to_own(self, lines: Iterable[str]) -> None:
        # If a crash loses it, users see their own name as an author, which does no harm.
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        with contextlib.suppress(OSError):
            fd = os.open(self.project.own, flags, disk.FILE_MODE)
            try:
                os.write(fd, "".join(f"{line}\n" for line in lines).encode())
            finally:
                os.close(fd)

    def is_as_made_here(self, id: ObjectId, commit: Commit, own: set[str]) -> bool:
        """Whether a commit was made here and its content was not replaced by somebody else."""
        if id not in own:
            return False
        after = {old: self.replaced.current(old) for old in (id, *commit.record_batches)}
        return all(now == old or now in own for old, now in after.items())

    def _settle(self, commit: ObjectId, chain: tuple[SessionId, ObjectId] | None) -> None:
        if self.project.checkout is not None and commit in self.everything:
            self._note_as_untracked(commit, self.project.checkout)
        self.refs.move(refs.MAIN, self.refs.read(refs.MAIN), commit)
        if chain is not None:
            name = refs.work(chain[0])
            if self.refs.read(name) == chain[1]:
                self.refs.move(name, chain[1], None)
        with disk.explain_errors("publishing a commit"):
            disk.discard(self._note)

    def _note_as_untracked(self, commit: ObjectId, checkout: Checkout) -> None:
        """Remember the commit until git has it; it replaces the one that it amends."""
        known = untracked_survey.entries(self)
        entry = untracked_survey.entry_of(self, commit)
        value = read_typed(self.everything, commit, Commit)
        replaces = commits.AmendedCommits(self.everything).by(value)
        amended = [known[id] for id in replaces if id in known]
        objects = {*entry.objects, *(id for old in amended for id in old.objects)}
        if commit in self.objects:
            # The staging store may have more: content from behind a boundary of history.
            objects = {id for id in objects if id in self.objects}
        branch, checked_out = checkouts.branch_and_commit(checkout)
        last = max((entry.number for entry in known.values()), default=0)
        untracked_commits.write(
            self.project,
            entry._replace(
                objects=tuple(sorted(objects)),
                git_commit=amended[0].git_commit if amended else checked_out,
                branch=branch,
                number=amended[0].number if amended else last + 1,
                replaces=replaces,
            ),
        )
        for old in amended:
            untracked_commits.remove(self.project, old.commit)

    def _finish_publishing(self) -> None:
        with disk.explain_errors("reading what a stopped commit left to do"):
            content = disk.read_or_none(self._note)
        if content is None:
            return
        try:
            commit, session, tip, _ = content.decode("utf-8", "replace").split("\n")
            chain = (session_id(session), object_id(tip)) if session else None
            was_published = self._was_head(object_id(commit))
        except (ValueError, UsageError):
            was_published = False
        if was_published:
            self._settle(ObjectId(commit), chain)
        else:
            disk.discard(self._note)

    def _was_head(self, commit: ObjectId) -> bool:
        """Whether a commit became a head, even if another branch is checked out by now."""
        file = os.path.join(self.heads.folder, commit)
        checkout = self.project.checkout
        return os.path.exists(file) or (checkout is not None and git.has_seen(checkout, file))

    @property
    def _note(self) -> str:
        return os.path.join(self.project.local, "PUBLISHING")

    def adopt_staged_before_git(self) -> None:
        """Take over what was staged before the project became a git checkout, so that readers see
        it. If that is not possible now, the next writer does it."""
        with (
            contextlib.suppress(CtxError),
            locks.hold(self.project.lock, "moving staged work", _READER_WAITS_S),
        ):
            self._adopt_local_state()

    def _adopt_local_state(self) -> None:
        """Take over what was staged before the project became a git checkout.

        It is in `.ctx/local/`, where `git clean` would delete it. A link, or files that git tracks,
        come from somebody else and were not staged here.
        """
        begun, checkout = self.project.local_before_git, self.project.checkout
        if begun is None or checkout is None or git.tracked_files(checkout, begun):
            return
        local_state.adopt_local_state(self.project, begun)

    def current(self) -> list[Head]:
        """The current heads, with their commits."""
        return [Head(id, read_typed(self.objects, id, Commit)) for id in self.tips()]

    def tips(self) -> tuple[ObjectId, ...]:
        """The ids of the current heads, including those that cannot be read."""
        return commits.newest(self.objects, self.named_heads())

    def named_heads(self) -> list[ObjectId]:
        """The heads of the current branch; some may be outdated."""
        return untracked_commits.current_heads(self.project)

    def resolve(self, text: str) -> ObjectId:
        """The object with an id, or with the beginning of an id."""
        prefix = object_prefix(text)
        ids = sorted(self.objects.matching(prefix) | self.staged.matching(prefix))
        if not ids:
            raise ObjectNotFound(
                f"No object begins with {prefix}.",
                hint="`ctx debug history` and `ctx debug refs` show ids.",
            )
        if len(ids) > 1:
            listed = ", ".join(id[: len(prefix) + 8] for id in ids[:8])
            raise UsageError(
                f"{len(ids)} objects begin with {prefix}: {listed}.", hint="Give more of the id."
            )
        return ids[0]
