"""Narrative documents as they were at a commit."""

import os
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from ctx import disk, redaction
from ctx.ids import ObjectId
from ctx.narrative import document_roles, narrative_scan
from ctx.objects import commits
from ctx.objects.object_store import Object, Reader, blob
from ctx.objects.object_types import NarrativeRef


class Snapshot(NamedTuple):
    """A document that has changed since its last snapshot."""

    ref: NarrativeRef
    content: Object
    secrets: tuple[redaction.Finding, ...]
    """Secrets that were removed from the snapshot. The file itself is not changed."""
    changed: bool = True
    """Whether it differs from the last snapshot."""


class SkippedDocument(NamedTuple):
    """A markdown file without a snapshot, and why."""

    path: str
    reason: str


def documents(folder: str) -> tuple[list[str], list[SkippedDocument]]:
    """The markdown files under the narrative folder, relative to it, in order."""
    files = narrative_scan.files(folder)
    kept = [file.path for file, why_not in files if why_not is None]
    skipped = [
        SkippedDocument(file.path, why_not) for file, why_not in files if why_not is not None
    ]
    if secret := redaction.names_with_secrets(kept):
        kept = [path for path in kept if path not in secret]
        skipped += [
            SkippedDocument(path, "its name looks like a secret") for path in sorted(secret)
        ]
    return kept, skipped


def take_snapshots(
    folder: str,
    paths: Iterable[str],
    known: Mapping[str, ObjectId],
    always: Collection[str] = (),
) -> list[Snapshot]:
    """The documents that differ from `known`, and those that are always wanted."""
    made = []
    for path in paths:
        # A log entry is written once, so its snapshot stays valid.
        if path in known and document_roles.place(path).role == "log" and path not in always:
            continue
        with disk.explain_errors(f"reading the narrative file {path}"):
            data = disk.read(os.path.join(folder, path))
        content, secrets = stored_document(data)
        is_changed = known.get(path) != content.id
        if is_changed or path in always:
            stream, role = document_roles.place(path)
            ref = NarrativeRef(path, stream, role, content.id)
            made.append(Snapshot(ref, content, secrets, is_changed))
    return made


class StoredDocument(NamedTuple):
    content: Object
    secrets: tuple[redaction.Finding, ...]


def stored_document(data: bytes) -> StoredDocument:
    """The snapshot of a document with these bytes."""
    clean = redaction.redact(data.decode("utf-8", "surrogateescape"))
    return StoredDocument(blob(clean.text.encode("utf-8", "surrogateescape")), clean.findings)


def last_kept(
    reader: Reader, heads: Iterable[ObjectId], wanted: Iterable[str]
) -> dict[str, ObjectId]:
    """The newest snapshot of each wanted document in the history of the heads."""
    missing = set(wanted)
    blobs: dict[str, ObjectId] = {}
    for _, commit in commits.walk(reader, heads):
        if not missing:
            break
        for ref in commit.narrative_refs if commit else ():
            if ref.path in missing:
                blobs[ref.path] = ref.blob_id
                missing.remove(ref.path)
    return blobs
