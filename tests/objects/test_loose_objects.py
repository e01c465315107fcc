import os
import stat
import sys
from pathlib import Path

import pytest

from ctx.errors import HashMismatch, InvalidEnvelope, ObjectNotFound, ObjectTooLarge
from ctx.ids import ObjectId
from ctx.layout import project_at
from ctx.objects import loose_objects
from ctx.objects.loose_objects import LooseStore
from ctx.objects.object_store import LARGEST_TYPED, Kind, blob, from_payload, typed
from ctx.objects.object_types import Commit
from ctx.objects.repository import Repository
from ctx.objects.trees import EMPTY
from tests.contract.object_stores import A, B, ObjectStoreContract

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


class TestLooseStore(ObjectStoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> LooseStore:
        return LooseStore(str(tmp_path / "objects"))


@pytest.fixture
def store(tmp_path: Path) -> LooseStore:
    return LooseStore(str(tmp_path / "objects"))


def path_of(store: LooseStore, id: ObjectId) -> Path:
    return Path(store.folder) / id[:2] / id


def test_object_files_are_private_sharded_and_zstd_compressed(store: LooseStore) -> None:
    store.write([A])
    path = path_of(store, A.id)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert zstd.decompress(path.read_bytes()) == A.canonical
    assert A.canonical == b"CTXO1\x01" + (5).to_bytes(8, "little") + b"alpha"


@pytest.mark.parametrize("payload", [b"", b"a longer text, a longer text " * 40])
def test_every_flipped_bit_and_every_truncation_is_detected(
    store: LooseStore, payload: bytes
) -> None:
    item = blob(payload)
    store.write([item])
    path = path_of(store, item.id)
    whole = path.read_bytes()
    for position in range(len(whole)):
        for bit in range(8):
            path.write_bytes(
                whole[:position] + bytes([whole[position] ^ 1 << bit]) + whole[position + 1 :]
            )
            with pytest.raises((HashMismatch, InvalidEnvelope)):
                store.read(item.id)
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises((HashMismatch, InvalidEnvelope)):
            store.read(item.id)
    path.write_bytes(whole + b"\0")
    with pytest.raises((HashMismatch, InvalidEnvelope)):
        store.read(item.id)


def test_an_object_under_the_wrong_name_is_e002(store: LooseStore) -> None:
    store.write([A, B])
    path_of(store, A.id).write_bytes(path_of(store, B.id).read_bytes())
    with pytest.raises(HashMismatch, match="E002"):
        store.read(A.id)


def test_writing_repairs_a_damaged_object(store: LooseStore) -> None:
    with pytest.raises(ObjectNotFound):
        store.read(A.id)
    store.write([A])
    path_of(store, A.id).write_bytes(b"rubbish")
    assert store.write([A]) == 1
    assert store.read(A.id) == A


def test_a_small_file_cannot_decompress_to_a_huge_object(
    store: LooseStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loose_objects, "LARGEST_OBJECT", 1000)
    bomb = blob(b"\0" * 5000)
    store_folder = path_of(store, bomb.id)
    store_folder.parent.mkdir(parents=True)
    store_folder.write_bytes(store._seal(bomb.canonical))
    with pytest.raises(InvalidEnvelope, match="E003"):
        store.read(bomb.id)


def test_a_large_typed_object_is_read_only_if_it_was_written_here(
    store: LooseStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = from_payload(Kind.TYPED, b"x" * (LARGEST_TYPED + 1))
    largest = from_payload(Kind.TYPED, b"x" * LARGEST_TYPED)
    store.write([large, largest])
    assert store.read(largest.id) == largest
    with pytest.raises(ObjectTooLarge, match=f"{large.id} is too large: .*4,194,305 bytes"):
        store.read(large.id)
    assert not store.is_sound(large.id)
    monkeypatch.setattr(store, "_was_written_here", lambda id: id == large.id)
    assert store.read(large.id) == large


def test_what_a_commit_made_here_names_may_be_large(tmp_path: Path) -> None:
    repository = Repository(project_at(str(tmp_path)))
    batch, other = (from_payload(Kind.TYPED, bytes([at]) * LARGEST_TYPED * 2) for at in (1, 2))
    made = typed(Commit((), 1, "Made here", EMPTY.id, record_batches=(batch.id,)))
    repository.objects.write([batch, other, made])
    os.makedirs(repository.project.local)
    with pytest.raises(ObjectTooLarge):
        repository.objects.read(batch.id)
    repository.note_as_own([made.id])
    # A replacement of what was made here was not made here.
    repository.replaced.note([(made.id, other.id)])
    repository = Repository(repository.project)
    assert repository.objects.read(batch.id) == batch
    for id in (other.id, made.id):
        with pytest.raises(ObjectTooLarge):
            repository.objects.read(id)


def test_a_walk_checks_blobs_without_keeping_them(store: LooseStore) -> None:
    large = blob(b"x" * (LARGEST_TYPED + 3 * 1024**2))
    store.write([large, A])
    skimming = store.skimming()
    assert skimming.read(large.id) == large._replace(payload=b"")
    assert skimming.read(A.id).payload == b""
    assert store.read(large.id) == large
    path = path_of(store, large.id)
    path.write_bytes(store._seal(large.canonical[:-1] + b"y"))
    with pytest.raises(HashMismatch):
        skimming.read(large.id)


def test_a_second_copy_is_read_if_the_first_is_gone(store: LooseStore) -> None:
    store.write([A])
    store.write_again([A])
    assert len(list(store.files())) == 2
    assert list(store.ids()) == [A.id]
    path_of(store, A.id).unlink()
    assert store.read(A.id) == A
    assert A.id in store
    assert store.write([A]) == 1
    path_of(store, A.id).write_bytes(b"rubbish")
    assert store.read(A.id) == A


def test_stray_files_are_not_objects(store: LooseStore) -> None:
    store.write([A])
    shard = path_of(store, A.id).parent
    (shard / f"{A.id}.123-4.tmp").write_bytes(b"half")
    (shard / "notes.txt").write_bytes(b"")
    (Path(store.folder) / "zz").mkdir()
    (Path(store.folder) / "zz" / A.id).write_bytes(b"")
    (Path(store.folder) / "README").write_bytes(b"")
    assert list(store.ids()) == [A.id]
    assert len(list(store.everything())) == 5
    assert (store.matching(A.id[:6]), store.matching("ffff")) == ({A.id}, set())


def test_an_unreadable_object_is_an_error_with_a_reason(store: LooseStore) -> None:
    store.write([A])
    path = path_of(store, A.id)
    path.unlink()
    path.mkdir()
    with pytest.raises(InvalidEnvelope, match="not a plain file"):
        store.read(A.id)
