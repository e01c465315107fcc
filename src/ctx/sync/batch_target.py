"""Where batches are: a set of named byte strings, which several machines read and write."""

from collections.abc import Collection, Sequence
from typing import NamedTuple, Protocol

from ctx.sync.batch_files import BatchFile
from ctx.sync.sync_batch import DecodedBatch


class TargetListing(NamedTuple):
    batches: frozenset[str]
    others: tuple[str, ...]
    """Files that are not batches of ctx."""


class BatchTarget(Protocol):
    def listing(self) -> TargetListing:
        """What the target contains now."""

    def read(self, name: str) -> bytes:
        """A batch of the last listing."""

    def publish(self, added: Sequence[BatchFile], removed: Collection[str] = ()) -> None:
        """Add batches, then remove others. All is durable when this returns.

        A file of the same name is replaced: it was damaged. If this fails or is interrupted, some
        of the batches may be there: they are complete, and the next listing shows them.
        """

    def projects(self) -> "SharedProjects | None":
        """The projects in the target; None if whoever has its key can read and write all of it."""

    def purge(self) -> None:
        """Remove local copies of batches that are no longer in the target."""


class SharedProjects(Protocol):
    """Who may read and write what, in a target that several people share."""

    writable: frozenset[str]
    """The projects that the user may write to."""

    def places(self, node_ids: Collection[str]) -> dict[str, str | None]:
        """The project of each node that the target has: empty for a personal one, None for a node
        that the user may not see."""

    def admitted(self, batch: DecodedBatch) -> DecodedBatch:
        """The batch without records about nodes that its sender may not write to, and without
        those about nodes that have moved elsewhere."""
