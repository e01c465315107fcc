"""The object store of one project: its objects, its staging, and the pointers over both.

What is committed lies in `.ctx/` and travels with git. What is staged lies in the local folder,
out of reach of `git add -A` and `git clean`, until a commit takes it over.
"""

import os
import shutil
from contextlib import AbstractContextManager

from ctx import disk
from ctx.errors import ObjectNotFound, UsageError
from ctx.ids import ObjectId, object_prefix
from ctx.layout import Project
from ctx.objects import commits, lock
from ctx.objects.heads import Heads
from ctx.objects.loose import LooseStore
from ctx.objects.model import Commit
from ctx.objects.refs import Refs
from ctx.objects.store import Layered, read_typed


class Repository:
    def __init__(
        self, project: Project, compression_level: int = 3, lock_timeout_seconds: float = 30
    ) -> None:
        self.project = project
        self.objects = LooseStore(project.objects, compression_level)
        self.staged = LooseStore(project.staged_objects, compression_level)
        self.everything = Layered(self.objects, self.staged)
        self.heads = Heads(project.heads)
        self.refs = Refs(project.refs)
        self._lock_timeout_seconds = lock_timeout_seconds

    def adopt_local_state(self) -> None:
        """Take over what was staged before the project became a git checkout.

        It lies in `.ctx/local/`, where `git clean` would find it.
        """
        begun = os.path.join(self.project.store, "local")
        if begun == self.project.local or not os.path.isdir(begun):
            return
        with self.locked("moving staged work into the git folder"), disk.explained("moving it"):
            for name in ("stage", "refs"):
                source, target = os.path.join(begun, name), os.path.join(self.project.local, name)
                if os.path.isdir(source) and not os.path.exists(target):
                    shutil.move(source, target)
                    disk.sync_folder(self.project.local)
            if not any(os.path.isdir(os.path.join(begun, name)) for name in ("stage", "refs")):
                shutil.rmtree(begun)

    def locked(self, doing: str) -> AbstractContextManager[None]:
        """Hold the project's lock: for everything that writes, from the first object to the
        last pointer, so that garbage collection never sees a step half done."""
        return lock.held(self.project.lock, doing, self._lock_timeout_seconds)

    def current(self) -> list[tuple[ObjectId, Commit]]:
        """The heads that count, with their commits."""
        found = commits.newest(self.objects, self.heads.named())
        return [(id, read_typed(self.objects, id, Commit)) for id in found]

    def resolve(self, text: str) -> ObjectId:
        """The object that a person means by an id or its beginning."""
        prefix = object_prefix(text)
        found = sorted(self.objects.matching(prefix) | self.staged.matching(prefix))
        if not found:
            raise ObjectNotFound(f"No object begins with {prefix}.")
        if len(found) > 1:
            listed = ", ".join(id[: len(prefix) + 8] for id in found[:8])
            raise UsageError(
                f"{len(found)} objects begin with {prefix}: {listed}.", hint="Give more of the id."
            )
        return found[0]
