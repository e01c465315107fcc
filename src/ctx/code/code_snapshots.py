"""The content of a source file as it is stored with a commit.

There is one object per file. Its ids depend on paths and names, not on positions: an unchanged file
is the same object in the next snapshot, whatever has moved in the files that it imports from.
"""

import os
import re
from array import array
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from itertools import accumulate
from sqlite3 import Connection
from typing import NamedTuple

from ctx import disk, redaction
from ctx.code import encoding, file_reader, qualified_names
from ctx.code.lookup import Code
from ctx.code.qualified_names import QualifiedNames
from ctx.code.resolve import facts
from ctx.code.source_model import SourceImport as Written
from ctx.code.vocabulary import KINDS, VISIBILITIES, file_of, item_id
from ctx.ids import ObjectId
from ctx.objects.object_store import derived_id
from ctx.objects.object_types import (
    CodeSnapshot,
    Implementation,
    Import,
    ImportKind,
    Item,
    ItemKind,
    Module,
    Span,
    Visibility,
)

_MODULE = KINDS.index("module")
_IMPL = KINDS.index("impl")
_MOST_REMEMBERED = 200_000
# The first prefix that matches counts.
_IMPORT_KINDS = {
    "crate::": ImportKind.CRATE,
    "super::": ImportKind.SUPER,
    "self::": ImportKind.SELF,
    "..": ImportKind.SUPER,
    ".": ImportKind.SELF,
}
_NAMES = re.compile(r"[\w$]+")
_SEPARATORS = re.compile(r"::|\.")


class SkippedFile(NamedTuple):
    path: str
    reason: str


class SnapshotFile(NamedTuple):
    """A file with indexed content."""

    id: int
    path: str
    language: str
    hash: bytes


class ItemRow(NamedTuple):
    """An item in the index."""

    id: int
    parent: int | None
    kind: int
    name: str
    visibility: int
    start: int
    stop: int
    line: int
    end_line: int
    signature: str
    doc: str
    body_hash: bytes


def rows(connection: Connection, file_id: int) -> list[ItemRow]:
    """The items of a file in file order, the file itself first."""
    fetched = connection.execute(
        "SELECT id, parent, kind, name, visibility, start, stop, line, end_line, signature, doc,"
        " body_hash FROM items WHERE id BETWEEN ? AND ? ORDER BY parent NOT NULL, start, stop DESC,"
        " id",
        (item_id(file_id, 0), item_id(file_id + 1, 0) - 1),
    )
    return [ItemRow(*row) for row in fetched]


def split_name(name: str) -> list[str]:
    """The components of a qualified name. A file that is not a module keeps its extension."""
    folder, slash, last = name.rpartition("/")
    return [*folder.split("/"), last] if slash else _SEPARATORS.split(name)


def signature_hash(signature: str) -> bytes:
    return blake2b(signature.encode("utf-8", "replace"), digest_size=8).digest()


def digest(content: bytes) -> bytes:
    """The hash that the index uses for the content of a file."""
    return blake2b(content, digest_size=file_reader.HASH_SIZE).digest()


def as_parsed(content: bytes) -> bytes:
    """The content in UTF-8, which grammars require."""
    if content.isascii():
        return content
    decoded = encoding.decode(content)
    return content if decoded.encoding == "utf-8" else decoded.text.encode()


class LineOffsets:
    """The byte offsets of the lines of a file."""

    def __init__(self, file_id: ObjectId, content: bytes, blob_id: ObjectId | None = None) -> None:
        self._file_id = file_id
        self._blob_id = blob_id
        lengths = map(len, content.splitlines(keepends=True))
        self._marks = list(accumulate(lengths, initial=0))

    def span(self, row: ItemRow) -> Span:
        return Span(
            self._file_id,
            row.start,
            row.stop,
            blob_id=self._blob_id,
            start_line=row.line,
            end_line=row.end_line,
        )

    def line(self, number: int) -> Span:
        """One line, counted from 1; empty beyond the last."""
        last = len(self._marks) - 1
        start, end = (self._marks[min(max(place, 0), last)] for place in (number - 1, number))
        return Span(
            self._file_id,
            start,
            end,
            blob_id=self._blob_id,
            start_line=number,
            end_line=number,
        )


