"""Generates the user stores of `bench scale` quickly.

The first 10,000 nodes are records that ctx turns into tables. SQLite then copies their rows, with
other ids and times, until the store is as large as it has to be. The indexes are made last.

The nodes are shorter than those of `bench memory` and have fewer edges, so that a million of them
fit into 5 GB. Types, tiers, projects and tags have the same shares.
"""

import os
import random
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from sqlite3 import Connection

from bench.memory import TIERS, TWO_YEARS_MS, TYPES, vocabulary
from ctx import clock, ids
from ctx.ids import NodeId, Ulid
from ctx.memory import records, user_store
from ctx.memory.materialise import materialise_all
from ctx.memory.records import Record
from ctx.sqlite.connection import transaction

BASE = 10_000
EDGES = ("DEPENDS_ON", "DERIVED_FROM", "RELATES_TO")


def store_of(folder: Path, nodes: int) -> str:
    """The path of a store with this many nodes; it is built if the folder has none."""
    base = min(nodes, BASE)
    return build_store(folder / f"{nodes}" / "store.db", statements(base, nodes), nodes // base)


def tagged_store(folder: Path, tags: int) -> str:
    """A store with 100 nodes, one of which has this many tags of its own."""
    newest = clock.now_ms()
    node_id = NodeId(ids.derived_ulid(newest, "tagged"))
    one = [
        _record(newest, "node.put", node_id, body={"type": "fact", "content": "It has many tags."}),
        *(_record(newest, "tag.add", node_id, f"label:{number}") for number in range(tags)),
    ]
    return build_store(folder / f"tags-{tags}" / "store.db", [*statements(100, 100), *one])


def build_store(path: Path, made: Iterable[Record], copies: int = 1) -> str:
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
        with transaction(connection):
            records.insert(connection, made)
            connection.execute("DELETE FROM views")
            materialise_all(connection)
        if copies > 1:
            _multiply(connection, copies)
        connection.execute("PRAGMA journal_mode = WAL")
    os.rename(unfinished, path)
    return str(path)


def statements(nodes: int, total: int) -> Iterator[Record]:
    """The records of the newest nodes of a store: each with four tags, and a link to another."""
    rng = random.Random(3)
    words = vocabulary(rng)
    weights = [1 / (rank + 3) for rank in range(len(words))]
    types, tiers = list(TYPES), list(TIERS)
    now = clock.now_ms()
    made: list[NodeId] = []
    for number in range(nodes):
        # The store covers two years: recent nodes are a small part.
        at = now - (nodes - number) * TWO_YEARS_MS // total
        node_id = NodeId(ids.derived_ulid(at, f"bench {number}"))
        text = " ".join(rng.choices(words, weights, k=rng.randint(6, 24)))
        (kind,) = rng.choices(types, list(TYPES.values()))
        (tier,) = rng.choices(tiers, list(TIERS.values()))
        yield _record(at, "node.put", node_id, body={"type": kind, "content": text})
        project, task = int(rng.triangular(0, 20, 0)), rng.randrange(500)
        for tag in (f"tier:{tier}", f"project:p{project}", f"task:t{task}"):
            yield _record(at, "tag.add", node_id, tag)
        yield _record(at, "tag.add", node_id, f"topic:{rng.randrange(200)}")
        if made:
            near = made[rng.randrange(max(0, number - 2_000), number)]
            key = records.edge_key(rng.choice(EDGES), near)
            yield _record(at, "edge.put", node_id, key, near, {"metadata": {"source": "bench"}})
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
    who = "", "bench"
    shape = "import", kind, subject, key, target, body or {}
    return Record(ids.new_ulid(), _stamp(at), _CHANGE, *shape, *who)


def _stamp(at: int) -> int:
    return at // 1000 * 1000 << clock.COUNTER_BITS


# Each copy is one window of time before the last one, so that ids grow with the row numbers.
_COPY = (
    """
    CREATE TEMP TABLE copied AS SELECT * FROM records WHERE stamp > 0 ORDER BY rowid
    """,
    """
    INSERT INTO records SELECT substr('0000000000000000000000000' || (:copy * 1000000 + r.rowid),
    -26), m.stamp, change, action, kind, m.new, CASE WHEN t.new IS NULL THEN key
    ELSE substr(key, 1, instr(key, ' ')) || t.new END, t.new, body, session, author
    FROM temp.copied AS r JOIN temp.renamed AS m ON m.old = r.subject
    LEFT JOIN temp.renamed AS t ON t.old = r.target ORDER BY r.rowid
    """,
    """
    INSERT INTO nodes (id, type, content, summary, token_estimate, created_at, updated_at,
    metadata, terms) SELECT m.new, type, content, summary, token_estimate, m.at, m.at, metadata,
    terms FROM temp.renamed AS m JOIN nodes ON nodes.id = m.old ORDER BY m.new
    """,
    """
    INSERT INTO tags SELECT m.new, tag, m.at FROM temp.renamed AS m
    JOIN tags ON tags.node_id = m.old ORDER BY m.new, tag
    """,
    """
    INSERT INTO edges SELECT id, subject, target, substr(key, 1, instr(key, ' ') - 1), m.at,
    '{"source":"bench"}' FROM temp.renamed AS m JOIN records AS r
    ON r.subject = m.new AND r.target IS NOT NULL
    """,
)


def _multiply(connection: Connection, copies: int) -> None:
    """Copy the nodes of a store into earlier windows of time, without their text index."""
    dropped = connection.execute(
        "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL AND (type = 'trigger'"
        " OR type = 'index' AND name <> 'idx_records_subject')"
        " AND tbl_name IN ('records', 'nodes', 'tags', 'edges')"
    ).fetchall()
    first, *copying = _COPY
    with transaction(connection):
        for kind, name, _ in dropped:
            connection.execute(f"DROP {kind} {name}")
        connection.execute(first)
        old = [row[0] for row in connection.execute("SELECT id FROM nodes ORDER BY id")]
        window = TWO_YEARS_MS * len(old) // (copies * len(old))
        connection.execute("CREATE TEMP TABLE renamed (old PRIMARY KEY, new, at, stamp)")
        for copy in range(1, copies):
            connection.execute("DELETE FROM temp.renamed")
            connection.executemany(
                "INSERT INTO temp.renamed VALUES (?, ?, ?, ?)",
                (renamed(node_id, copy, window) for node_id in old),
            )
            for statement in copying:
                connection.execute(statement, {"copy": copy} if ":copy" in statement else {})
        for _, _, sql in dropped:
            connection.execute(sql)
        connection.execute("INSERT INTO nodes_fts(nodes_fts) VALUES ('rebuild')")
    connection.execute("DROP TABLE temp.copied")


def renamed(node_id: str, copy: int, window: int) -> tuple[str, str, str, int]:
    """A node in an earlier window of time: its id, the new one, the time and the stamp."""
    at = ids.ulid_ms(Ulid(node_id)) - copy * window
    new = ids.derived_ulid(at, f"{node_id} {copy}")
    return node_id, new, clock.iso(at), _stamp(at)
