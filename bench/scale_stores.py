"""Generates the user stores of `bench scale` quickly: records first, then the tables from them.

The nodes are shorter than those of `bench memory` and have fewer edges, so that a million of them
fit into 6 GB. Types, tiers, projects and tags have the same shares.
"""

import os
import random
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from itertools import islice
from pathlib import Path

from bench.memory import TIERS, TWO_YEARS_MS, TYPES, vocabulary
from ctx import clock, ids
from ctx.ids import NodeId, Ulid
from ctx.memory import records, user_store
from ctx.memory.materialise import materialise_all
from ctx.memory.records import Record
from ctx.sqlite.connection import transaction

PART = 5_000
EDGES = ("DEPENDS_ON", "DERIVED_FROM", "RELATES_TO")


def store_of(folder: Path, nodes: int) -> str:
    """The path of a store with this many nodes; it is built if the folder has none."""
    return _built(folder / f"{nodes}" / "store.db", statements(nodes))


def tagged_store(folder: Path, tags: int) -> str:
    """A store with 100 nodes, one of which has this many tags of its own."""
    newest = clock.now_ms()
    node_id = NodeId(ids.derived_ulid(newest, "tagged"))
    one = [
        _record(newest, "node.put", node_id, body={"type": "fact", "content": "It has many tags."}),
        *(_record(newest, "tag.add", node_id, f"label:{number}") for number in range(tags)),
    ]
    return _built(folder / f"tags-{tags}" / "store.db", [*statements(100), *one])


def _built(path: Path, made: Iterable[Record]) -> str:
    if path.exists():
        return str(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name("unfinished.db")
    unfinished.unlink(missing_ok=True)
    with closing(user_store.open_for_writing(str(unfinished))) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        # A write-ahead log would be as large as the tables.
        connection.execute("PRAGMA journal_mode = OFF")
        connection.execute("PRAGMA cache_size = -200000")
        stream = iter(made)
        while part := list(islice(stream, PART)):
            with transaction(connection):
                records.insert(connection, part)
        with transaction(connection):
            connection.execute("DELETE FROM views")
            materialise_all(connection)
        connection.execute("PRAGMA journal_mode = WAL")
    os.rename(unfinished, path)
    return str(path)


def statements(nodes: int) -> Iterator[Record]:
    """The records of a store: each node with four tags, and a link to an earlier one."""
    rng = random.Random(3)
    words = vocabulary(rng)
    weights = [1 / (rank + 3) for rank in range(len(words))]
    types, tiers = list(TYPES), list(TIERS)
    now = clock.now_ms()
    made: list[NodeId] = []
    for number in range(nodes):
        # Spread over two years: recent nodes are a small part.
        at = now - (nodes - number) * TWO_YEARS_MS // nodes
        node_id = NodeId(ids.derived_ulid(at, f"bench {number}"))
        text = " ".join(rng.choices(words, weights, k=rng.randint(6, 24)))
        (kind,) = rng.choices(types, list(TYPES.values()))
        (tier,) = rng.choices(tiers, list(TIERS.values()))
        body = {"type": kind, "content": text}
        yield _record(at, "node.put", node_id, body=body)
        project, task = int(rng.triangular(0, 20, 0)), rng.randrange(500)
        for tag in (f"tier:{tier}", f"project:p{project}", f"task:t{task}"):
            yield _record(at, "tag.add", node_id, tag)
        yield _record(at, "tag.add", node_id, f"topic:{rng.randrange(200)}")
        if made:
            near = made[rng.randrange(max(0, number - 2_000), number)]
            key = records.edge_key(rng.choice(EDGES), near)
            edge = {"id": ids.new_ulid(), "metadata": {"source": "bench"}}
            yield _record(at, "edge.put", node_id, key, near, edge)
        made.append(node_id)


_CHANGE = Ulid(ids.derived_ulid(0, "bench scale"))


def _record(
    at: int,
    kind: str,
    subject: str,
    key: str = "",
    target: str | None = None,
    body: Mapping[str, object] | None = None,
) -> Record:
    stamp = at << clock.COUNTER_BITS
    who = "", "bench"
    return Record(
        ids.new_ulid(), stamp, _CHANGE, "import", kind, subject, key, target, body or {}, *who
    )
