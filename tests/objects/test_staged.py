"""Staged objects: a step is one file with many names; each object is checked on its own."""

import os
from pathlib import Path

import pytest

from ctx.errors import HashMismatch, InvalidEnvelope
from ctx.objects.loose_objects import LooseStore
from ctx.objects.object_store import blob
from ctx.objects.staged_objects import StagedStore
from tests.contract.object_stores import A, B, ObjectStoreContract

SEVERAL = [blob(f"{number}".encode() * 100) for number in range(6)]


class TestStagedStore(ObjectStoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> StagedStore:
        return StagedStore(str(tmp_path / "objects"))


@pytest.fixture
def store(tmp_path: Path) -> StagedStore:
    return StagedStore(str(tmp_path / "objects"))


def inodes(store: StagedStore) -> set[int]:
    return {os.stat(path).st_ino for path in store.files()}


def test_objects_written_together_share_one_file(store: StagedStore) -> None:
    assert store.write(SEVERAL) == 6
    assert len(inodes(store)) == 1
    assert set(store.ids()) == {each.id for each in SEVERAL}
    for each in SEVERAL:
        assert store.read(each.id) == each
        assert store.matching(each.id[:8]) == {each.id}
    # What is there already is not written again.
    assert store.write([*SEVERAL, A]) == 1
    os.unlink(f"{store.folder}/{SEVERAL[0].id}")
    assert store.read(SEVERAL[1].id) == SEVERAL[1]


@pytest.mark.parametrize("number", [20, 2], ids=["many", "large"])
def test_many_or_large_objects_have_separate_files(store: StagedStore, number: int) -> None:
    made = [blob(os.urandom(40_000)) for _ in range(number)]
    store.write(made)
    assert len(inodes(store)) == number
    assert [store.read(each.id) for each in made] == made


def test_folders_of_earlier_versions_are_read(store: StagedStore) -> None:
    LooseStore(store.folder).write([A])
    store.write([B])
    assert set(os.listdir(store.folder)) == {A.id[:2], B.id}
    assert store.read(A.id) == A
    assert A.id in store
    assert set(store.ids()) == {A.id, B.id}
    assert store.matching(A.id[:6]) == {A.id}


def test_damage_in_every_byte_of_an_object_is_detected(store: StagedStore) -> None:
    store.write(SEVERAL[:3])
    path = Path(store.folder, SEVERAL[0].id)
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        lost = 0
        for each in SEVERAL[:3]:
            try:
                assert store.read(each.id) == each
            except (HashMismatch, InvalidEnvelope):
                lost += 1
        assert lost
    path.write_bytes(whole + b"\0")
    with pytest.raises(HashMismatch):
        store.read(SEVERAL[0].id)
    # A damaged one is written anew.
    assert store.write(SEVERAL[:3])
    assert [store.read(each.id) for each in SEVERAL[:3]] == SEVERAL[:3]


def test_without_hard_links_objects_have_separate_files(
    store: StagedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    store.write(SEVERAL)
    assert len(inodes(store)) == 6
    assert [store.read(each.id) for each in SEVERAL] == SEVERAL
