"""The contract of every object store. An implementation runs it in a subclass."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctx.errors import ObjectNotFound
from ctx.objects.object_store import Kind, ObjectStore, blob, decode, typed
from ctx.objects.object_types import Tree
from tests import effort

A = blob(b"alpha")
B = blob(b"beta")


class ObjectStoreContract:
    @pytest.fixture
    def store(self) -> ObjectStore:
        raise AssertionError("a subclass gives the store")

    def test_a_written_object_is_read_back(self, store: ObjectStore) -> None:
        assert store.write([A, B]) == 2
        assert store.read(A.id) == A
        assert store.read(B.id).payload == b"beta"

    def test_writes_the_same_object_once(self, store: ObjectStore) -> None:
        assert store.write([A, A]) == 1
        assert store.write([A, B]) == 1
        assert list(store.ids()) == sorted([A.id, B.id])

    def test_it_reports_which_objects_it_contains(self, store: ObjectStore) -> None:
        assert A.id not in store
        store.write([A])
        assert A.id in store
        assert B.id not in store

    def test_a_missing_object_is_e001(self, store: ObjectStore) -> None:
        with pytest.raises(ObjectNotFound, match=f"E001: Object {A.id} does not exist"):
            store.read(A.id)

    def test_a_blob_and_a_typed_object_of_the_same_bytes_differ(self, store: ObjectStore) -> None:
        tree = typed(Tree(()))
        same_bytes = blob(tree.payload)
        store.write([tree, same_bytes])
        assert tree.id != same_bytes.id
        assert store.read(tree.id).kind is Kind.TYPED
        assert store.read(same_bytes.id).kind is Kind.BLOB
        assert decode(store.read(tree.id)) == Tree(())
        assert decode(store.read(same_bytes.id)) is None

    def test_a_new_store_is_empty(self, store: ObjectStore) -> None:
        assert list(store.ids()) == []
        assert store.write([]) == 0

    def test_large_and_empty_objects_are_kept(self, store: ObjectStore) -> None:
        objects = [blob(b""), blob(b"x" * 3_000_000), blob(bytes(range(256)) * 5000)]
        store.write(objects)
        assert [store.read(item.id) for item in objects] == objects

    def test_any_bytes_are_read_back(self, store: ObjectStore) -> None:
        @settings(max_examples=effort.times(60), deadline=None)
        @given(st.lists(st.binary(max_size=2000), max_size=8))
        def check(payloads: list[bytes]) -> None:
            objects = [blob(payload) for payload in payloads]
            store.write(objects)
            assert [store.read(item.id).payload for item in objects] == payloads

        check()