class SnapshotMaker:
    """Makes snapshots of the files of one index."""

    def __init__(self, code: Code, root: str, repo_id: str) -> None:
        self.code = code
        self.names = QualifiedNames(code.connection, root)
        self._root = root
        self._repo_id = repo_id
        self._ids: dict[int, ObjectId] = {}
        self._modules: dict[int, ObjectId | None] = {}
        self._clean: set[str] = set()
        """Texts that contain no secrets."""

    def snapshot(self, file: SnapshotFile) -> CodeSnapshot | SkippedFile:
        """The snapshot of one file, without secrets."""
        if redaction.redact(file.path).findings:
            return SkippedFile(file.path, "its name looks like a secret")
        try:
            content = disk.read(os.path.join(self._root, file.path))
        except OSError as error:
            return SkippedFile(file.path, f"it cannot be read: {error.strerror}")
        every = rows(self.code.connection, file.id)
        if digest(content) != file.hash or not every:
            return SkippedFile(file.path, "it changed while it was read")
        lines = LineOffsets(self.file_id(file.path), as_parsed(content))
        return _FileSnapshot(self, file, every, lines).snapshot()

    def file_id(self, path: str) -> ObjectId:
        return derived_id("file", self._repo_id, path)

    def module_id(self, language: str, name: str) -> ObjectId:
        return derived_id("module", self._repo_id, language, name)

    def item_id(self, item: int) -> ObjectId:
        """By its file, its kind, the names around it, and its number among equal ones: not by its
        position, so that references to it stay valid when it moves."""
        if item not in self._ids:
            if len(self._ids) > _MOST_REMEMBERED:
                self._ids.clear()
            self._name_items(file_of(item))
        return self._ids[item]

    def _name_items(self, file_id: int) -> None:
        fetched = self.code.connection.execute("SELECT path FROM files WHERE id = ?", (file_id,))
        path = self.file_id(fetched.fetchone()[0])
        around: dict[int, tuple[str, ...]] = {}
        counts: dict[tuple[str, ...], int] = {}
        for row in rows(self.code.connection, file_id):
            names = around.get(row.parent or 0, ())
            around[row.id] = (*names, row.name) if row.parent is not None else ()
            key = (KINDS[row.kind], *around[row.id])
            counts[key] = counts.get(key, 0) + 1
            self._ids[row.id] = derived_id("item", path, *key, str(counts[key]))

    def module_of(self, item: int) -> ObjectId | None:
        """The id of an item that is a module; None for any other."""
        if item not in self._modules:
            if len(self._modules) > _MOST_REMEMBERED:
                self._modules.clear()
            row = self.code.connection.execute(
                "SELECT kind, language FROM items JOIN files ON files.id = items.id >> 16"
                " WHERE items.id = ?",
                (item,),
            ).fetchone()
            is_module = row is not None and row[0] == _MODULE
            name = self.names.qualified_name(item) if is_module else ""
            self._modules[item] = self.module_id(row[1], name) if is_module else None
        return self._modules[item]

    def look_through(self, texts: Iterable[str]) -> None:
        """Search many texts for secrets at once, which takes as long as searching a single one."""
        if len(self._clean) > _MOST_REMEMBERED:
            self._clean.clear()
        new = set(texts) - self._clean
        if not redaction.redact("\n".join(sorted(new))).findings:
            self._clean |= new

    def clean(self, text: str) -> str:
        """A text without secrets."""
        return text if text in self._clean else redaction.redact(text).text


