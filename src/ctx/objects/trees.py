"""Trees: paths to blobs, folder by folder, so that an unchanged folder is stored once."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import pairwise
from typing import NamedTuple

from ctx.errors import BudgetExceeded, DeserializationFailed, ObjectNotFound
from ctx.ids import ObjectId
from ctx.objects import commits
from ctx.objects.commits import Head
from ctx.objects.object_store import Object, Reader, read_typed, typed
from ctx.objects.object_types import Commit, Tree, TreeEntry, TreeEntryKind

EMPTY = typed(Tree(()))

# A few small trees that refer to each other could expand to billions of paths.
MOST_PATHS = 2_000_000
_MOST_FOLDERS = 200_000
_USUAL_LENGTH = 256

DEEPEST = 200
"""The deepest nesting of folders. Deeper content of an untrusted tree is left out: real projects
have none, and following it would overflow the stack."""


def paths(reader: Reader, root: ObjectId) -> Iterator[tuple[str, ObjectId]]:
    """Every file in a tree with its blob, in order."""
    entries_of = cache(partial(_read, reader))
    stack: list[tuple[str, ObjectId]] = [("", root)]
    cost = 0
    while stack:
        prefix, id = stack.pop()
        inner = []
        entries = entries_of(id)
        cost += _cost(prefix, entries)
        if cost > MOST_PATHS:
            raise BudgetExceeded(f"Tree {root} has more than {MOST_PATHS:,} entries.")
        for entry in entries:
            if entry.kind is TreeEntryKind.TREE:
                inner.append((f"{prefix}{entry.name}/", entry.id))
            else:
                yield prefix + entry.name, entry.id
        if prefix.count("/") < DEEPEST:
            stack.extend(reversed(inner))


class Lookup:
    """Finds paths in one tree, reading each folder at most once. Without a root: nothing."""

    def __init__(self, reader: Reader, root: ObjectId | None) -> None:
        self._reader = reader
        self._root = root
        self._folders: dict[str, dict[str, TreeEntry]] = {}

    def blob_at(self, path: str) -> ObjectId | None:
        if is_too_deep(path):
            return None
        folder, _, name = path.rpartition("/")
        entry = self._entries(folder).get(name)
        return entry.id if entry and entry.kind is TreeEntryKind.BLOB else None

    def _entries(self, folder: str) -> dict[str, TreeEntry]:
        if folder not in self._folders:
            id = self._root
            if folder:
                above, _, name = folder.rpartition("/")
                entry = self._entries(above).get(name)
                id = entry.id if entry and entry.kind is TreeEntryKind.TREE else None
            entries = _read(self._reader, id) if id else ()
            self._folders[folder] = {entry.name: entry for entry in entries}
        return self._folders[folder]


class CombinedTree:
    """The combined content of several heads. With one head, not all of it is read."""

    def __init__(self, reader: Reader, heads: Sequence[Head]) -> None:
        self._reader = reader
        self.first = heads[0].commit.root_tree if heads else None
        """The tree to which `missing_in_first` applies; None without a head."""
        self._joined = combined_paths(reader, heads) if len(heads) > 1 else None
        self._lookup = Lookup(reader, self.first)

    def blob_at(self, path: str) -> ObjectId | None:
        if self._joined is not None:
            return self._joined.get(path)
        return self._lookup.blob_at(path)

    def missing_in_first(self) -> Mapping[str, ObjectId]:
        """The changes that the tree of the first head needs to contain the content of all heads."""
        if self._joined is None or self.first is None:
            return {}
        alone = dict(paths(self._reader, self.first))
        return {path: blob for path, blob in self._joined.items() if alone.get(path) != blob}


def update_tree(
    reader: Reader, root: ObjectId | None, changes: Mapping[str, ObjectId]
) -> tuple[ObjectId, list[Object]]:
    """A tree with some paths changed: its root, and the new objects.

    `None` stands for an empty tree. Only the folders above a changed path are read and written.
    """
    made: list[Object] = []

    def rebuild(id: ObjectId | None, inside: Mapping[str, ObjectId]) -> ObjectId:
        entries = {entry.name: entry for entry in _read(reader, id)} if id else {}
        folders: dict[str, dict[str, ObjectId]] = {}
        for path, blob in inside.items():
            name, slash, rest = path.partition("/")
            if slash:
                folders.setdefault(name, {})[rest] = blob
            else:
                entries[name] = TreeEntry(name, TreeEntryKind.BLOB, blob)
        for name, deeper in folders.items():
            old = entries.get(name)
            below = old.id if old and old.kind is TreeEntryKind.TREE else None
            entries[name] = TreeEntry(name, TreeEntryKind.TREE, rebuild(below, deeper))
        tree = typed(Tree(tuple(entries[name] for name in sorted(entries))))
        made.append(tree)
        return tree.id

    if changes:
        return rebuild(root, changes), made
    return (root, []) if root else (EMPTY.id, [EMPTY])


def differing_paths(reader: Reader, before: ObjectId | None, after: ObjectId) -> set[str]:
    """The paths at which two trees differ. Equal folders are not read."""
    entries_of = cache(partial(_read, reader))
    changed: set[str] = set()
    waiting: list[tuple[str, ObjectId | None, ObjectId | None]] = [("", before, after)]
    cost = 0
    while waiting:
        prefix, *both = waiting.pop()
        sides = [{entry.name: entry for entry in entries_of(id)} if id else {} for id in both]
        cost += sum(_cost(prefix, side.values()) for side in sides)
        if cost > MOST_PATHS:
            raise BudgetExceeded(f"Two trees have more than {MOST_PATHS:,} entries.")
        for name in {**sides[0], **sides[1]}:
            old, new = (side.get(name) for side in sides)
            if old == new:
                continue
            inner = [e.id if e and e.kind is TreeEntryKind.TREE else None for e in (old, new)]
            if any(inner) and prefix.count("/") < DEEPEST:
                waiting.append((f"{prefix}{name}/", inner[0], inner[1]))
            if any(entry and entry.kind is TreeEntryKind.BLOB for entry in (old, new)):
                changed.add(prefix + name)
    return changed


def new_objects(reader: Reader, before: ObjectId | None, after: ObjectId) -> Iterator[ObjectId]:
    """The folders and files of a tree, except those that are equal in another tree. Equal folders
    are not read."""
    if before == after:
        return
    yield after
    entries_of = cache(partial(_read, reader))
    waiting: list[tuple[int, ObjectId | None, ObjectId]] = [(0, before, after)]
    cost = 0
    while waiting:
        depth, old_id, id = waiting.pop()
        old = {entry.name: entry for entry in entries_of(old_id)} if old_id else {}
        entries = entries_of(id)
        cost += _cost("", entries)
        if cost > MOST_PATHS:
            raise BudgetExceeded(f"Tree {after} has more than {MOST_PATHS:,} entries.")
        for entry in entries:
            same = old.get(entry.name)
            if same == entry:
                continue
            yield entry.id
            if entry.kind is TreeEntryKind.TREE and depth < DEEPEST:
                below = same.id if same and same.kind is TreeEntryKind.TREE else None
                waiting.append((depth + 1, below, entry.id))


def combined_paths(reader: Reader, heads: Sequence[Head]) -> dict[str, ObjectId]:
    """The combined content of all heads, by path.

    If heads disagree, the content that was committed last wins. If a name is a file in one head and
    a folder in another, the folder wins, because it contains more.
    """
    blobs_at: dict[str, set[ObjectId]] = {}
    roots = {commit.root_tree for _, commit in heads}
    every = ((path, blob) for root in roots for path, blob in paths(reader, root))
    for number, (path, blob) in enumerate(every):
        if number >= MOST_PATHS:
            raise BudgetExceeded(f"The heads have more than {MOST_PATHS:,} paths.")
        blobs_at.setdefault(path, set()).add(blob)
    folders = {folder for path in blobs_at for folder in folders_above(path)}
    together = {path: blobs for path, blobs in blobs_at.items() if path not in folders}
    disputed = {path for path, blobs in together.items() if len(blobs) > 1}
    arrivals: dict[str, set[Arrival]] = {path: set() for path in disputed}
    for head in heads if disputed else ():
        for path, arrival in _arrivals(reader, head, disputed).items():
            arrivals[path].add(arrival)
    return {
        path: _last(reader, arrivals[path]).blob if path in disputed else next(iter(blobs))
        for path, blobs in together.items()
    }


class Arrival(NamedTuple):
    """When, and with which commit, a content was added to a history."""

    time: int
    commit: ObjectId
    blob: ObjectId


def _last(reader: Reader, arrivals: set[Arrival]) -> Arrival:
    """The latest. Within one second, a commit comes after its ancestors."""
    latest = max(arrival.time for arrival in arrivals)
    rivals = {arrival for arrival in arrivals if arrival.time == latest}
    if len(rivals) > 1:
        ids = {arrival.commit for arrival in rivals}
        newest = commits.newest(reader, ids)
        rivals = {arrival for arrival in rivals if arrival.commit in newest}
    return max(rivals)


def overlay_paths(
    below: Mapping[str, ObjectId], above: Mapping[str, ObjectId]
) -> dict[str, ObjectId]:
    """Combine paths: a file replaces a folder of its name, and a folder replaces a file."""
    folders = {folder for path in above for folder in folders_above(path)}
    kept = {
        path: blob
        for path, blob in below.items()
        if path not in folders and above.keys().isdisjoint(folders_above(path))
    }
    return {**kept, **above}


def is_too_deep(path: str) -> bool:
    return path.count("/") > DEEPEST


def folders_above(path: str) -> list[str]:
    """`a` and `a/b` for `a/b/c`."""
    return [path[:end] for end in range(len(path)) if path[end] == "/"]


def _arrivals(reader: Reader, head: Head, disputed: set[str]) -> dict[str, Arrival]:
    """How a head's content of some paths was added to its history."""
    here = Lookup(reader, head.commit.root_tree)
    contents = {path: here.blob_at(path) for path in disputed}
    arrivals: dict[str, Arrival] = {}
    stack = [(*head, {path for path, blob in contents.items() if blob is not None})]
    while stack:
        id, commit, waiting = stack.pop()
        for parent in commit.parents:
            try:
                earlier = read_typed(reader, parent, Commit)
            except ObjectNotFound:
                continue
            there = Lookup(reader, earlier.root_tree)
            same_root = earlier.root_tree == commit.root_tree
            older = {p for p in waiting if same_root or there.blob_at(p) == contents[p]}
            if older:
                stack.append((parent, earlier, older))
                waiting -= older
        for path in waiting:
            blob = contents[path]
            assert blob is not None
            arrivals[path] = Arrival(commit.timestamp_unix, id, blob)
    return arrivals


def _cost(prefix: str, entries: Iterable[TreeEntry]) -> int:
    """What a folder counts towards `MOST_PATHS`: long paths take memory, folders take time."""
    every = (1 + (len(prefix) + len(entry.name)) // _USUAL_LENGTH for entry in entries)
    return max(sum(every), MOST_PATHS // _MOST_FOLDERS)


def _read(reader: Reader, id: ObjectId) -> tuple[TreeEntry, ...]:
    """The entries of a tree, or nothing if the tree is missing.

    After a cherry-pick or a revert, a commit may refer to content from a commit beyond the
    boundary. `verify` distinguishes that from damage.
    """
    try:
        entries = read_typed(reader, id, Tree).entries
    except ObjectNotFound:
        return ()
    names = [entry.name for entry in entries]
    for name in names:
        # An untrusted tree could contain a path that leads out of its folder.
        if not name or "/" in name or name in (".", ".."):
            raise DeserializationFailed(f"Tree {id} has an entry named {name!r}.")
    if any(one >= two for one, two in pairwise(names)):
        raise DeserializationFailed(f"The entries of tree {id} are not in order.")
    return entries
