"""Trees: paths to blobs, folder by folder, so that an unchanged folder is stored once."""

from collections.abc import Iterator, Mapping, Sequence

from ctx.errors import BudgetExceeded, DeserializationFailed, ObjectNotFound
from ctx.ids import ObjectId
from ctx.objects.model import Commit, Tree, TreeEntry, TreeEntryKind
from ctx.objects.store import Object, Reader, read_typed, typed

EMPTY = typed(Tree(()))

# A few small trees that name each other many times over could unfold to billions of paths.
MOST_PATHS = 2_000_000


def paths(reader: Reader, root: ObjectId) -> Iterator[tuple[str, ObjectId]]:
    """Every file in a tree with its blob, in order."""
    stack: list[tuple[str, ObjectId]] = [("", root)]
    seen = 0
    while stack:
        prefix, id = stack.pop()
        inner = []
        entries = _read(reader, id).entries
        seen += len(entries)
        if seen > MOST_PATHS:
            raise BudgetExceeded(f"Tree {root} has more than {MOST_PATHS:,} entries.")
        for entry in entries:
            if entry.kind is TreeEntryKind.TREE:
                inner.append((f"{prefix}{entry.name}/", entry.id))
            else:
                yield prefix + entry.name, entry.id
        stack.extend(reversed(inner))


def find(reader: Reader, root: ObjectId, path: str) -> ObjectId | None:
    """The blob at a path, or None."""
    id: ObjectId | None = root
    *folders, name = path.split("/")
    for folder in folders:
        id = _child(reader, id, folder, TreeEntryKind.TREE)
        if id is None:
            return None
    return _child(reader, id, name, TreeEntryKind.BLOB)


def updated(
    reader: Reader, root: ObjectId | None, changes: Mapping[str, ObjectId]
) -> tuple[ObjectId, list[Object]]:
    """A tree with some paths changed: its root, and the objects that are new.

    `None` stands for the tree that has nothing in it yet. Only the folders on the way to a
    changed path are read and written.
    """
    made: list[Object] = []

    def rebuild(id: ObjectId | None, inside: Mapping[str, ObjectId]) -> ObjectId:
        entries = {entry.name: entry for entry in _read(reader, id).entries} if id else {}
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


def merged(reader: Reader, heads: Sequence[tuple[ObjectId, Commit]]) -> Mapping[str, ObjectId]:
    """What must change in the first head's tree to hold what all the heads hold.

    Where heads disagree on a path, the content that came into its history last wins.
    """
    (_, first), *others = heads
    if not others:
        return {}
    base = dict(paths(reader, first.root_tree))
    changes: dict[str, ObjectId] = {}
    for _, commit in others:
        if commit.root_tree == first.root_tree:
            continue
        for path, blob in paths(reader, commit.root_tree):
            present = changes.get(path, base.get(path))
            if present is None:
                changes[path] = blob
            elif present != blob:
                rivals = [(head, c) for head, c in heads if find(reader, c.root_tree, path)]
                changes[path] = max(_arrival(reader, *rival, path) for rival in rivals)[2]
    return {path: blob for path, blob in changes.items() if base.get(path) != blob}


def _arrival(
    reader: Reader, id: ObjectId, commit: Commit, path: str
) -> tuple[int, ObjectId, ObjectId]:
    """When, and with which commit, a head's content of a path came into its history."""
    blob = find(reader, commit.root_tree, path)
    assert blob is not None
    while True:
        for parent in commit.parents:
            try:
                earlier = read_typed(reader, parent, Commit)
            except ObjectNotFound:
                continue
            if find(reader, earlier.root_tree, path) == blob:
                id, commit = parent, earlier
                break
        else:
            return commit.timestamp_unix, id, blob


def _child(reader: Reader, id: ObjectId | None, name: str, kind: TreeEntryKind) -> ObjectId | None:
    if id is None:
        return None
    for entry in _read(reader, id).entries:
        if entry.name == name and entry.kind is kind:
            return entry.id
    return None


def _read(reader: Reader, id: ObjectId) -> Tree:
    tree = read_typed(reader, id, Tree)
    for entry in tree.entries:
        # A stranger's tree could name a way out of the folder it describes.
        if not entry.name or "/" in entry.name or entry.name in (".", ".."):
            raise DeserializationFailed(f"Tree {id} has an entry named {entry.name!r}.")
    return tree
