"""How a team's PostgreSQL server answers as it grows, beside SQLite.

The nodes are those of `bench scale`: 1,000 of them are copied to the server as `ctx store copy`
does it, to 20 projects of one member. The server then copies their rows, with other ids and times,
until there are enough. The queries are those of direct mode and of a store, through the same code.
The server is that of the tests with 2 GB of `shared_buffers`; it does not wait for the disk
(`fsync=off`). The baseline is SQLite with as many nodes of the same kind.

p50 and p95 are for 20 clients at once, each with a connection of its own, in threads of one
process. CPU is that of one client and of its process on the server: it hardly depends on what else
the machine does.

`catch up` is a new machine that receives 100,000 records; `send` is the machine that sent them.

With `--data`, the nodes stay in a folder: the next run measures them without loading them again. A
million takes 12 GB.

    python -m bench team [--most N] [--clients N] [--records N] [--data FOLDER]
"""

import argparse
import os
import random
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from statistics import quantiles
from typing import LiteralString, NamedTuple, cast

import psycopg

from bench import report
from bench.memory import TWO_YEARS_MS, vocabulary
from bench.plots import Plot, Series
from bench.scale_stores import renamed, store_of
from bench.sync import fill
from bench.timing import Figure, ms
from ctx import clock, ids
from ctx.direct.team_graph_store import TeamConnection
from ctx.layout import UserStore
from ctx.memory import user_store
from ctx.memory.graph import Graph
from ctx.memory.graphs import Graphs
from ctx.memory.model import Node
from ctx.memory.query import execute, query_parser
from ctx.memory.query.compile import Scope
from ctx.memory.replicas import Replica
from ctx.operations import store_copy
from ctx.operations.store_copy import CopyPlaces
from ctx.packs import node_ranking
from ctx.packs.node_ranking import RankedNode
from ctx.sync.replicate import Replication
from ctx.sync.team_target import TeamTarget
from tests.postgres_server import PostgresServer

SIZES = (10_000, 100_000, 1_000_000)
MEMBER = "bench"
PROJECTS = 20
BASE = 1_000
BEST = 10
NEWEST = 20
"""The nodes of an answer."""
ASKED = 5
"""Questions of each client."""
COUNTED = 30
"""Answers whose CPU time is counted."""


def matching(connection: sqlite3.Connection, text: str, limit: int) -> list[Node]:
    """The nodes that match a query, as `ctx query` and `ctx search` read them."""
    query, now_ms = query_parser.parse(text), clock.now_ms()
    found = execute.matching([connection], query, Scope(), now_ms, limit=limit)
    return list(Graph(connection).nodes(found.ids))


def recalled(connection: sqlite3.Connection, text: str) -> list[RankedNode]:
    """The nodes that answer a question best, as `ctx recall` finds them without vectors."""
    graphs, query = Graphs([Graph(connection)]), query_parser.parse(text)
    return node_ranking.rank(graphs, query, Scope(), clock.now_ms(), BEST)


_WORDS = vocabulary(random.Random(3))


def two_words(chance: random.Random) -> str:
    """Words that are neither frequent nor rare."""
    return " ".join(chance.sample(_WORDS[100:1_000], 2))


class Read(NamedTuple):
    """What clients ask, the same for the server and for SQLite."""

    name: str
    query: Callable[[random.Random], str]
    answer: Callable[[sqlite3.Connection, str], Sequence[object]]


READS = (
    Read("recall", two_words, recalled),
    Read("search", two_words, partial(matching, limit=BEST)),
    Read(
        "newest of a project",
        lambda chance: f"tag:project:p{chance.randrange(PROJECTS)}",
        partial(matching, limit=NEWEST),
    ),
    Read(
        "nodes with a tag",
        lambda chance: f"tag:topic:{chance.randrange(200)}",
        partial(matching, limit=NEWEST),
    ),
)


def on_server(url: str) -> sqlite3.Connection:
    """A connection in direct mode, which has the part of SQLite's interface that queries use."""
    return cast(sqlite3.Connection, TeamConnection(url))


class Latency(NamedTuple):
    """In seconds."""

    p50: float
    p95: float

    def __str__(self) -> str:
        return f"{ms(self.p50)} / {ms(self.p95)}"


