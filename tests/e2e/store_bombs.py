"""Project stores that are small on disk but need hours or all memory to read completely.

Each function fills a folder that has an empty store. Every object is whole and has the right id:
a hash does not tell how much there is behind it.
"""

import hashlib
import os
import sys
import zlib
from collections.abc import Iterable
from functools import cached_property
from itertools import chain, pairwise, repeat
from pathlib import Path
from typing import Any

import msgspec
from blake3 import blake3

from ctx import clock, ids
from ctx.ids import ObjectId
from ctx.layout import project_at
from ctx.memory.records import Record
from ctx.objects.object_store import Object, blob, typed
from ctx.objects.object_types import Commit, RecordBatch, Tree, TreeEntry, TreeEntryKind
from ctx.objects.repository import Repository
from ctx.project import batches

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MB = 1024 * 1024
_SEAL = b"\x50\x2a\x4d\x18\x04\x00\x00\x00"


class _Store:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.repository = Repository(project_at(str(folder)))

    @cached_property
    def tree(self) -> ObjectId:
        return self.repository.current()[0][1].root_tree

    def write(self, objects: Iterable[Object]) -> None:
        """Write files without a sync, because there are thousands."""
        for item in objects:
            self.put(item.id, zstd.compress(item.canonical, 3))

    def put(self, id: str, frame: bytes) -> None:
        path = self.folder / ".ctx" / "objects" / id[:2] / id
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(frame + _SEAL + zlib.crc32(frame).to_bytes(4, "little"))

    def commit(self, **fields: Any) -> ObjectId:
        values: dict[str, Any] = {"parents": (), "timestamp_unix": 1, "message": "x"}
        made = typed(Commit(**{**values, "root_tree": self.tree, **fields}))
        self.write([made])
        return made.id

    def head_at(self, id: str) -> None:
        (self.folder / ".ctx" / "heads" / id).touch()


def _record(body: dict[str, Any]) -> Record:
    stamp = clock.now_ms() << clock.COUNTER_BITS
    node, change = ids.new_ulid(), ids.new_ulid()
    return Record(
        ids.new_ulid(), stamp, change, "add", "node.put", node, "", None, body, "cli", "cli"
    )


