"""Which objects an object refers to.

There are two answers. `required_ids` lists what the object requires, field by field, for checks of
completeness. `referenced_ids` lists every id anywhere in it, including fields of newer versions,
for garbage collection: it cannot miss a field.
"""

from collections.abc import Iterator
from contextlib import suppress

from ctx.errors import CtxError
from ctx.ids import ObjectId
from ctx.objects import codec
from ctx.objects.object_store import Kind, Object, Reader, decode, read_typed
from ctx.objects.object_types import (
    CodeSnapshot,
    Commit,
    DiagnosticsSnapshot,
    FileVersion,
    RecordBatch,
    Tree,
    Typed,
    WorkCommit,
)


def required_ids(value: Typed | codec.UnknownObject | None) -> Iterator[ObjectId]:
    """The objects that must exist. Parents of a commit may be beyond a boundary."""
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
        case CodeSnapshot():
            docs = (item.doc_blob_id for item in value.items)
            yield from (id for id in docs if id is not None)
        case DiagnosticsSnapshot():
            for diagnostic in value.diagnostics:
                texts = (diagnostic.message_blob_id, diagnostic.related_blob_id)
                yield from (id for id in texts if id is not None)
        case _:
            return


def added_ids(reader: Reader, commit: ObjectId) -> set[ObjectId]:
    """What a commit requires and its parents do not, and the commit itself."""
    added = _required_by(reader, commit)
    for parent in read_typed(reader, commit, Commit).parents:
        # A parent beyond a boundary leaves more than necessary.
        with suppress(CtxError):
            added -= _required_by(reader, parent)
    return added


def _required_by(reader: Reader, commit: ObjectId) -> set[ObjectId]:
    found: set[ObjectId] = set()
    waiting = [commit]
    while waiting:
        id = waiting.pop()
        if id not in found:
            found.add(id)
            waiting += required_ids(decode(reader.read(id)))
    return found


def referenced_ids(stored: Object) -> set[ObjectId]:
    """Every id in an object that keeps another object alive."""
    if stored.kind is Kind.BLOB:
        return set()
    ids = codec.named_ids(stored.payload)
    value = codec.decode(stored.payload)
    if isinstance(value, Commit):
        # The origin of a commit must not keep alive what it replaced.
        ids -= {value.compacted, value.amends, *value.replaced} - set(value.parents)
    elif isinstance(value, CodeSnapshot):
        # Nearly all ids here name files and items; skip thousands of useless lookups.
        ids -= _names_of_code(value)
    return ids


def _names_of_code(value: CodeSnapshot) -> set[ObjectId]:
    """The ids in a snapshot that name code items, not objects."""
    ids = {module.module_id for module in value.modules}
    ids.update(module.file_id for module in value.modules)
    ids.update(item.item_id for item in value.items)
    for import_ in value.imports:
        ids.update(id for id in (import_.resolved_to_item, import_.resolved_to_module) if id)
    return ids - set(required_ids(value))
