"""The object store of one project: its objects, its staging, and the pointers over both.

What is committed lies in `.ctx/` and travels with git. What is staged lies in the local folder,
out of reach of `git add -A` and `git clean`, until a commit takes it over.
"""

import contextlib
import os
import shutil
from collections.abc import Iterable, Iterator

from ctx import disk, git
from ctx.errors import ObjectNotFound, UsageError
from ctx.ids import ObjectId, SessionId, object_id, object_prefix, session_id
from ctx.layout import Project
from ctx.objects import commits, lock, refs
from ctx.objects.commits import Head
from ctx.objects.heads import Heads
from ctx.objects.loose import LooseStore
from ctx.objects.model import Commit
from ctx.objects.refs import Refs
from ctx.objects.replaced import Replaced
from ctx.objects.staged import StagedStore
from ctx.objects.store import Layered, read_typed


class Repository:
    def __init__(
        self, project: Project, compression_level: int = 3, lock_timeout_seconds: float = 30
    ) -> None:
        self.project = project
        self.replaced = Replaced(project.replaced)
        self.objects = LooseStore(project.objects, compression_level, self.replaced)
        self.staged = StagedStore(project.staged_objects, compression_level, self.replaced)
        self.everything = Layered(self.objects, self.staged)
        self.heads = Heads(project.heads)
        self.refs = Refs(project.refs)
        self._lock_timeout_seconds = lock_timeout_seconds

    @contextlib.contextmanager
    def locked(self, doing: str) -> Iterator[None]:
        """Hold the project's lock: for everything that writes, from the first object to the
        last pointer, so that garbage collection never sees a step half done."""
        with lock.held(self.project.lock, doing, self._lock_timeout_seconds):
            self._adopt_local_state()
            self._finish_publishing()
            yield

    def publish(
        self,
        commit: ObjectId,
        instead_of: Iterable[ObjectId],
        chain: tuple[SessionId, ObjectId] | None,
    ) -> None:
        """Make a commit a head, and let go of the staging chain that it took over.

        Both happen or neither: what is to be done is written down first, and whoever takes the
        lock after a crash finishes it. Otherwise the chain would be committed a second time,
        over whatever came in between.
        """
        session, tip = chain or ("", "")
        with disk.explained("publishing a commit"):
            disk.replace(self._note, f"{commit}\n{session}\n{tip}\n".encode())
        self._note_as_own(commit)
        self.heads.advance(commit, instead_of)
        self._settle(commit, chain)

    def own(self) -> set[str]:
        """The commits that were made here, and hold nothing that a stranger said.

        Their authors do not tell: anybody can write any name.
        """
        with disk.explained("reading which commits were made here"):
            named = disk.read_or_none(self.project.own) or b""
        return set(named.decode("ascii", "replace").split())

    def _note_as_own(self, commit: ObjectId) -> None:
        amended = read_typed(self.objects, commit, Commit).amends
        if amended is None or amended in self.own():
            self.note_as_own([commit])

    def note_as_own(self, ids: Iterable[ObjectId]) -> None:
        """Note what was made here: a commit, or what stands in for an object."""
        # What is lost of it in a crash makes somebody see their own name, and does no harm.
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        with contextlib.suppress(OSError):
            fd = os.open(self.project.own, flags, disk.FILE_MODE)
            try:
                os.write(fd, "".join(f"{id}\n" for id in ids).encode())
            finally:
                os.close(fd)

    def is_as_made_here(self, id: ObjectId, commit: Commit, own: set[str]) -> bool:
        """Whether a commit was made here, and nobody else has replaced what it says."""
        if id not in own:
            return False
        after = {each: self.replaced.current(each) for each in (id, *commit.record_batches)}
        return all(now == each or now in own for each, now in after.items())

    def _settle(self, commit: ObjectId, chain: tuple[SessionId, ObjectId] | None) -> None:
        self.refs.move(refs.MAIN, self.refs.read(refs.MAIN), commit)
        if chain is not None:
            name = refs.work(chain[0])
            if self.refs.read(name) == chain[1]:
                self.refs.move(name, chain[1], None)
        with disk.explained("publishing a commit"):
            disk.discard(self._note)

    def _finish_publishing(self) -> None:
        with disk.explained("reading what a stopped commit left to do"):
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
        """Whether a commit became a head, even if git has another branch checked out by now."""
        file = os.path.join(self.heads.folder, commit)
        checkout = self.project.checkout
        return os.path.exists(file) or (checkout is not None and git.has_seen(checkout, file))

    @property
    def _note(self) -> str:
        return os.path.join(self.project.local, "PUBLISHING")

    def _adopt_local_state(self) -> None:
        """Take over what was staged before the project became a git checkout.

        It lies in `.ctx/local/`, where `git clean` would find it. A link, or files that git
        tracks, are a stranger's and not what was staged here.
        """
        begun = os.path.join(self.project.store, "local")
        checkout = self.project.checkout
        if checkout is None or os.path.islink(begun) or not os.path.isdir(begun):
            return
        if git.tracked_files(checkout, begun):
            return
        with disk.explained("moving staged work into the git folder"):
            for here, _, names in os.walk(begun):
                for name in names:
                    source = os.path.join(here, name)
                    target = os.path.join(self.project.local, os.path.relpath(source, begun))
                    if name == "LOCK" or source.startswith(os.path.join(begun, "index")):
                        continue
                    if os.path.exists(target) and here.endswith(os.path.join("refs", "work")):
                        # Two chains of one session: the older one goes on under another name.
                        target = f"{target}-{disk.read(source).decode('ascii', 'replace')[:12]}"
                    if not os.path.exists(target):
                        disk.make_folder(os.path.dirname(target))
                        shutil.move(source, target)
                        disk.sync_folder(os.path.dirname(target))
            shutil.rmtree(begun)

    def current(self) -> list[Head]:
        """The heads that count, with their commits."""
        return [Head(id, read_typed(self.objects, id, Commit)) for id in self.tips()]

    def tips(self) -> tuple[ObjectId, ...]:
        """The ids of the same, also of those that cannot be read."""
        return commits.newest(self.objects, self.heads.named())

    def resolve(self, text: str) -> ObjectId:
        """The object that a person means by an id or its beginning."""
        prefix = object_prefix(text)
        found = sorted(self.objects.matching(prefix) | self.staged.matching(prefix))
        if not found:
            raise ObjectNotFound(
                f"No object begins with {prefix}.",
                hint="`ctx debug history` and `ctx debug refs` show ids.",
            )
        if len(found) > 1:
            listed = ", ".join(id[: len(prefix) + 8] for id in found[:8])
            raise UsageError(
                f"{len(found)} objects begin with {prefix}: {listed}.", hint="Give more of the id."
            )
        return found[0]
