"""The commits that the heads of a project reach."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from sqlite3 import Connection
from typing import TYPE_CHECKING

from ctx import clock
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

    def __init__(
        self,
        repository: "Repository",
        known: Mapping[str, list[str]],
        tick: clock.Tick = clock.no_tick,
    ) -> None:
        self._objects = repository.objects
        self._known = known
        self._tick = tick
        self.missing: list[str] = []
        self.damaged: list[str] = []

    def walk(self, heads: Iterable[str]) -> Iterator[tuple[ObjectId, Commit | None]]:
        """Every commit, always in the same order; without its content if the index knows it."""
        reached = set(heads)
        waiting: list[str] = sorted(reached)
        while waiting:
            self._tick(len(reached) - len(waiting), len(reached))
            commit_id = ObjectId(waiting.pop())
            commit = None
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
            yield commit_id, commit
            waiting += dict.fromkeys(parent for parent in parents if parent not in reached)
            reached.update(parents)
