import pytest

from ctx.errors import HashMismatch
from ctx.objects.in_memory import InMemoryStore
from tests.contract.object_stores import A, B, ObjectStoreContract


class TestInMemoryStore(ObjectStoreContract):
    @pytest.fixture
    def store(self) -> InMemoryStore:
        return InMemoryStore()


def test_a_read_object_is_checked_against_its_hash() -> None:
    store = InMemoryStore()
    store.write([A])
    store.canonical[A.id] = B.canonical
    with pytest.raises(HashMismatch):
        store.read(A.id)
