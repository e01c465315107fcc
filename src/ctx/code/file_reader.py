"""Read one file for the index: its content, its language, and its items.

This runs in worker processes, so all inputs and outputs are plain values.
"""

import os
from hashlib import blake2b

import msgspec

from ctx import clock, disk
from ctx.code import (
    encoding,
    file_listing,
    file_roles,
    file_words,
    grammars,
    language_detection,
    source_parser,
)
from ctx.code.file_words import WordCounts
from ctx.code.resolve import facts
from ctx.code.source_model import SourceItem
from ctx.code.vocabulary import KINDS, VISIBILITIES

HASH_SIZE = 16

_LONGEST_DOC = 160
DATA = frozenset("json csv svg xml jupyter".split())
"""Data for programs. Their words would outnumber those that people wrote."""
AROUND = frozenset(
    "css dockerfile go-mod html ini less make markdown sass scss text toml yaml".split()
)
"""Files around the source that are not source."""
_KIND = {kind: number for number, kind in enumerate(KINDS)}
_VISIBILITY = {visibility: number for number, visibility in enumerate(VISIBILITIES)}


class FileToRead(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A file to be read."""

    file_id: int
    path: str
    hash: bytes | None = None
    """The hash of the last content; the same content is not parsed again."""
    reader: int = 0
    """The version of the language reader that read it."""
    stamps: tuple[int, int, int, int] = (0, 0, 0, 0)
    """Size, mtime, ctime and inode from the listing."""


Row = tuple[int, str, int, int, int, int, int, int, str, str, bytes]
"""An item as it is stored: kind, name, index of its parent, visibility, start, end, first and last
line, signature, first sentence of its documentation, hash of its body."""


class FileRecord(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What was read from a file."""

    file_id: int
    state: str
    """`read`, `same` as before, `skipped`, or `gone`."""
    stamps: tuple[int, int, int, int] = (0, 0, 0, 0)
    """Size, mtime, ctime and inode of the content that was read."""
    settled: bool = False
    hash: bytes = b""
    language: str | None = None
    reader: int = 0
    skipped: str | None = None
    lines: int = 0
    problems: int = 0
    rows: tuple[Row, ...] = ()
    facts: bytes = b""
    hashes: bytes = b""
    mentions: bytes = b""
    role: int = 0
    words: WordCounts | None = None
    """None if they are unchanged, or if there are none."""


def read(root: str, wanted: FileToRead, limits: language_detection.FileLimits) -> FileRecord:
    """Read a file. Any problem becomes the reason why it is skipped."""
    file_id, path = wanted.file_id, wanted.path
    seen_at = clock.wall_ns()
    try:
        with open(disk.open_plain(os.path.join(root, path)), "rb", buffering=0) as file:
            status = os.fstat(file.fileno())
            stamps = file_listing.stamps(status)
            settled = file_listing.is_settled(status.st_mtime_ns, status.st_ctime_ns, seen_at)
            reason = language_detection.unfit_unread(path, status.st_size, limits)
            content = b"" if reason else file.readall()
    except FileNotFoundError:
        return FileRecord(file_id, "gone")
    except OSError as error:
        return FileRecord(file_id, "skipped", skipped=f"cannot be read: {error.strerror}")
    if reason:
        name = language_detection.language_of(path)
        # The content does not matter: only another size or other rules can change the result.
        return FileRecord(
            file_id,
            "skipped",
            stamps,
            True,
            b"",
            name,
            grammars.version(name),
            reason,
            role=file_roles.AUXILIARY,
            words=file_words.of_file(path, "", ()),
        )
    digest = blake2b(content, digest_size=HASH_SIZE).digest()
    name = language_detection.language_of(path, content[: language_detection.HEAD])
    reader = grammars.version(name)
    if digest == wanted.hash and reader == wanted.reader:
        return FileRecord(file_id, "same", stamps, settled, digest, name, reader)
    lines = _lines(content)
    unfit = language_detection.unfit(path, content, limits)
    if unfit is None and name and reader:
        if content.isascii():
            text = content.decode("ascii")
        else:
            decoded = encoding.decode(content)
            text = decoded.text
            if decoded.encoding != "utf-8":
                # Grammars read UTF-8.
                content = text.encode()
                lines = _lines(content)
        parsed = source_parser.parse(path, content, name, lines)
        known = facts.extract_facts(parsed)
        return FileRecord(
            file_id,
            "read",
            stamps,
            settled,
            digest,
            name,
            reader,
            None,
            lines,
            len(parsed.problems),
            tuple(map(_row, parsed.items)),
            facts.encode(known),
            facts.hashes(known, parsed.mentions),
            facts.encode(parsed.mentions),
            file_roles.role_of(path),
            file_words.of_file(path, text, [item.name for item in parsed.items[1:]]),
        )
    text = ""
    if unfit is None:
        unfit = "no grammar" if name else "no known language"
        if name and name not in DATA and len(content) <= file_words.LONGEST_TEXT:
            text = encoding.decode(content).text
    return FileRecord(
        file_id,
        "skipped",
        stamps,
        settled,
        digest,
        name,
        reader,
        unfit,
        lines,
        role=file_roles.role_of(path)
        if text and name not in AROUND
        else max(file_roles.role_of(path), file_roles.AUXILIARY),
        words=file_words.of_file(path, text, ()),
    )


def failed_record(wanted: FileToRead) -> FileRecord:
    """The record of a file whose worker process failed. It is read again when it changes."""
    name = language_detection.language_of(wanted.path)
    reason = "its parser crashed or timed out"
    return FileRecord(
        wanted.file_id, "skipped", wanted.stamps, True, b"", name, grammars.version(name), reason
    )


def _lines(content: bytes) -> int:
    return content.count(b"\n") + (not content.endswith(b"\n") and bool(content))


def _row(item: SourceItem) -> Row:
    doc = item.doc
    if len(doc) > _LONGEST_DOC or "\n" in doc:
        paragraph = " ".join(doc.partition("\n\n")[0].split())
        doc = paragraph.partition(". ")[0][:_LONGEST_DOC]
    return (
        _KIND[item.kind],
        item.name,
        item.parent,
        _VISIBILITY[item.visibility],
        item.start,
        item.end,
        item.line,
        item.end_line,
        item.signature,
        doc,
        item.body_hash,
    )