def long_texts(folder: Path) -> None:
    """Nodes of a megabyte each, all the same letters."""
    store = _Store(folder)
    made = []
    for number in range(15):
        body: dict[str, object] = {"type": "fact", "content": f"{number} " + "word " * (MB // 5)}
        made.append(batches.encode_batch([_record(body) for _ in range(3)]))
    store.write(made)
    store.head_at(store.commit(record_batches=tuple(each.id for each in made)))


def tiny_records(folder: Path) -> None:
    """One batch with millions of records of one byte."""
    store = _Store(folder)
    batch = typed(RecordBatch(tuple([msgspec.Raw(b"\xc0")] * (4 * MB - 100))))
    store.write([batch])
    store.head_at(store.commit(record_batches=(batch.id,)))


def many_batches(folder: Path) -> None:
    """Batches of zeros: a frame of a few bytes unpacks to 3 MB."""
    store = _Store(folder)
    made = [
        typed(RecordBatch((msgspec.Raw(msgspec.msgpack.encode("\0" * 3 * MB + str(number))),)))
        for number in range(90)
    ]
    store.write(made)
    store.head_at(store.commit(record_batches=tuple(each.id for each in made)))


def large_messages(folder: Path) -> None:
    """A chain of commits with a message of megabytes each."""
    store = _Store(folder)
    last: tuple[ObjectId, ...] = ()
    for number in range(90):
        last = (store.commit(parents=last, timestamp_unix=number, message="x" * 3 * MB),)
    store.head_at(last[0])


def huge_messages(folder: Path, count: int = 4, megabytes: int = 250) -> list[str]:
    """Heads with messages that never exist as a whole while they are made."""
    store = _Store(folder)
    size = megabytes * MB
    made = []
    for number in range(count):
        short = typed(Commit((), 1 + number, "#", store.tree)).payload
        before, after = short.split(b"message\xa1#")
        before += b"message\xdb" + size.to_bytes(4, "big")
        length = (len(before) + size + len(after)).to_bytes(8, "little")
        compressor, hashed, frame = zstd.ZstdCompressor(), blake3(), []
        text = repeat(b"x" * MB, megabytes)
        for part in chain([b"CTXO1\x02" + length + before], text, [after]):
            hashed.update(part)
            frame.append(compressor.compress(part))
        frame.append(compressor.flush())
        made.append(hashed.hexdigest())
        store.put(made[-1], b"".join(frame))
        store.head_at(made[-1])
    return made


def short_frame(folder: Path) -> list[str]:
    """The same, with a frame that declares a thousand bytes."""
    (id,) = huge_messages(folder, 1)
    frame = (folder / ".ctx/objects" / id[:2] / id).read_bytes()[:-12]
    assert frame[4] & 0xE0 == 0, "The size stands between the window and the blocks."
    said = (1000).to_bytes(4, "little")
    _Store(folder).put(id, frame[:4] + bytes([frame[4] | 0x80, frame[5]]) + said + frame[6:])
    return [id]


def large_tree(folder: Path) -> list[str]:
    """A folder of 5 MB."""
    store = _Store(folder)
    names = (f"{number:0200}" for number in range(18_000))
    tree = typed(Tree(tuple(TreeEntry(name, TreeEntryKind.TREE, store.tree) for name in names)))
    store.write([tree])
    store.head_at(store.commit(root_tree=tree.id))
    return [tree.id]


def large_blobs(folder: Path) -> None:
    """Blobs that unpack to 100 MB each; only a check of the store reads them."""
    store = _Store(folder)
    made = [blob(b"\0" * (100 * MB + number)) for number in range(3)]
    store.write(made)
    entries = [
        TreeEntry(f"{number:03}", TreeEntryKind.BLOB, each.id) for number, each in enumerate(made)
    ]
    tree = typed(Tree(tuple(entries)))
    store.write([tree])
    store.head_at(store.commit(root_tree=tree.id))


def shared_trees(folder: Path) -> None:
    """Two hundred folders that each contain the next one twice, on two different heads."""
    store = _Store(folder)
    for leaf in ("one", "two"):
        content = blob(leaf.encode())
        tree = typed(Tree((TreeEntry("a", TreeEntryKind.BLOB, content.id),)))
        made = [content, tree]
        for _ in range(190):
            both = tuple(TreeEntry(name, TreeEntryKind.TREE, tree.id) for name in ("a", "b"))
            tree = typed(Tree(both))
            made.append(tree)
        store.write(made)
        store.head_at(store.commit(root_tree=tree.id, message=leaf))


def amended_chain(folder: Path) -> None:
    """Commits that each amend the one before, in the format of earlier versions."""
    store = _Store(folder)
    last, every = None, []
    for number in range(2000):
        last = store.commit(timestamp_unix=number, amends=last)
        every.append(last)
    store.head_at(store.commit(parents=tuple(every), timestamp_unix=5000))


def long_history(folder: Path, commits: int = 3000) -> None:
    """Thousands of commits in a row."""
    store = _Store(folder)
    last: tuple[ObjectId, ...] = ()
    for number in range(commits):
        last = (store.commit(parents=last, timestamp_unix=number),)
    store.head_at(last[0])


def bogus_heads(folder: Path) -> None:
    """Heads with invalid names."""
    for number in range(20_000):
        (folder / ".ctx" / "heads" / f"bogus{number}").touch()


def empty_heads(folder: Path) -> None:
    """Heads with the names of missing objects."""
    store = _Store(folder)
    for number in range(20_000):
        store.head_at(hashlib.sha256(str(number).encode()).hexdigest())


def damaged_heads(folder: Path) -> None:
    """Heads whose objects are damaged, all in one folder."""
    store = _Store(folder)
    shard = folder / ".ctx" / "objects" / "aa"
    shard.mkdir(exist_ok=True)
    for number in range(900):
        id = "aa" + hashlib.sha256(str(number).encode()).hexdigest()[2:]
        store.head_at(id)
        (shard / id).write_bytes(b"x")
    os.utime(shard, (1, 1))


def replaced_chain(folder: Path) -> None:
    """A chain of thousands of replaced objects."""
    store = _Store(folder)
    names = [hashlib.sha256(str(number).encode()).hexdigest() for number in range(3000)]
    chain = folder / ".ctx" / "replaced"
    chain.mkdir()
    for old, new in pairwise(names):
        (chain / f"{old}.{new}").touch()
    batch = typed(RecordBatch((), blobs=tuple(map(ObjectId, names))))
    store.write([batch])
    store.head_at(store.commit(record_batches=(batch.id,), parents=tuple(map(ObjectId, names))))


def many_documents(folder: Path) -> None:
    """Documents of megabytes."""
    tasks = folder / ".ctx" / "narrative" / "tasks"
    tasks.mkdir(parents=True)
    first = tasks / "task_0000-x-aaaa.md"
    first.write_text("# Task\n\n" + "word " * (3 * MB // 5))
    for number in range(1, 20):
        os.link(first, tasks / f"task_{number:04}-x-aaaa.md")


def large_document(folder: Path) -> None:
    """A sparse document of a gigabyte."""
    file = folder / ".ctx" / "narrative" / "large.md"
    with file.open("wb") as opened:
        opened.truncate(1024 * MB)


TOO_LARGE = [
    long_texts, many_batches, large_messages, replaced_chain, many_documents, empty_heads,
]  # fmt: skip
"""What is not shown before it is trusted. The rest is, several in one store."""

BOMBS = [
    *([bomb] for bomb in TOO_LARGE),
    [large_document, shared_trees, large_blobs],
    [amended_chain, long_history, tiny_records],
    [bogus_heads, damaged_heads],
]
