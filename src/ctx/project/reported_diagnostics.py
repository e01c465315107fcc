"""The diagnostics of compilers and tests that a commit takes over from a session.

The snapshot of a report is stored with the records of its command; the observation names it. The
last snapshot shows the state of the code at the commit.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from ctx import ids
from ctx.ids import ObjectId
from ctx.memory.records import Record
from ctx.objects import references
from ctx.objects.object_store import Reader, decode
from ctx.objects.object_types import DiagnosticsSnapshot

NAMED_BY = "diagnostics"
"""The field of an observation's metadata."""


class ReportedDiagnostics(NamedTuple):
    last: ObjectId | None
    texts: tuple[ObjectId, ...]
    """The blobs that the snapshots refer to."""


def last_reported(
    reader: Reader, records: Sequence[Record], kept: Collection[ObjectId]
) -> ReportedDiagnostics:
    """The stored snapshots that records, in order, refer to."""
    last: ObjectId | None = None
    texts: list[ObjectId] = []
    for name in referenced_snapshots(records):
        if name not in kept:
            continue
        value = decode(reader.read(name))
        if isinstance(value, DiagnosticsSnapshot):
            last = name
            texts += references.required_ids(value)
    return ReportedDiagnostics(last, tuple(texts))


def referenced_snapshots(said: Iterable[Record]) -> Iterator[ObjectId]:
    """The snapshots that records refer to, in order."""
    for record in said:
        metadata = record.body.get("metadata") if record.kind == "node.put" else None
        name = metadata.get(NAMED_BY) if isinstance(metadata, dict) else None
        if isinstance(name, str) and ids.is_object_id(name):
            yield ObjectId(name)
