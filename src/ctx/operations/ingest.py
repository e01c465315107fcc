"""Keep files as source nodes."""

import hashlib
import os
import stat
from collections.abc import Sequence
from typing import NamedTuple

from ctx import disk, tokens
from ctx.errors import ContentRefused
from ctx.ids import NodeId
from ctx.memory import model
from ctx.memory.changes import Change, changing
from ctx.memory.model import Evidence, Redaction
from ctx.redaction import redact
from ctx.workspace import Memory


class Options(NamedTuple):
    paths: Sequence[str] = ()
    text: str | None = None
    """What came on stdin, instead of a path."""
    name: str = ""
    """What that text is called."""
    tags: Sequence[str] = ()
    summary: str | None = None


class Kept(NamedTuple):
    """A file that is a node now."""

    path: str
    state: str
    """`new`, `changed`, or `unchanged`."""
    id: NodeId
    short_id: str
    token_estimate: int
    supersedes: NodeId | None
    """The node of what the file said before."""


class Refused(NamedTuple):
    path: str
    reason: str


class Ingested(NamedTuple):
    """The answer of `ctx ingest`."""

    files: tuple[Kept, ...]
    refused: tuple[Refused, ...]
    redacted: tuple[Redaction, ...]


class _Page(NamedTuple):
    path: str
    text: str
    bytes: int


def ingest(memory: Memory, options: Options) -> Ingested:
    tags = model.tags(options.tags)
    if memory.project_tag and not any(tag.startswith("project:") for tag in tags):
        tags.append(memory.project_tag)
    limit = memory.config.integer("ingestion.max_file_bytes")
    # By whatever name a person calls a file, it is one.
    paths = [os.path.realpath(os.path.join(memory.folder, path)) for path in options.paths]
    found = [_read(path, limit) for path in dict.fromkeys(paths)]
    if options.text is not None:
        found.append(_Page(options.name, options.text, len(options.text.encode("utf-8"))))
    refused = [each for each in found if isinstance(each, Refused)]
    kept: list[Kept] = []
    redacted: list[Redaction] = []
    with changing(memory.graph, "ingest", memory.who) as change:
        evidence = Evidence(memory.who.author, reason="the file changed")
        for page in found:
            if isinstance(page, Refused):
                continue
            try:
                content = redact(model.content(page.text))
            except ContentRefused as error:
                reason = error.message[:1].lower() + error.message[1:].rstrip(".")
                refused.append(Refused(page.path, reason))
                continue
            kept.append(_keep(change, page, content.text, tags, options.summary, evidence))
            redacted += [Redaction(page.path, each.rule, each.line) for each in content.findings]
    short = memory.graph.shown(each.id for each in kept)
    files = tuple(each._replace(short_id=short[each.id]) for each in kept)
    return Ingested(files, tuple(refused), tuple(redacted))


def _read(path: str, limit: int) -> _Page | Refused:
    """A file's text, or why it is none."""
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return Refused(path, "its name is not UTF-8")
    try:
        status = os.stat(path)
        if stat.S_ISDIR(status.st_mode):
            return Refused(path, "it is a folder")
        if not stat.S_ISREG(status.st_mode):
            return Refused(path, "it is not a plain file")
        if status.st_size > limit:
            most = f"{limit:,} bytes (ingestion.max_file_bytes)"
            return Refused(path, f"its {status.st_size:,} bytes are over the limit of {most}")
        data = disk.read_plain(path, limit)
    except OSError as error:
        return Refused(path, f"it cannot be read: {error.strerror}")
    if b"\0" in data:
        return Refused(path, "it is binary")
    try:
        return _Page(path, data.decode("utf-8-sig"), len(data))
    except UnicodeDecodeError:
        return Refused(path, "it is not UTF-8 text")


def _keep(
    change: Change,
    page: _Page,
    content: str,
    tags: Sequence[str],
    summary: str | None,
    evidence: Evidence,
) -> Kept:
    # Of what is kept: the hash of a text with its secret could be used to guess the secret.
    digest = hashlib.blake2b(content.encode("utf-8"), digest_size=16).hexdigest()
    size = tokens.estimate(content)
    before = change.graph.source_of(page.path)
    if before is not None and before.metadata.get("hash") == digest:
        change.update_node(before.id, summary=summary)
        for tag in tags:
            change.tag(before.id, tag)
        return Kept(page.path, "unchanged", before.id, "", size, None)
    node_id = change.add_node(
        "source",
        content,
        summary=summary or (before.summary if before else None),
        metadata={"path": page.path, "bytes": page.bytes, "hash": digest},
    )
    # What was said about the old text by tags holds for the new one.
    given = before.tags if before else ()
    replaced = model.replaced_tiers(given, tags)
    for tag in (*(tag for tag in given if tag not in replaced), *tags):
        change.tag(node_id, tag)
    if before is None:
        return Kept(page.path, "new", node_id, "", size, None)
    change.link(node_id, before.id, "SUPERSEDES", evidence)
    return Kept(page.path, "changed", node_id, "", size, before.id)
