"""The commits that the heads of a project reach."""

from collections.abc import Iterable, Mapping, Sequence
from sqlite3 import Connection
from typing import TYPE_CHECKING

from ctx.errors import ObjectNotFound
from ctx.ids import ObjectId
from ctx.objects.object_store import DAMAGE, read_typed
from ctx.objects.object_types import Commit

if TYPE_CHECKING:
    from ctx.objects.repository import Repository


def parents_of(connection: Connection) -> dict[str, list[str]]:
    return {row[0]: row[1].split() for row in connection.execute("SELECT id, parents FROM commits")}


class CommitHistory:
    """The commits that heads reach. Commits that an index knows are not read again."""

    def __init__(self, repository: "Repository", known: Mapping[str, list[str]]) -> None:
        self._objects = repository.objects
        self._known = known
        self.commits: dict[str, Commit] = {}
        """The commits that were read, so that nobody reads them again."""
        self.missing: list[str] = []
        self.damaged: list[str] = []

    def walk(self, heads: Iterable[str]) -> set[str]:
        reached = set(heads)
        waiting: list[str] = list(reached)
        walked: set[str] = set()
        while waiting:
            commit_id = ObjectId(waiting.pop())
            if commit_id in self._known and commit_id in self._objects:
                parents: Sequence[str] = self._known[commit_id]
            else:
                try:
                    commit = read_typed(self._objects, commit_id, Commit)
                except ObjectNotFound:
                    self.missing.append(commit_id)
                    continue
                except DAMAGE:
                    self.damaged.append(commit_id)
                    continue
                parents = commit.parents
                self.commits[commit_id] = commit
            walked.add(commit_id)
            waiting += [parent for parent in parents if parent not in reached]
            reached.update(parents)
        return walked
