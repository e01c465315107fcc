"""How many random histories on three machines end with identical stores, and how long a sync takes.

A trial has 300 random operations on each of three machines, an hour of clock skew, lost and
repeated batches, and scrubs (`tests/sync/replicas_in_memory.py`). The other figures are for a store
on disk and an encrypted folder: sending everything, catching up in an empty store, and a sync
without a change.

    python -m bench sync [TRIALS [RECORDS]]
"""

import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import pytest

from bench import report, timing
from bench.timing import Figure
from bench.trials import MEMORY
from ctx import ids
from ctx.memory import user_store
from ctx.memory.changes import ChangeAuthor, changing
from ctx.memory.graph import Graph
from ctx.memory.replicas import Replica
from ctx.sync.folder_target import FolderTarget
from ctx.sync.replicate import Replication, SyncCounts
from tests.sync.replicas_in_memory import KEYS, converge, skewed_clock

OPERATIONS = 300
_WHO = ChangeAuthor("cli", "cli")
_SENTENCE = "The worker retries a request {} times before it gives up and reports the error."


def converged(trials: int) -> int:
    sound = 0
    with pytest.MonkeyPatch.context() as patch:
        at = skewed_clock(patch)
        for seed in range(trials):
            try:
                converge(seed, OPERATIONS, at)
                sound += 1
            except AssertionError as error:
                print(f"   seed {seed}: {error}")
    return sound


def fill(path: str, records: int) -> None:
    """Add nodes with one tag each: two records."""
    with closing(user_store.open_for_writing(path)) as connection:
        for start in range(0, records // 2, 1_000):
            with changing(Graph(connection), "add", _WHO) as change:
                for number in range(start, min(start + 1_000, records // 2)):
                    node = change.add_node("fact", _SENTENCE.format(number))
                    change.tag(node, "tier:reference")


def sync(path: str, folder: str, replica: str) -> tuple[SyncCounts, float]:
    started = time.perf_counter()
    with closing(user_store.open_for_writing(path)) as connection:
        this = Replica(replica, replica, "2026-01-20T10:00:00Z", False)
        counts = Replication(connection, "shared", FolderTarget(folder), KEYS, this).run()
    return counts, time.perf_counter() - started


def main() -> None:
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    records = int(sys.argv[2]) if len(sys.argv) > 2 else 100_000
    sound = converged(trials)
    with tempfile.TemporaryDirectory(dir=MEMORY) as space:
        folder = Path(space, "shared")
        folder.mkdir()
        one, other = str(Path(space, "one.db")), str(Path(space, "other.db"))
        fill(one, records)
        first, second = ids.new_ulid(), ids.new_ulid()
        sent, sending_s = sync(one, str(folder), first)
        received, receiving_s = sync(other, str(folder), second)
        _, idle_s = sync(one, str(folder), first)
        size = sum(path.stat().st_size for path in folder.iterdir())
    assert sent.sent_records == received.received_records == records
    report.show(
        "sync",
        [
            Figure(f"send {records:,} records to an encrypted folder, wall", f"{sending_s:.1f} s"),
            Figure(f"catch up with {records:,} records, empty store, wall", f"{receiving_s:.1f} s"),
            Figure("a sync without a change, wall", timing.ms(idle_s)),
        ],
    )
    print(f"the batches have {size / 1e6:.1f} MB")
    trial = f"three machines with {OPERATIONS} random operations each, lost and repeated batches,"
    trial += " an hour of clock skew: identical stores"
    report.show("sync-trials", [Figure(trial, f"{sound} of {trials}", limit="all")])
    if sound < trials:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
