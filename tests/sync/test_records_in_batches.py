"""Batches are applied once, scrubs reach every machine, and damage is named and left alone."""

import random
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import pytest

from ctx.errors import SyncFailure
from ctx.memory import record_versions, replicas
from ctx.memory.changes import changing
from ctx.memory.graph import Graph
from ctx.sync import batch_files, replicate, sync_batch
from ctx.sync.batch_files import BatchFile, Keys, OtherKey, UnreadableFile
from ctx.sync.replicate import Replication
from tests.memory.graphs import WHO, assert_sound, graph
from tests.sync.replicas_in_memory import KEYS, FolderCopy, Machine, exchange

CHANCE = random.Random(0)
GOLDEN = Path(__file__).parent.parent / "golden" / "sync"


@pytest.fixture
def two() -> Iterator[tuple[Machine, Machine]]:
    """Two machines with one shared folder."""
    with graph() as one, graph() as other:
        laptop, desktop = Machine(one, "laptop", 0), Machine(other, "desktop", 0)
        desktop.folder = laptop.folder
        yield laptop, desktop


def add(machine: Machine, content: str) -> None:
    with changing(machine.graph, "add", WHO) as change:
        change.tag(change.add_node("fact", content), "tier:reference")


def contents(graph: Graph) -> list[str]:
    return sorted(row[0] for row in graph.connection.execute("SELECT content FROM nodes"))


def plain_bytes(folder: FolderCopy) -> bytes:
    """Everything in the batches of a folder, decrypted."""
    batches = [batch_files.unseal(*file, KEYS) for file in folder.files.items()]
    return b"".join(batch.batch.records for batch in batches)


def test_a_second_sync_has_nothing_to_do(two: tuple[Machine, Machine]) -> None:
    laptop, desktop = two
    add(laptop, "One.")
    for machine in (laptop, desktop, laptop, desktop):
        machine.sync()
    before = dict(laptop.folder.files)
    for machine in (laptop, desktop):
        counts = Replication(
            machine.connection, "shared", machine.folder, KEYS, machine.replica
        ).run()
        assert counts == replicate.SyncCounts()
    assert laptop.folder.files == before
    assert laptop.state() == desktop.state()


def test_a_batch_that_vanished_is_sent_again(two: tuple[Machine, Machine]) -> None:
    laptop, desktop = two
    add(laptop, "One.")
    laptop.sync()
    desktop.sync()
    add(laptop, "Two.")
    laptop.sync()
    (last,) = laptop.folder.files.keys() - replicas.known_batches(
        desktop.connection, desktop.replica.id
    )
    del laptop.folder.files[last]
    laptop.sync()
    desktop.sync()
    assert contents(desktop.graph) == ["One.", "Two."]


