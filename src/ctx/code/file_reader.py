"""Read one file of the project for the index: its content, its kind, and what is in it.

This is what runs in other processes, so everything goes in and out as plain values.
"""

import os
from hashlib import blake2b

import msgspec

from ctx import clock, disk
from ctx.code import (
    attributes,
    encoding,
    file_listing,
    file_roles,
    file_words,
    language,
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
"""What is written for programs to read: its words would drown those of people."""
AROUND = frozenset(
    "css dockerfile go-mod html ini less make markdown sass scss text toml yaml".split()
)
"""What stands around the source, rather than being it."""
_KIND = {kind: number for number, kind in enumerate(KINDS)}
_VISIBILITY = {visibility: number for number, visibility in enumerate(VISIBILITIES)}


class FileToRead(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A file that has to be looked at."""

    file_id: int
    path: str
    hash: bytes | None = None
    """Of what was read before; the same again is not read again."""
    reader: int = 0
    """The version of what read it."""
    stamps: tuple[int, int, int, int] = (0, 0, 0, 0)
    """Size, mtime, ctime and inode, as it was listed."""


Row = tuple[int, str, int, int, int, int, int, int, str, str, bytes]
"""An item as the index keeps it: kind, name, the place of its parent, visibility, start, end, first
and last line, signature, first sentence of its documentation, hash of its body."""


class FileRecord(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a file was found to be."""

    file_id: int
    state: str
    """`read`, `same` as before, `skipped`, or `gone`."""
    stamps: tuple[int, int, int, int] = (0, 0, 0, 0)
    """Size, mtime, ctime, inode: of the content that was read."""
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
    """None: as before, or there are none."""


def read(root: str, wanted: FileToRead, limits: language_detection.FileLimits) -> FileRecord:
    """Read a file. Whatever is wrong with it is the reason why it is skipped."""
    file_id, path = wanted.file_id, wanted.path
    seen_at = clock.wall_ns()
    try:
        with open(disk.open_plain(os.path.join(root, path)), "rb", buffering=0) as file:
            status = os.fstat(file.fileno())
            stamps = file_listing.stamps(status)
            settled = file_listing.is_settled(status.st_mtime_ns, status.st_ctime_ns, seen_at)
            said = language_detection.unfit_unread(path, status.st_size, limits)
            content = b"" if said else file.readall()
    except FileNotFoundError:
        return FileRecord(file_id, "gone")
    except OSError as error:
        return FileRecord(file_id, "skipped", skipped=f"cannot be read: {error.strerror}")
    if said:
        name = language_detection.language_of(path)
        # Nothing in it counts: only another size, or other rules, can change that.
        return FileRecord(
            file_id,
            "skipped",
            stamps,
            True,
            b"",
            name,
            version(name),
            said,
            role=file_roles.AUXILIARY,
            words=file_words.of_file(path, "", ()),
        )
    digest = blake2b(content, digest_size=HASH_SIZE).digest()
    name = language_detection.language_of(path, content[: language_detection.HEAD])
    reader = version(name)
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
    """A file whose reader did not come back. It is tried again when it has changed."""
    name = language_detection.language_of(wanted.path)
    said = "its reader broke down, or took too long"
    return FileRecord(
        wanted.file_id, "skipped", wanted.stamps, True, b"", name, version(name), said
    )


def version(name: str | None) -> int:
    """The version of what reads a language; 0 where nothing does."""
    return language.version(name) if name in language.READ else 0


def _lines(content: bytes) -> int:
    return content.count(b"\n") + (not content.endswith(b"\n") and bool(content))


def limits(root: str, max_bytes: int) -> language_detection.FileLimits:
    """What is not parsed in a project, with what its own attributes say."""
    return language_detection.FileLimits(max_bytes, attributes.read_attributes(root))


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
