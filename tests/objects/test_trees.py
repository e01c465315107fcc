from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctx.errors import DeserializationFailed
from ctx.ids import ObjectId
from ctx.objects import trees
from ctx.objects.commits import Head
from ctx.objects.in_memory import InMemoryStore
from ctx.objects.object_store import blob, typed
from ctx.objects.object_types import Commit, Tree, TreeEntry, TreeEntryKind
from tests import effort

NAMES = st.sampled_from(["a", "b", "c"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
BLOBS = [blob(bytes([number])) for number in range(4)]
CHANGES = st.dictionaries(PATHS, st.sampled_from([item.id for item in BLOBS]), max_size=4).filter(
    lambda changes: not any(one.startswith(f"{two}/") for one in changes for two in changes)
)


def store() -> InMemoryStore:
    made = InMemoryStore()
    made.write([*BLOBS, trees.EMPTY])
    return made


def put(files: dict[str, ObjectId], path: str, content: ObjectId) -> None:
    """Write as a file system would: a file replaces a folder, and a folder a file."""
    for other in list(files):
        if other.startswith(f"{path}/") or path.startswith(f"{other}/"):
            del files[other]
    files[path] = content


@settings(deadline=None, max_examples=effort.times(30))
@given(st.lists(CHANGES, max_size=5))
def test_a_tree_is_a_map_of_paths(steps: list[dict[str, ObjectId]]) -> None:
    reader = store()
    root: ObjectId | None = None
    files: dict[str, ObjectId] = {}
    for changes in steps:
        root, made = trees.update_tree(reader, root, changes)
        reader.write(made)
        for path, content in changes.items():
            put(files, path, content)
        found = dict(trees.paths(reader, root))
        assert found == files
        lookup = trees.Lookup(reader, root)
        assert all(lookup.blob_at(path) == content for path, content in files.items())
        assert lookup.blob_at("no/such/path") is None


@settings(deadline=None)
@given(st.dictionaries(PATHS, st.sampled_from([item.id for item in BLOBS]), max_size=4))
def test_the_same_files_give_the_same_tree(files: dict[str, ObjectId]) -> None:
    apart = {
        path: content
        for path, content in files.items()
        if not any(path.startswith(f"{other}/") for other in files)
    }
    reader = store()
    at_once, made = trees.update_tree(reader, None, apart)
    reader.write(made)
    root: ObjectId | None = None
    for path in sorted(apart, reverse=True):
        root, made = trees.update_tree(reader, root, {path: apart[path]})
        reader.write(made)
    assert (root or trees.EMPTY.id) == at_once


@settings(deadline=None)
@given(CHANGES, CHANGES)
def test_fresh_objects_are_those_that_the_other_tree_lacks(
    old: dict[str, ObjectId], new: dict[str, ObjectId]
) -> None:
    reader = store()
    before, made = trees.update_tree(reader, None, old)
    reader.write(made)
    after, made_after = trees.update_tree(reader, None, new)
    reader.write(made_after)
    found = set(trees.new_objects(reader, before, after))
    everything = {tree.id for tree in made_after} | set(new.values())
    both = {tree.id for tree in made} | set(old.values())
    assert everything - both <= found <= everything
    assert set(trees.new_objects(reader, None, after)) == everything
    assert not list(trees.new_objects(reader, after, after))


@settings(deadline=None, max_examples=effort.times(30))
@given(st.lists(st.tuples(CHANGES, st.integers(1, 3)), min_size=2, max_size=3), CHANGES)
def test_heads_are_merged_to_the_same_tree_in_any_order(
    branches: list[tuple[dict[str, ObjectId], int]], base: dict[str, ObjectId]
) -> None:
    reader = store()
    root, made = trees.update_tree(reader, None, base)
    first = typed(Commit((), 0, "base", root))
    reader.write([*made, first])
    heads = []
    for number, (changes, time) in enumerate(branches):
        branch_root, made = trees.update_tree(reader, root, changes)
        commit = Commit((first.id,), time, f"branch {number}", branch_root)
        reader.write([*made, typed(commit)])
        heads.append(Head(typed(commit).id, commit))
    together = trees.combined_paths(reader, heads)
    for order in permutations(heads):
        missing = trees.CombinedTree(reader, order).missing_in_first()
        new_root, made = trees.update_tree(reader, order[0][1].root_tree, missing)
        reader.write(made)
        assert dict(trees.paths(reader, new_root)) == together
    for path, content in together.items():
        found = {trees.Lookup(reader, head.commit.root_tree).blob_at(path) for head in heads}
        assert content in found


def test_a_change_on_one_side_wins_over_an_unchanged_file() -> None:
    reader = store()
    old, new = BLOBS[0].id, BLOBS[1].id
    root, made = trees.update_tree(reader, None, {"f": old})
    base = typed(Commit((), 100, "base", root))
    reader.write([*made, base])
    changed_root, changed_trees = trees.update_tree(reader, root, {"f": new})
    changed = Commit((base.id,), 110, "changed", changed_root)
    other_root, other_trees = trees.update_tree(reader, root, {"g": old})
    # Made later, but it did not touch the file.
    other = Commit((base.id,), 120, "other", other_root)
    reader.write([*changed_trees, *other_trees, typed(changed), typed(other)])
    heads = [Head(typed(other).id, other), Head(typed(changed).id, changed)]
    assert trees.CombinedTree(reader, heads).missing_in_first() == {"f": new}


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/"])
def test_an_entry_with_a_path_separator_is_e004(name: str) -> None:
    reader = store()
    tree = typed(Tree((TreeEntry(name, TreeEntryKind.BLOB, BLOBS[0].id),)))
    reader.write([tree])
    with pytest.raises(DeserializationFailed):
        list(trees.paths(reader, tree.id))


def test_folders_below_the_depth_limit_are_left_out() -> None:
    reader = store()
    below = BLOBS[0].id
    kind = TreeEntryKind.BLOB
    for _ in range(3_000):
        tree = typed(Tree((TreeEntry("d", kind, below),)))
        reader.write([tree])
        below, kind = tree.id, TreeEntryKind.TREE
    deep = Commit((), 100, "deep", below)
    root, made = trees.update_tree(reader, None, {"f": BLOBS[0].id, "d/e": BLOBS[1].id})
    plain = Commit((), 110, "plain", root)
    reader.write([*made, typed(deep), typed(plain)])
    heads = [Head(typed(deep).id, deep), Head(typed(plain).id, plain)]
    assert trees.combined_paths(reader, heads) == {"f": BLOBS[0].id, "d/e": BLOBS[1].id}
    assert trees.differing_paths(reader, root, below) == {"f", "d/e"}
    assert trees.Lookup(reader, below).blob_at("/".join("d" * 3_000)) is None
    for order in permutations(heads):
        present = trees.CombinedTree(reader, order)
        joined, made = trees.update_tree(reader, present.first, present.missing_in_first())
        reader.write(made)
        assert dict(trees.paths(reader, joined)) == {"f": BLOBS[0].id, "d/e": BLOBS[1].id}


def test_the_deepest_path_that_can_be_added_is_kept() -> None:
    reader = store()
    path = "d/" * trees.DEEPEST + "f"
    root, made = trees.update_tree(reader, None, {path: BLOBS[0].id})
    reader.write(made)
    assert dict(trees.paths(reader, root)) == {path: BLOBS[0].id}
    assert trees.Lookup(reader, root).blob_at(path) == BLOBS[0].id
    assert trees.differing_paths(reader, None, root) == {path}
