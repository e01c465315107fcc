"""What compilers and tests reported while a session went on, as a commit takes it over.

The snapshot of a report lies beside the records of the command it came from, and is named by its
observation. The last one says how the code was when the commit was made.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from ctx.ids import ObjectId
from ctx.memory.records import Record
from ctx.objects import references
from ctx.objects.model import DiagnosticsSnapshot
from ctx.objects.store import Reader, decode

NAMED_BY = "diagnostics"
"""The field of an observation's metadata."""


class ReportedDiagnostics(NamedTuple):
    last: ObjectId | None
    texts: tuple[ObjectId, ...]
    """What the snapshots refer to."""


def last_reported(
    reader: Reader, said: Sequence[Record], kept: Collection[ObjectId]
) -> ReportedDiagnostics:
    """The snapshots that records, in the order in which they were said, name among what is kept."""
    last: ObjectId | None = None
    texts: list[ObjectId] = []
    for record in said:
        told = record.body.get("metadata") if record.kind == "node.put" else None
        name = told.get(NAMED_BY) if isinstance(told, dict) else None
        if not isinstance(name, str) or name not in kept:
            continue
        value = decode(reader.read(ObjectId(name)))
        if isinstance(value, DiagnosticsSnapshot):
            last = ObjectId(name)
            texts += references.needed(value)
    return ReportedDiagnostics(last, tuple(texts))
