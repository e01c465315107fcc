"""Which objects an object refers to.

There are two answers. `needed` is what it cannot do without, field by field: a check that
everything is there asks this. `named` is every id anywhere in it, also in fields of a newer
version: whoever deletes asks this, and no field list can be forgotten there.
"""

from collections.abc import Iterator

from ctx.ids import ObjectId
from ctx.objects import codec
from ctx.objects.model import Commit, FileVersion, RecordBatch, Tree, Typed, WorkCommit
from ctx.objects.store import Kind, Object


def needed(value: Typed | codec.Unknown | None) -> Iterator[ObjectId]:
    """What must be there. Parents of a commit may be beyond a boundary."""
    match value:
        case Commit():
            yield value.root_tree
            yield from value.record_batches
            yield from value.edge_batches
            yield from (ref.blob_id for ref in value.narrative_refs)
            snapshots = (value.cargo_snapshot, value.code_snapshot, value.diagnostics_snapshot)
            yield from (id for id in snapshots if id is not None)
        case Tree():
            yield from (entry.id for entry in value.entries)
        case WorkCommit():
            yield from value.parents
            yield from value.payload
            yield from (ref.blob_id for ref in value.narrative_refs)
        case FileVersion():
            yield value.blob_id
        case RecordBatch():
            yield from value.blobs
        case _:
            return


def named(found: Object) -> set[ObjectId]:
    """Every id in an object that keeps what it names alive."""
    if found.kind is Kind.BLOB:
        return set()
    ids = codec.named_ids(found.payload)
    value = codec.decode(found.payload)
    if isinstance(value, Commit):
        # Where a commit came from must not keep alive what it took the place of.
        ids -= {value.compacted, value.amends, *value.replaced} - set(value.parents)
    return ids
