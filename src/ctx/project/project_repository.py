"""The objects of a project, and which of them are given to agents."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from msgspec import structs

from ctx.ids import ObjectId, SessionId
from ctx.layout import Project
from ctx.objects import commits
from ctx.objects.object_types import Commit
from ctx.objects.read_limits import WorkLimit
from ctx.objects.repository import Repository

if TYPE_CHECKING:
    from ctx.project.given import GivenObjects

WITHHELD = "(not given to agents: `ctx review`)"
"""The message that is shown of a commit that agents are not given."""

_AT_ONCE = 100


class ProjectRepository(Repository):
    def __init__(
        self,
        project: Project,
        given: "GivenObjects",
        compression_level: int = 3,
        limit: WorkLimit | None = None,
    ) -> None:
        super().__init__(project, compression_level, limit)
        self.given = given

    def note_as_own(self, ids: Iterable[ObjectId]) -> None:
        """Record what was made here, also where no git folder forgets it."""
        made = list(ids)
        super().note_as_own(made)
        self.given.add(made)

    def history(self, heads: Iterable[ObjectId]) -> Iterator[tuple[ObjectId, Commit]]:
        """The readable commits of a history, newest first, as agents may see them."""
        walked = commits.walk_past_damage(self.objects, heads)
        readable = ((id, commit) for id, commit in walked if commit)
        while part := list(islice(readable, _AT_ONCE)):
            given = self.given.objects([id for id, _ in part])
            for id, commit in part:
                yield id, commit if id in given else without_text(commit)


def without_text(commit: Commit) -> Commit:
    """A commit that agents are not given, for the shape of history alone."""
    return structs.replace(
        commit,
        author="",
        session_id=SessionId(""),
        message=WITHHELD,
        narrative_refs=(),
        cargo_snapshot=None,
        code_snapshot=None,
        diagnostics_snapshot=None,
        record_batches=(),
    )