def latency(clients: int, connect: Callable[[], sqlite3.Connection], read: Read) -> Latency:
    """How long an answer takes while all clients ask."""

    def client(seed: int) -> list[float]:
        chance = random.Random(seed)
        seconds = []
        with closing(connect()) as connection:
            for _ in range(ASKED):
                started = time.perf_counter()
                read.answer(connection, read.query(chance))
                seconds.append(time.perf_counter() - started)
        return seconds

    with ThreadPoolExecutor(clients) as pool:
        every = [each for some in pool.map(client, range(clients)) for each in some]
    found = quantiles(every, n=20, method="inclusive")
    return Latency(found[9], found[18])


def cpu(connect: Callable[[], sqlite3.Connection], read: Read) -> float:
    """The CPU seconds of one answer, in this process and on the server."""
    chance = random.Random(7)
    with closing(connect()) as connection:
        # The first answer also reads the catalogue.
        read.answer(connection, read.query(chance))
        before = cpu_spent(connection)
        for _ in range(COUNTED):
            read.answer(connection, read.query(chance))
        return (cpu_spent(connection) - before) / COUNTED


def cpu_spent(connection: sqlite3.Connection | TeamConnection) -> float:
    spent = time.process_time()
    if isinstance(connection, TeamConnection):
        status = Path(f"/proc/{connection.server.info.backend_pid}/stat").read_text()
        ticks = status.rpartition(")")[2].split()[11:13]
        spent += sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
    return spent


# The server's data


def prepare(server: PostgresServer, database: str) -> None:
    """A new database in which one member owns all projects."""
    with server.connect() as admin:
        admin.execute(f"DROP DATABASE IF EXISTS {database}".encode())
        admin.execute(f"CREATE DATABASE {database}".encode())
    with closing(TeamTarget(server.url(database=database))) as target:
        target.listing()
    with server.connect(database=database) as admin:
        row = admin.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (MEMBER,)).fetchone()
        if row is None:
            admin.execute(f"CREATE ROLE {MEMBER} LOGIN IN ROLE ctx_member".encode())
    with server.connect(MEMBER, database) as member:
        for number in range(PROJECTS):
            member.execute("INSERT INTO ctx.projects (name) VALUES (%s)", (f"p{number}",))


