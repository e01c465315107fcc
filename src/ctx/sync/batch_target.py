"""Where batches are: a set of named byte strings, which several machines read and write."""

from collections.abc import Collection, Sequence
from typing import NamedTuple, Protocol

from ctx.sync.batch_files import BatchFile


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

    def writable_projects(self) -> frozenset[str] | None:
        """The projects that the user may write to; None if the target has no projects, and
        whoever has its key can read and write everything."""

    def purge(self) -> None:
        """Remove local copies of batches that are no longer in the target."""