class _FileSnapshot:
    """One file while its snapshot is made."""

    def __init__(
        self, taker: SnapshotMaker, file: SnapshotFile, every: list[ItemRow], lines: LineOffsets
    ) -> None:
        self._taker = taker
        self._file = file
        self._rows = every
        self._lines = lines
        self._module_ids: dict[int, ObjectId] = {}
        """The module that each item is or belongs to."""
        self._names: dict[int, str] = {}
        self._children: dict[int, list[ObjectId]] = {}

    def snapshot(self) -> CodeSnapshot:
        imports = self._taker.code.imports(self._file.id)
        self._taker.look_through(
            [
                *(text for row in self._rows for text in (row.name, row.signature, row.doc)),
                *(as_written(entry.written, self._file.language) for _, entry in imports),
            ]
        )
        modules = tuple(self._modules())
        items = tuple(self._item(row) for row in self._rows if row.parent is not None)
        return CodeSnapshot(
            self._file.language,
            modules,
            items,
            tuple(self._import(owner, entry.written, entry.target) for owner, entry in imports),
            tuple(self._implementations()),
        )

    def _modules(self) -> Iterator[Module]:
        """The file, and the modules defined in it."""
        file_id = self._taker.file_id(self._file.path)
        for row in self._rows:
            if row.kind != _MODULE:
                self._module_ids[row.id] = self._module_ids[row.parent or 0]
                continue
            name = self._name(row)
            id = self._taker.module_id(self._file.language, name)
            self._module_ids[row.id] = id
            path = tuple(split_name(name))
            declared = None if row.parent is None else self._lines.span(row)
            yield Module(id, path, file_id, declared)

    def _name(self, row: ItemRow) -> str:
        """The qualified name of an item, with secrets removed from its parts."""
        around = self._names.get(row.parent or 0)
        if around and row.parent != self._rows[0].id:
            separator = qualified_names.separator(self._file.language)
            name = f"{around}{separator}{self._taker.clean(row.name)}"
        else:
            name = self._taker.names.qualified_name(row.id)
            if self._taker.clean(row.name) != row.name:
                name = self._taker.clean(name)
        self._names[row.id] = name
        return name

    def _item(self, row: ItemRow) -> Item:
        clean = self._taker.clean
        # A secret must not be guessable from a hash either.
        signature = clean(row.signature)
        id = self._taker.item_id(row.id)
        self._children.setdefault(row.parent or 0, []).append(id)
        return Item(
            id,
            self._module_ids[row.parent or 0],
            ItemKind(KINDS[row.kind]),
            clean(row.name),
            Visibility(VISIBILITIES[row.visibility]),
            self._lines.span(row),
            self._names.get(row.id) or self._name(row),
            signature_hash(signature).hex() if signature else "",
            row.body_hash.hex(),
            signature=signature,
            doc=clean(row.doc),
        )

    def _import(self, owner: int, written: Written, target: int | None) -> Import:
        taker = self._taker
        to_module = taker.module_of(target) if target else None
        to_item = taker.item_id(target) if target and to_module is None else None
        return Import(
            self._module_ids[owner],
            self._lines.line(written.line),
            _import_kind(written),
            to_item,
            to_module,
            taker.clean(as_written(written, self._file.language)),
        )

    def _implementations(self) -> Iterator[Implementation]:
        """The implementations of types: one for each base that they extend or implement."""
        taker = self._taker
        bases = _bases(taker.code.connection, self._file.id)
        for row in self._rows:
            written = bases.get(row.id, ())
            if not written and row.kind != _IMPL:
                continue
            edges = taker.code.edges_from([row.id], ("IMPLEMENTS",)) if written else ()
            resolved = {taker.names.qualified_name(edge.target) for edge in edges}
            for base in written or ("",):
                own = next((name for name in resolved if _ends_alike(name, base)), base)
                yield Implementation(
                    self._module_ids[row.id],
                    self._lines.span(row),
                    taker.clean(row.name),
                    taker.clean(own),
                    tuple(self._children.get(row.id, ())),
                )


def _bases(connection: Connection, file_id: int) -> dict[int, tuple[str, ...]]:
    """The bases of the items of a file, as written."""
    row = connection.execute(
        "SELECT slots, facts FROM facts WHERE file_id = ?", (file_id,)
    ).fetchone()
    if row is None:
        return {}
    items = facts.decode(row[1]).items
    slots = array("H", row[0]) if row[0] else range(len(items))
    pairs = zip(slots, items, strict=True)
    return {item_id(file_id, slot): item.bases for slot, item in pairs if item.bases}


def _ends_alike(name: str, written: str) -> bool:
    return _NAMES.findall(name)[-1:] == _NAMES.findall(written)[-1:]


def _import_kind(written: Written) -> ImportKind:
    if written.item == "*":
        return ImportKind.GLOB
    for beginning, kind in _IMPORT_KINDS.items():
        if written.module.startswith(beginning):
            return kind
    return ImportKind.SINGLE


def as_written(written: Written, language: str) -> str:
    """The module and the item that an import names."""
    if not written.item or written.module.endswith("."):
        return written.module + written.item
    return f"{written.module}{qualified_names.separator(language)}{written.item}"
