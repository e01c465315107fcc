"""What a refresh writes to `code.db`: files with their items and facts, packages, edges."""

import json
from array import array
from collections.abc import Iterable, Iterator, Sequence
from sqlite3 import Connection

from ctx.code import postings
from ctx.code.file_reader import FileRecord
from ctx.code.packages.package_model import PackageWorkspace
from ctx.code.resolve import facts
from ctx.code.resolve.facts import Facts
from ctx.code.resolve.resolver import FIELDS, ResolvedEdges
from ctx.code.vocabulary import SLOTS, item_id

LARGEST_SLOT = (1 << SLOTS) - 1

_EDGES_BACKWARD = "CREATE INDEX IF NOT EXISTS edges_backward ON edges (target, label)"


# Files


def put(connection: Connection, read: FileRecord, *, others: bool) -> set[str]:
    """Store what was read from a file. With `others`, returns the names whose meaning changed."""
    size, mtime, ctime, inode = read.stamps
    if read.state == "same":
        connection.execute(
            "UPDATE files SET size = ?, mtime_ns = ?, ctime_ns = ?, inode = ?, settled = ?"
            " WHERE id = ?",
            (size, mtime, ctime, inode, read.settled, read.file_id),
        )
        return set()
    if read.words:
        postings.put(connection, postings.FILES, read.file_id, read.role, read.words)
    before = _stored_file(connection, read.file_id)
    connection.execute(
        "UPDATE files SET language = ?, size = ?, mtime_ns = ?, ctime_ns = ?, inode = ?,"
        " settled = ?, hash = ?, lines = ?, reader = ?, skipped = ?, problems = ?, resolved = ?"
        " WHERE id = ?",
        (
            read.language, size, mtime, ctime, inode, read.settled, read.hash or None, read.lines,
            read.reader, read.skipped, read.problems, read.state != "read", read.file_id,
        ),
    )  # fmt: skip
    if read.state != "read":
        return _forget(connection, read.file_id, before) if before else set()
    if before is None:
        _insert(connection, read, range(len(read.rows)), None)
        return set(facts.offers(facts.decode(read.facts))) if others else set()
    return _replace(connection, read, *before)


def remove(connection: Connection, file_id: int) -> set[str]:
    """Remove a file, and return the names it offered."""
    before = _stored_file(connection, file_id)
    names = _forget(connection, file_id, before) if before else set()
    connection.execute("DELETE FROM files WHERE id = ?", (file_id,))
    postings.remove(connection, postings.FILES, [file_id])
    return names


_Known = tuple[Facts, Sequence[int]]


def _stored_file(connection: Connection, file_id: int) -> _Known | None:
    """What is stored for a file, and the slot of each of its items."""
    row = connection.execute(
        "SELECT slots, facts FROM facts WHERE file_id = ?", (file_id,)
    ).fetchone()
    if row is None:
        return None
    known = facts.decode(row[1])
    return known, array("H", row[0]) if row[0] else range(len(known.items))


def _span(file_id: int) -> tuple[int, int]:
    """The first and the last id that an item of a file can have."""
    return item_id(file_id, 0), item_id(file_id, LARGEST_SLOT)


def _forget(connection: Connection, file_id: int, before: _Known) -> set[str]:
    span = _span(file_id)
    connection.execute("DELETE FROM items WHERE id BETWEEN ? AND ?", span)
    connection.execute("DELETE FROM edges WHERE source BETWEEN ? AND ?", span)
    _remove_edges(connection, *span)
    for table in ("facts", "mentioned"):
        connection.execute(f"DELETE FROM {table} WHERE file_id = ?", (file_id,))
    return set(facts.offers(before[0]))


def _replace(
    connection: Connection, read: FileRecord, old: Facts, old_slots: Sequence[int]
) -> set[str]:
    """Store a changed file. Items that still exist keep their slots, so edges to them stay
    valid."""
    new = facts.decode(read.facts)
    slots, gone = _slots(old, old_slots, new)
    file_id = read.file_id
    connection.execute("DELETE FROM items WHERE id BETWEEN ? AND ?", _span(file_id))
    for slot in gone:
        _remove_edges(connection, item_id(file_id, slot), item_id(file_id, slot))
    is_plain = all(slot == place for place, slot in enumerate(slots))
    _insert(connection, read, slots, None if is_plain else array("H", slots).tobytes())
    offered, offers = facts.offers(old), facts.offers(new)
    return {
        name for name in offered.keys() | offers.keys() if offered.get(name) != offers.get(name)
    }


def _remove_edges(connection: Connection, first: int, last: int) -> None:
    """Remove the edges to items that are gone, and mark the files they came from as pending."""
    span = (first, last)
    connection.execute(
        "UPDATE files SET resolved = 0 WHERE id IN"
        " (SELECT source >> 16 FROM edges WHERE target BETWEEN ? AND ?)",
        span,
    )
    connection.execute("DELETE FROM edges WHERE target BETWEEN ? AND ?", span)


