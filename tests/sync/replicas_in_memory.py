"""Machines that share a target, each with its own store, clock and copy of the shared folder."""

import random
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack, suppress
from sqlite3 import Connection
from typing import Any

import pytest

from ctx import clock, ids
from ctx.errors import SyncFailure
from ctx.exchange import scrub_store
from ctx.ids import NodeId
from ctx.memory import replicas
from ctx.memory.graph import Graph
from ctx.memory.replicas import Replica
from ctx.redaction import needle
from ctx.sync.batch_files import BatchFile, Keys, UnreadableFile
from ctx.sync.batch_target import TargetListing
from ctx.sync.replicate import Replication
from tests.memory.graphs import Step, all_records, assert_sound, graph, run_steps, tables

KEYS: Keys = {b"s" * 16: b"k" * 32}
HOUR_MS = 3_600_000
KINDS = (
    *("add", "add", "update", "update", "delete", "restore", "tag", "untag", "link", "unlink"),
    *("outside", "supersede", "view", "unview", "task", "undo", "together"),
)


class FolderCopy:
    """The files of one machine. Another program carries them to and from the other machines."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.removed: set[str] = set()

    def listing(self) -> TargetListing:
        return TargetListing(frozenset(self.files), ())

    def read(self, name: str) -> bytes:
        if name not in self.files:
            raise UnreadableFile("it does not exist")
        return self.files[name]

    def publish(self, added: Sequence[BatchFile], removed: Collection[str] = ()) -> None:
        self.files |= {file.name: file.data for file in added}
        for name in removed:
            self.files.pop(name, None)
            self.removed.add(name)

    def projects(self) -> None:
        """There are no projects."""

    def purge(self) -> None:
        pass


class Machine:
    def __init__(self, graph: Graph, name: str, skew_ms: int) -> None:
        self.graph = graph
        self.connection: Connection = graph.connection
        self.replica = Replica(ids.new_ulid(), name, "2026-01-20T10:00:00Z", False)
        self.skew_ms = skew_ms
        self.folder = FolderCopy()

    def work(self, steps: list[Step]) -> None:
        """Change nodes of this machine and of others, also deleted ones."""
        rows = self.connection.execute(
            "SELECT DISTINCT subject FROM records WHERE kind = 'node.put' ORDER BY subject DESC"
        )
        run_steps(self.graph, steps, [NodeId(row[0]) for row in rows][-8:])

    def sync(self) -> None:
        Replication(self.connection, "shared", self.folder, KEYS, self.replica).run()

    def scrub(self, word: str) -> None:
        scrub_store.scrub(self.connection, needle.word(word))

    def forget_batches(self, names: Collection[str]) -> None:
        """Read these batches again."""
        replicas.forget_batches(self.connection, self.replica.id, names)

    def state(self) -> tuple[Any, Any]:
        """What must be the same on all machines: everything but the current tasks."""
        found = tables(self.connection)
        del found["pending"]
        shared = [record for record in all_records(self.connection) if record.kind != "task.set"]
        return found, shared


def exchange(one: Machine, other: Machine, chance: random.Random, loss: float) -> None:
    """Carry files from one machine to another one; some are lost on the way."""
    for name in sorted(one.folder.removed):
        other.folder.files.pop(name, None)
    other.folder.removed |= one.folder.removed
    for name, data in sorted(one.folder.files.items()):
        if name not in other.folder.removed and chance.random() >= loss:
            other.folder.files[name] = data


def random_steps(chance: random.Random, count: int) -> list[Step]:
    return [
        (chance.choice(KINDS), chance.randrange(8), chance.randrange(8), chance.randrange(4))
        for _ in range(count)
    ]


def converge(
    seed: int, operations: int, at: Callable[[int], None], *, scrubbing: bool = True
) -> list[Machine]:
    """Let three machines work and sync in random order, and compare their stores.

    `at` sets the clock: how many milliseconds it is ahead.
    """
    chance = random.Random(seed)
    with ExitStack() as stack:
        machines = [
            Machine(stack.enter_context(graph()), name, skew)
            for name, skew in (("laptop", 0), ("desktop", HOUR_MS), ("server", -HOUR_MS))
        ]
        left = dict.fromkeys(range(3), operations)
        while any(left.values()):
            number = chance.choice([number for number, rest in left.items() if rest])
            machine = machines[number]
            at(machine.skew_ms)
            some = min(left[number], chance.randrange(1, 40))
            machine.work(random_steps(chance, some))
            left[number] -= some
            if scrubbing and chance.random() < 0.1:
                machine.scrub(f"Content {chance.randrange(8)}")
            if chance.random() < 0.5:
                # All batches were removed, and those that replace them are still on the way.
                with suppress(SyncFailure):
                    machine.sync()
            if chance.random() < 0.5:
                one, other = chance.sample(machines, 2)
                exchange(one, other, chance, loss=0.3)
            if machine.folder.files and chance.random() < 0.2:
                # A repeated batch, as after a restored backup.
                machine.forget_batches(chance.sample(sorted(machine.folder.files), 1))
        for _ in range(4):
            for machine in machines:
                at(machine.skew_ms)
                machine.sync()
                for other in machines:
                    exchange(machine, other, chance, loss=0)
        states = [machine.state() for machine in machines]
        assert states[0] == states[1] == states[2]
        for machine in machines:
            assert_sound(machine.connection)
            assert not replicas.unsent_ids(machine.connection, machine.replica.id)
            assert not list(replicas.unconfirmed(machine.connection, machine.replica.id))
            assert not replicas.outdated_batches(machine.connection, machine.replica.id)
        return machines


def skewed_clock(patch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """A function that sets how far the clock is ahead."""
    real = clock.now_ms

    def at(skew_ms: int) -> None:
        patch.setattr(clock, "now_ms", lambda: real() + skew_ms)

    return at