def database_of(server: PostgresServer, folder: Path, nodes: int) -> str:
    """The name of a database with this many nodes; it is built if the server has none. Each size
    has the nodes of the one before."""
    name, unfinished = f"nodes_{nodes}", "unfinished"
    with server.connect() as admin:
        row = admin.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,)).fetchone()
    if row is not None:
        return name
    if nodes == BASE:
        prepare(server, unfinished)
        copy_store(store_of(folder, BASE), server.url(MEMBER, unfinished))
        keep_base(server, unfinished)
    else:
        smaller = max(size for size in (BASE, *SIZES) if size < nodes)
        template = database_of(server, folder, smaller)
        with server.connect() as admin:
            admin.execute(f"DROP DATABASE IF EXISTS {unfinished}".encode())
            # Not as a part of the log, which would be as large as the database.
            admin.execute(
                f"CREATE DATABASE {unfinished} TEMPLATE {template} STRATEGY file_copy".encode()
            )
        multiply(server, unfinished, range(smaller // BASE, nodes // BASE))
    with server.connect() as admin:
        admin.execute(f"ALTER DATABASE {unfinished} RENAME TO {name}".encode())
    return name


def copy_store(path: str, url: str) -> None:
    store_copy.copy(UserStore(os.path.dirname(path)), CopyPlaces(path, url))


_COPIED_ID: LiteralString = "lpad((%(copy)s * 1000000 + b.number)::text, 26, '0')"
_TABLES: dict[LiteralString, dict[str, LiteralString]] = {
    "subjects": {"id": "m.new"},
    "nodes": {"id": "m.new", "created_at": "m.at", "updated_at": "m.at"},
    "words": {"id": "m.new"},
    "tags": {"node_id": "m.new", "created_at": "m.at"},
    "stored_edges": {"from_id": "m.new", "to_id": "t.new", "created_at": "m.at"},
    "record_ids": {"id": _COPIED_ID, "holder": "m.new"},
    "records": {
        "id": _COPIED_ID,
        "subject": "m.new",
        "node": "m.new",
        "stamp": "m.stamp",
        "target": "t.new",
        "key": "coalesce(replace(b.key, b.target, t.new), b.key)",
    },
}
"""The columns that differ in a copy of a row."""
_KEYS: dict[str, tuple[LiteralString, LiteralString]] = {
    "subjects": ("id", "id"),
    "nodes": ("id", "id"),
    "words": ("id", "id"),
    "tags": ("node_id", "node_id"),
    "stored_edges": ("from_id", "to_id"),
    "record_ids": ("holder", "holder"),
    "records": ("subject", "target"),
}


def keep_base(server: PostgresServer, database: str) -> None:
    """Keep the rows that `multiply` copies."""
    with server.connect(database=database) as admin:
        admin.execute("CREATE SCHEMA base")
        for table in _TABLES:
            admin.execute(
                f"CREATE TABLE base.{table} AS SELECT *, row_number() OVER () AS number"
                f" FROM ctx.{table}".encode()
            )


def multiply(server: PostgresServer, database: str, copies: range) -> None:
    """Copy the nodes into earlier windows of time, as `bench scale` does it in SQLite."""
    window_ms = TWO_YEARS_MS * BASE // SIZES[-1]
    with server.connect(database=database) as admin:
        # Neither triggers nor foreign keys have to look at copies.
        admin.execute("SET session_replication_role = replica")
        admin.execute("SET maintenance_work_mem = '512MB'")
        admin.execute(
            "CREATE TEMP TABLE renamed (old text PRIMARY KEY, new text, at text, stamp bigint)"
        )
        old = [str(row[0]) for row in admin.execute("SELECT id FROM base.nodes ORDER BY id")]
        with indexes_made_last(admin):
            for copy in copies:
                admin.execute("TRUNCATE renamed")
                with admin.cursor() as cursor, cursor.copy("COPY renamed FROM STDIN") as rows:
                    for node_id in old:
                        rows.write_row(renamed(node_id, copy, window_ms))
                admin.execute("ANALYZE renamed")
                for table, changed in _TABLES.items():
                    admin.execute(_copying(admin, table, changed).encode(), {"copy": copy})
        admin.execute("TRUNCATE ctx.word_totals")
        admin.execute(
            "INSERT INTO ctx.word_totals SELECT project, owner, count(*), sum(words)"
            " FROM ctx.words GROUP BY project, owner"
        )
        admin.execute("VACUUM ANALYZE")


@contextmanager
def indexes_made_last(admin: psycopg.Connection[tuple[object, ...]]) -> Iterator[None]:
    """Drop the indexes of all tables, except those of keys, and create them again."""
    indexes = admin.execute(
        "SELECT format('%I.%I', n.nspname, c.relname), pg_get_indexdef(i.indexrelid)"
        " FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid"
        " JOIN pg_namespace AS n ON n.oid = c.relnamespace"
        " WHERE n.nspname = 'ctx' AND NOT i.indisunique AND NOT c.relispartition"
    ).fetchall()
    for name, _ in indexes:
        admin.execute(f"DROP INDEX {name}".encode())
    yield
    for _, definition in indexes:
        # With `ONLY`, the partitions would have none.
        admin.execute(str(definition).replace(" ON ONLY ", " ON ").encode())


def _copying(
    admin: psycopg.Connection[tuple[object, ...]], table: str, changed: dict[str, LiteralString]
) -> str:
    columns = [
        str(row[0])
        for row in admin.execute(
            "SELECT column_name FROM information_schema.columns WHERE table_schema = 'ctx'"
            " AND table_name = %s ORDER BY ordinal_position",
            (table,),
        )
    ]
    values = ", ".join(changed.get(column, f"b.{column}") for column in columns)
    this, other = _KEYS[table]
    return (
        f"INSERT INTO ctx.{table} ({', '.join(columns)}) SELECT {values} FROM base.{table} AS b"
        f" JOIN renamed AS m ON m.old = b.{this} LEFT JOIN renamed AS t ON t.old = b.{other}"
    )


def size_of(server: PostgresServer, database: str) -> int:
    """The bytes of all tables and indexes of ctx."""
    with server.connect(database=database) as admin:
        row = admin.execute(
            "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class AS c"
            " JOIN pg_namespace AS n ON n.oid = c.relnamespace"
            " WHERE n.nspname = 'ctx' AND c.relkind = 'r'"
        ).fetchone()
    return int(str(row[0])) if row else 0


# Catching up


def exchange(path: str, url: str, name: str) -> tuple[int, str]:
    """Sync a store with the server: the records sent and received, and the time."""
    started, cpu_before = time.perf_counter(), time.process_time()
    with (
        closing(TeamTarget(url)) as target,
        closing(user_store.open_for_writing(path)) as connection,
    ):
        replica = Replica(ids.new_ulid(), name, "2026-01-20T10:00:00Z", False)
        counts = Replication(connection, "team", target, {}, replica).run()
    wall_s, cpu_s = time.perf_counter() - started, time.process_time() - cpu_before
    time_text = f"{wall_s:.1f} s, CPU of the client {cpu_s:.1f} s"
    return counts.sent_records + counts.received_records, time_text


def catching_up(server: PostgresServer, folder: Path, records: int) -> list[Figure]:
    prepare(server, "catching_up")
    url = server.url(MEMBER, "catching_up")
    one, other = str(folder / "one.db"), str(folder / "other.db")
    fill(one, records)
    sent, sending = exchange(one, url, "one")
    received, receiving = exchange(other, url, "other")
    assert sent == received == records
    with server.connect(MEMBER, "catching_up") as member:
        (row,) = member.execute("SELECT sum(octet_length(data)) FROM ctx.batches").fetchall()
    return [
        Figure(f"send {records:,} records", sending),
        Figure(f"catch up {records:,} records", receiving),
        Figure("batches, bytes per record", f"{int(str(row[0])) / records:,.0f}"),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench team")
    parser.add_argument("--most", type=int, default=SIZES[-1], help="the most nodes (%(default)s)")
    parser.add_argument("--clients", type=int, default=20, help="clients at once (%(default)s)")
    parser.add_argument(
        "--records", type=int, default=100_000, help="records to catch up (%(default)s)"
    )
    parser.add_argument("--data", type=Path, help="keep the loaded nodes in this folder")
    options = parser.parse_args()
    series: dict[str, list[tuple[float, float]]] = {}
    figures: list[Figure] = []
    with (
        tempfile.TemporaryDirectory() as temporary,
        running(options.data or Path(temporary)) as server,
    ):
        folder = options.data or Path(temporary)
        command = "python -m bench team" if options.data else ""
        exchanged = catching_up(server, Path(temporary), options.records)
        report.show("team-exchange", exchanged, "one client", command)
        for size in [size for size in SIZES if size <= options.most]:
            figures += grown(server, folder, size, options.clients, series)
        note = f"p50 / p95 of {options.clients} clients at once"
        report.show("team-reads", figures, note, command)
    title = f"p95 of a read, {options.clients} clients at once"
    lines = [Series(name, points) for name, points in series.items()]
    report.draw(Plot("team-reads", title, "nodes", "ms", lines))
    return 0


def grown(
    server: PostgresServer,
    folder: Path,
    size: int,
    clients: int,
    series: dict[str, list[tuple[float, float]]],
) -> list[Figure]:
    """The figures of a server with this many nodes; the plot gets the p95 of the answers."""
    database, store = database_of(server, folder, size), store_of(folder, size)
    bytes_per_node = size_of(server, database) / size
    figures = [Figure(f"{size:,} nodes: bytes per node", f"{bytes_per_node:,.0f}")]
    here = partial(user_store.open_for_reading, store)
    there = partial(on_server, server.url(MEMBER, database))
    for read in READS:
        name = f"{size:,} nodes: {read.name}"
        alone = ms(cpu(there, read)), ms(cpu(here, read))
        figures.append(Figure(f"{name}, CPU", alone[0], baseline=f"{alone[1]} on SQLite"))
        ours, theirs = latency(clients, there, read), latency(clients, here, read)
        figures.append(Figure(f"{name}, wall", str(ours), baseline=f"{theirs} on SQLite"))
        series.setdefault(f"{read.name}, server", []).append((size, ours.p95 * 1000))
        series.setdefault(f"{read.name}, SQLite", []).append((size, theirs.p95 * 1000))
    return figures


@contextmanager
def running(folder: Path) -> Iterator[PostgresServer]:
    """A server with its data in a folder."""
    data = folder / "server"
    data.mkdir(parents=True, exist_ok=True)
    # PostgreSQL does not run as root, and its user must be able to enter the folder.
    data.parent.chmod(0o755)
    server = PostgresServer(data, "shared_buffers=2GB")
    server.start()
    try:
        yield server
    finally:
        server.stop()


if __name__ == "__main__":
    raise SystemExit(main())
