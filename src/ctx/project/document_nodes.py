"""The nodes of documents.

Tasks and decisions are nodes and files that people edit. The file is the source of truth for the
text: while it exists, the node has its content, and the tags and mentions of its comment. None of
this is recorded, because the files travel with the code.

A document that was written by hand is a node too, with an id derived from its path.
"""

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from sqlite3 import Connection
from typing import Any

from ctx import clock, ids, layout
from ctx.errors import CtxError
from ctx.ids import NodeId, Ulid
from ctx.memory import model, records
from ctx.memory.records import Record
from ctx.narrative import document_format, document_roles, narrative_snapshots
from ctx.project import anchors
from ctx.project.project_index import IndexedDocument
from ctx.project.project_index_state import Fingerprint
from ctx.redaction import redact

ACTION = "narrative"

_TYPES = {"decision": "decision", "task": "task"}
_EPOCH = "1970-01-01T00:00:00Z"
# A file that was written this recently may change again without a new time stamp.
_RACY_NS = 2_000_000_000


def current(
    project: layout.Project, connection: Connection, path: str, data: bytes, seen: Fingerprint
) -> IndexedDocument:
    """The records of a document that is in the working tree, with its content."""
    folder = project.narrative
    return indexed_document(
        connection, path, data, lasting(seen), lambda other: os.path.lexists(f"{folder}/{other}")
    )


def lasting(fingerprint: Fingerprint) -> Fingerprint:
    """A fingerprint that no later content of the file can have."""
    if clock.wall_ms() * 1_000_000 - fingerprint.mtime_ns < _RACY_NS:
        return fingerprint._replace(mtime_ns=0)
    return fingerprint


def indexed_document(
    connection: Connection,
    path: str,
    data: bytes,
    fingerprint: Fingerprint,
    is_there: Callable[[str], bool],
) -> IndexedDocument:
    """The records of a document with this content, current or old.

    `is_there` returns whether a document exists.
    """
    node_id = owner(connection, path)
    if node_id is None and document_roles.place(path).role not in _TYPES:
        return IndexedDocument(
            fingerprint, (), node_id, narrative_snapshots.stored_document(data).content.id
        )
    claimed = None if node_id else _node_named_by_document(connection, path, data, is_there)
    new_records = list(_DocumentRecords(path, node_id, claimed).records(_parse_document(data)))
    return IndexedDocument(
        fingerprint,
        new_records,
        node_id or claimed,
        narrative_snapshots.stored_document(data).content.id,
    )


def _node_named_by_document(
    connection: Connection, path: str, data: bytes, is_there: Callable[[str], bool]
) -> NodeId | None:
    """The node that a document itself names, if no record assigns one.

    This happens if only the file was copied here, or if it was renamed. A node that was recorded
    without a document, or with another one that exists, is not accepted.
    """
    named = document_format.entry(data.decode("utf-8", "replace"), "node")
    if not ids.is_ulid(named):
        return None
    files = [
        record.body.get("metadata", {}).get("file")
        for record in records.records_about(connection, named, "node.")
        if record.kind == "node.put" and "type" in record.body and record.stamp < records.BEYOND
    ]
    if any(not isinstance(file, str) or is_there(file) for file in files):
        return None
    # A copy of a document is a new node.
    rows = connection.execute(
        "SELECT path FROM documents WHERE node_id = ? AND path <> ?", (named, path)
    )
    if any(is_there(row[0]) for row in rows):
        return None
    return NodeId(Ulid(named))


def content_of(data: bytes) -> str:
    """The content of a document's node."""
    return document_format.content(_parse_document(data)).strip()


def _parse_document(data: bytes) -> document_format.Document:
    return document_format.parse(redact(data.decode("utf-8", "replace").replace("\0", "�")).text)