def test_a_batch_of_a_newer_version_is_named_and_left_alone(
    two: tuple[Machine, Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    laptop, desktop = two
    add(laptop, "One.")
    with monkeypatch.context() as patch:
        patch.setattr(sync_batch, "_FORMAT", sync_batch._FORMAT + 1)
        laptop.sync()
    counts = Replication(
        desktop.connection, "shared", desktop.folder, KEYS, desktop.replica
    ).receive()
    assert {why for _, why in counts.unread} == {"a newer version of ctx wrote it"}
    assert contents(desktop.graph) == []


def test_an_empty_target_that_was_not_empty_is_refused(two: tuple[Machine, Machine]) -> None:
    laptop, _ = two
    add(laptop, "One.")
    laptop.sync()
    laptop.folder.files.clear()
    with pytest.raises(SyncFailure, match="is empty, and it had 2 batches"):
        laptop.sync()
    assert laptop.folder.files == {}


def test_a_scrub_reaches_batches_and_machines(two: tuple[Machine, Machine]) -> None:
    laptop, desktop = two
    add(laptop, "The key is swordfish today.")
    add(laptop, "Unrelated.")
    laptop.sync()
    desktop.sync()
    desktop.scrub("swordfish")
    awaited = replicas.unconfirmed(desktop.connection, desktop.replica.id)
    assert {each.machine for each in awaited} == {"laptop", "desktop"}
    assert b"swordfish" in plain_bytes(laptop.folder)
    desktop.sync()
    # Also the batch that the other machine wrote.
    assert b"swordfish" not in plain_bytes(laptop.folder)
    awaited = replicas.unconfirmed(desktop.connection, desktop.replica.id)
    assert [each.machine for each in awaited] == ["laptop"]
    laptop.sync()
    desktop.sync()
    assert contents(laptop.graph) == ["The key is [scrubbed] today.", "Unrelated."]
    assert laptop.state() == desktop.state()
    assert not list(replicas.unconfirmed(desktop.connection, desktop.replica.id))


def test_a_scrub_while_a_batch_is_written_reaches_it(
    two: tuple[Machine, Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    laptop, desktop = two
    add(laptop, "The key is swordfish today.")
    publish = FolderCopy.publish

    def scrubbed_meanwhile(
        self: FolderCopy, added: Sequence[BatchFile], removed: Collection[str] = ()
    ) -> None:
        monkeypatch.undo()
        laptop.scrub("swordfish")
        publish(self, added, removed)

    monkeypatch.setattr(FolderCopy, "publish", scrubbed_meanwhile)
    laptop.sync()
    assert b"swordfish" not in plain_bytes(laptop.folder)
    desktop.sync()
    assert contents(desktop.graph) == ["The key is [scrubbed] today."]


@pytest.mark.slow
def test_large_texts_are_spread_over_batches(two: tuple[Machine, Machine]) -> None:
    laptop, desktop = two
    for number in range(5):
        add(laptop, f"{number} " + "word " * 400_000)
    laptop.sync()
    desktop.sync()
    assert laptop.state() == desktop.state()
    batches = [batch_files.unseal(*file, KEYS) for file in laptop.folder.files.items()]
    assert sorted(len(batch.records) for batch in batches) == [0, 0, 5, 5]


def test_a_batch_from_before_a_scrub_brings_nothing_back(two: tuple[Machine, Machine]) -> None:
    laptop, desktop = two
    add(laptop, "The key is swordfish today.")
    laptop.sync()
    old = dict(laptop.folder.files)
    laptop.scrub("swordfish")
    laptop.sync()
    # The other machine reads the new batch first, then the old one, which was late.
    desktop.sync()
    desktop.folder.files |= old
    desktop.sync()
    assert contents(desktop.graph) == ["The key is [scrubbed] today."]
    assert b"swordfish" not in plain_bytes(desktop.folder)


def test_two_scrubs_of_one_text_lose_no_secret(two: tuple[Machine, Machine]) -> None:
    laptop, desktop = two
    add(laptop, "The keys are swordfish and hunter2.")
    laptop.sync()
    desktop.sync()
    desktop.folder = FolderCopy()
    exchange(laptop, desktop, CHANCE, loss=0)
    laptop.scrub("swordfish")
    desktop.scrub("hunter2")
    for _ in range(3):
        for one, other in ((laptop, desktop), (desktop, laptop)):
            one.sync()
            exchange(one, other, CHANCE, loss=0)
    assert contents(laptop.graph) == contents(desktop.graph) == ["[scrubbed]"]
    assert laptop.state() == desktop.state()
    for machine in two:
        assert_sound(machine.connection)
        assert b"swordfish" not in plain_bytes(machine.folder)
        assert b"hunter2" not in plain_bytes(machine.folder)


def test_one_scrub_after_the_other_keeps_the_rest_of_the_text(
    two: tuple[Machine, Machine],
) -> None:
    laptop, desktop = two
    add(laptop, "The keys are swordfish and hunter2.")
    for machine, word in ((laptop, "swordfish"), (desktop, "hunter2")):
        machine.sync()
        machine.scrub(word)
        machine.sync()
    laptop.sync()
    assert contents(laptop.graph) == ["The keys are [scrubbed] and [scrubbed]."]
    assert laptop.state() == desktop.state()


def test_many_small_batches_become_one(two: tuple[Machine, Machine]) -> None:
    laptop, desktop = two
    for number in range(70):
        add(laptop, f"Fact {number}.")
        laptop.sync()
        assert len(laptop.folder.files) < 67
    assert len(laptop.folder.files) < 10
    desktop.sync()
    assert laptop.state() == desktop.state()


def test_a_change_of_another_machine_is_known_as_such(two: tuple[Machine, Machine]) -> None:
    laptop, desktop = two
    add(laptop, "One.")
    laptop.sync()
    desktop.sync()
    (change,) = {
        row[0] for row in laptop.connection.execute("SELECT change FROM records WHERE stamp > 0")
    }
    assert replicas.is_foreign_change(desktop.connection, change)
    assert not replicas.is_foreign_change(laptop.connection, change)


@pytest.fixture
def sealed(two: tuple[Machine, Machine]) -> BatchFile:
    laptop, _ = two
    add(laptop, "One.")
    records = record_versions.current_records(
        laptop.connection, replicas.unsent_ids(laptop.connection, laptop.replica.id)
    )
    return batch_files.seal(sync_batch.new_batch(laptop.replica, records), KEYS)


def test_a_batch_that_is_cut_short_or_changed_is_refused(sealed: BatchFile) -> None:
    name, data = sealed
    assert len(batch_files.unseal(name, data, KEYS).records) == 2
    for end in range(len(data)):
        with pytest.raises(UnreadableFile):
            batch_files.unseal(name, data[:end], KEYS)
        with pytest.raises(UnreadableFile):
            batch_files.unseal(name, bytes([*data[:end], data[end] ^ 1, *data[end + 1 :]]), KEYS)
    with pytest.raises(UnreadableFile):
        batch_files.unseal("0" * 64, data, KEYS)


def test_a_plain_batch_that_is_damaged_is_refused_or_means_the_same(
    two: tuple[Machine, Machine], sealed: BatchFile
) -> None:
    batch = batch_files.unseal(*sealed, KEYS).batch
    name, data = batch_files.seal(batch, {})
    assert batch_files.unseal(name, data, {}).batch == batch
    for end in range(len(data)):
        with pytest.raises(UnreadableFile):
            batch_files.unseal(name, data[:end], {})
    with pytest.raises(UnreadableFile, match="it is not encrypted"):
        batch_files.unseal(name, data, KEYS)
    with pytest.raises(OtherKey):
        batch_files.unseal(*sealed, {})


def test_a_batch_that_is_written_again_keeps_its_name(sealed: BatchFile) -> None:
    batch = batch_files.unseal(*sealed, KEYS).batch
    again = batch_files.seal(batch, KEYS)
    assert again.name == sealed.name
    assert again.data != sealed.data
    other_key = {b"s" * 16: b"x" * 32}
    assert batch_files.seal(batch, other_key).name != sealed.name


@pytest.mark.parametrize(("folder", "keys"), [("v1-encrypted", KEYS), ("v1-plain", {})])
def test_batches_of_every_version_are_read(folder: str, keys: Keys) -> None:
    (path,) = (GOLDEN / folder).iterdir()
    read = batch_files.unseal(path.name, path.read_bytes(), keys)
    assert read.replica.machine == "laptop"
    assert read.batch.confirmed == ("01M7NQ1X65VVA37NKZV8P6YKV1", "01M7NQ1X65VVA37NKZV8P6YKV2")
    assert [each.record.kind for each in read.records] == [
        *("node.put", "tag.add", "edge.put", "later.kind"),
    ]
    first, second = read.records[:2]
    assert first.record.body == {"type": "fact", "content": "The key is [scrubbed] today."}
    assert first.version == ("01M7NQ1X65VVA37NKZV8P6YKV2", ("01M7NQ1X65VVA37NKZV8P6YKV1",))
    assert second.version == ("", ())
    # The name of a batch does not change either: what is sent again has the same name.
    assert batch_files.seal(read.batch, keys).name == path.name
