"""Narrative documents as they were at a commit."""

import os
import stat
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ctx import disk, layout, redaction
from ctx.ids import ObjectId
from ctx.narrative import roles
from ctx.objects import commits
from ctx.objects.model import NarrativeRef
from ctx.objects.store import Object, Reader, blob

# A projection that is made from the decisions, not written by anybody.
_PROJECTIONS = frozenset({"decisions.md"})
_LARGEST = 4 * 1024 * 1024


class Snapshot(NamedTuple):
    """A document that has changed since it was last kept."""

    ref: NarrativeRef
    content: Object
    secrets: tuple[redaction.Finding, ...]
    """What was left out of what is kept. The person's file is not touched."""


class Skipped(NamedTuple):
    """A markdown file that is not kept, and why."""

    path: str
    reason: str


def documents(folder: str) -> tuple[list[str], list[Skipped]]:
    """The markdown files under the narrative folder, relative to it, in order."""
    found: list[str] = []
    skipped: list[Skipped] = []
    for here, folders, names in os.walk(folder):
        folders.sort()
        for name in names:
            full = os.path.join(here, name)
            path = os.path.relpath(full, folder)
            if not name.endswith(".md") or path in _PROJECTIONS:
                continue
            reason = _why_not(full, path)
            if reason is None:
                found.append(path)
            else:
                skipped.append(Skipped(path, reason))
    return sorted(found), sorted(skipped)


def _why_not(full: str, path: str) -> str | None:
    status = os.lstat(full)
    if not stat.S_ISREG(status.st_mode):
        return "it is not a plain file"
    if status.st_size > _LARGEST:
        return f"it is larger than {_LARGEST:,} bytes"
    return layout.unfit_name(path)


def changed(folder: str, paths: Iterable[str], known: Mapping[str, ObjectId]) -> list[Snapshot]:
    """The documents that differ from what `known` has for their paths."""
    made = []
    for path in paths:
        with disk.explained(f"reading the narrative file {path}"):
            text = disk.read(os.path.join(folder, path)).decode("utf-8", "surrogateescape")
        clean = redaction.redact(text)
        content = blob(clean.text.encode("utf-8", "surrogateescape"))
        if known.get(path) != content.id:
            stream, role = roles.place(path)
            ref = NarrativeRef(path, stream, role, content.id)
            made.append(Snapshot(ref, content, clean.findings))
    return made


def last_kept(
    reader: Reader, heads: Iterable[ObjectId], wanted: Iterable[str]
) -> dict[str, ObjectId]:
    """The newest snapshot of each wanted document in the history of the heads."""
    missing = set(wanted)
    found: dict[str, ObjectId] = {}
    for _, commit in commits.walk(reader, heads):
        if not missing:
            break
        for ref in commit.narrative_refs if commit else ():
            if ref.path in missing:
                found[ref.path] = ref.blob_id
                missing.remove(ref.path)
    return found