def owner(connection: Connection, path: str) -> NodeId | None:
    """The node that a document belongs to according to the records."""
    row = connection.execute(
        "SELECT subject FROM records INDEXED BY idx_records_file WHERE kind = 'node.put'"
        " AND json_extract(body, '$.metadata.file') = ? AND stamp < ?"
        " ORDER BY stamp, id LIMIT 1",
        (path, records.BEYOND),
    ).fetchone()
    return row[0] if row else None


class _DocumentRecords:
    """The records of one document."""

    def __init__(self, path: str, node_id: NodeId | None, claimed: NodeId | None) -> None:
        self._path = path
        self._is_recorded = node_id is not None
        self._type = _TYPES.get(document_roles.place(path).role, "observation")
        self._node_id = node_id or claimed or ids.anchor_id(self._type, path)
        self._count = 0

    def records(self, document: document_format.Document) -> Iterator[Record]:
        created = _time(document.created) or _time(document.updated) or _EPOCH
        content = document_format.content(document).strip()
        if content:
            yield self._node(content, created, _time(document.updated))
        elif not self._is_recorded:
            return
        for tag in self._tags(document):
            yield self._record("tag.add", self._node_id, tag, body={"created_at": created})
        for word in dict.fromkeys(document.mentions):
            yield from self._mention(word, created)

    def _node(self, content: str, created: str, updated: str | None) -> Record:
        body: dict[str, Any] = {"content": content, "digest": digest(content)}
        if updated:
            body["updated_at"] = updated
        if not self._is_recorded:
            body |= {"type": self._type, "metadata": {"file": self._path}}
            body |= {"created_at": created, "updated_at": updated or created}
        return self._record("node.put", self._node_id, body=body)

    def _tags(self, document: document_format.Document) -> list[str]:
        tags: dict[str, None] = {}
        for word in document.tags:
            try:
                tags[model.tag(word)] = None
            except CtxError:
                # An invalid tag in a person's file is skipped.
                continue
        # A document cannot pin its node: the file may be a stranger's.
        is_pinned = model.PINNED in tags
        tags.pop(model.PINNED, None)
        is_decision = not self._is_recorded and self._type == "decision"
        if (is_pinned or is_decision) and model.tier(tags) is None:
            tags[model.REFERENCE] = None
        return list(tags)

    def _mention(self, word: str, created: str) -> Iterator[Record]:
        target = self._mentioned_node(word)
        if target is None:
            anchor = anchors.mentioned_anchor(word)
            target = anchor.id
            body = {"type": anchor.type, "content": anchor.name, "metadata": anchor.metadata}
            yield self._record(
                "node.put", target, body={**body, "created_at": created, "updated_at": created}
            )
        if target != self._node_id:
            yield self._record(
                "edge.put",
                self._node_id,
                records.edge_key("MENTIONS", target),
                target,
                {
                    "id": ids.derived_ulid(0, f"{self._node_id} MENTIONS {target}"),
                    "created_at": created,
                    "metadata": {"tool": "narrative", "confidence": model.CERTAIN},
                },
            )

    def _mentioned_node(self, word: str) -> NodeId | None:
        """The node that a mention names by id; it need not exist yet."""
        return NodeId(Ulid(word.upper())) if ids.is_ulid(word.upper()) else None

    def _record(
        self,
        kind: str,
        subject: str,
        key: str = "",
        target: str | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> Record:
        self._count += 1
        change = ids.derived_ulid(0, f"{ACTION} {self._path}")
        record_id = ids.derived_ulid(0, f"{ACTION} {self._path} {self._count}")
        fields = dict(body or {})
        return Record(
            record_id, records.BEYOND, change, ACTION, kind, subject, key, target, fields, "",
            f"narrative/{self._path}",
        )  # fmt: skip


def digest(content: str) -> str:
    """A hash that shows whether a document has changed."""
    return hashlib.blake2b(content.encode("utf-8", "replace"), digest_size=12).hexdigest()


def _time(text: str | None) -> str | None:
    ms = clock.parse_iso(text) if text else None
    return clock.iso(ms) if ms is not None else None