def _slots(old: Facts, old_slots: Sequence[int], new: Facts) -> tuple[list[int], list[int]]:
    """The slot of each new item, and the slots that became free."""
    free: dict[tuple[object, ...], list[int]] = {}
    for key, slot in zip(_identities(old), old_slots, strict=True):
        free.setdefault(key, []).append(slot)
    unused = max(old_slots, default=-1) + 1
    slots = []
    for key in _identities(new):
        kept = free.get(key)
        if kept:
            slots.append(kept.pop(0))
        else:
            slots.append(unused)
            unused += 1
    gone = [slot for kept in free.values() for slot in kept]
    if unused > LARGEST_SLOT:
        # So much has changed that the slots are used up: start over.
        return list(range(len(new.items))), list(old_slots)
    return slots, gone


def _identities(known: Facts) -> Iterator[tuple[object, ...]]:
    """What identifies an item: its kind, its name, and those of the items around it."""
    keys: list[tuple[object, ...]] = []
    for item in known.items:
        around = keys[item.parent] if item.parent > 0 else ()
        # The file itself stays the same item, whatever its name.
        keys.append((item.kind, item.name if item.parent >= 0 else "", around))
    yield from keys


def _insert(
    connection: Connection, read: FileRecord, slots: Sequence[int], packed: bytes | None
) -> None:
    first = read.file_id << SLOTS
    connection.executemany(
        "INSERT INTO items VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                first | slot,
                None if row[2] < 0 else first | slots[row[2]],
                row[0],
                row[1],
                *row[3:],
            )
            for slot, row in zip(slots, read.rows, strict=True)
        ],
    )
    connection.execute(
        "INSERT OR REPLACE INTO facts VALUES (?, ?, ?, NULL)", (read.file_id, packed, read.facts)
    )
    connection.execute(
        "INSERT OR REPLACE INTO mentioned VALUES (?, ?, ?)",
        (read.file_id, read.hashes, read.mentions),
    )


# Packages


def put_packages(connection: Connection, workspace: PackageWorkspace) -> None:
    """Store the packages from the manifests in place of the previous ones."""
    connection.execute("DELETE FROM packages")
    connection.execute("DELETE FROM dependencies")
    connection.executemany(
        "INSERT OR REPLACE INTO packages VALUES (?, ?, ?, ?, ?, ?)",
        [
            (
                package.manifest,
                package.name,
                package.ecosystem,
                package.version,
                package.root,
                json.dumps(package.targets, ensure_ascii=False),
            )
            for package in workspace.packages
        ],
    )
    connection.executemany(
        "INSERT OR REPLACE INTO dependencies VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
            (
                dependency.from_, dependency.to, dependency.kind, dependency.optional,
                " ".join(dependency.features), dependency.requirement, dependency.manifest,
            )
            for dependency in workspace.dependencies
        ],
    )  # fmt: skip


# Edges


def put_edges(connection: Connection, resolved: ResolvedEdges) -> None:
    """Store the edges from a file in place of the previous ones."""
    file_id = resolved.file_id
    connection.execute("DELETE FROM edges WHERE source BETWEEN ? AND ?", _span(file_id))
    numbers = array("q", resolved.edges)
    rows = zip(*(numbers[field::FIELDS] for field in range(FIELDS)), strict=True)
    connection.executemany("INSERT INTO edges VALUES (?, ?, ?, ?, ?, ?)", rows)
    connection.execute(
        "UPDATE facts SET targets = ? WHERE file_id = ?", (resolved.targets, file_id)
    )
    connection.execute("UPDATE files SET resolved = 1 WHERE id = ?", (file_id,))


def index_backward(connection: Connection) -> None:
    """Create the index of edges by target. In a new database it comes after all edges."""
    connection.execute(_EDGES_BACKWARD)


def mark_unresolved(connection: Connection, files: Iterable[int]) -> None:
    connection.executemany(
        "UPDATE files SET resolved = 0 WHERE id = ?", [(file_id,) for file_id in files]
    )


def mark_all_unresolved(connection: Connection) -> None:
    connection.execute("UPDATE files SET resolved = 0 WHERE skipped IS NULL")


def facts_of(connection: Connection, files: Iterable[int]) -> Iterator[tuple[str, Facts]]:
    """The facts of files, each with its path."""
    for file_id in files:
        row = connection.execute(
            "SELECT path, facts FROM facts JOIN files ON id = file_id WHERE file_id = ?", (file_id,)
        ).fetchone()
        if row:
            yield row[0], facts.decode(row[1])


def files_mentioning(connection: Connection, hashes: set[int]) -> Iterator[tuple[int, bool]]:
    """The files that mention any of these names, and whether something in them may be derived from
    one."""
    for file_id, packed in connection.execute("SELECT file_id, hashes FROM mentioned"):
        numbers = array("I", packed)
        if not hashes.isdisjoint(numbers):
            yield file_id, not hashes.isdisjoint(numbers[1 : 1 + numbers[0]])
