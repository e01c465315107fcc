"""Three machines of one person exchange random changes through a PostgreSQL server."""

import random
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest

from ctx.memory import replicas
from ctx.sync import replicate, team_graph
from ctx.sync.replicate import Replication
from ctx.sync.team_target import TeamTarget
from tests import effort
from tests.memory.graphs import assert_sound, graph, tables
from tests.postgres_server import PostgresServer
from tests.sync.replicas_in_memory import HOUR_MS, Machine, random_steps, skewed_clock

SEEDS = range(effort.times(5))
OPERATIONS = 300


class TeamMachine(Machine):
    """A machine whose target is the server; its connection is cut now and then."""

    target: TeamTarget

    def sync(self) -> None:
        Replication(self.connection, "team", self.target, {}, self.replica).run()


@pytest.fixture
def machines(postgres: PostgresServer, database: str) -> Iterator[list[TeamMachine]]:
    with ExitStack() as stack:
        made = []
        for name, skew in (("laptop", 0), ("desktop", HOUR_MS), ("server", -HOUR_MS)):
            machine = TeamMachine(stack.enter_context(graph()), name, skew)
            machine.target = TeamTarget(postgres.url(database=database))
            stack.enter_context(closing(machine.target))
            made.append(machine)
        yield made


@pytest.mark.parametrize("seed", SEEDS)
def test_stores_and_server_become_identical(
    seed: int,
    machines: list[TeamMachine],
    postgres: PostgresServer,
    database: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chance = random.Random(seed)
    at = skewed_clock(monkeypatch)
    left = dict.fromkeys(range(3), OPERATIONS)
    while any(left.values()):
        number = chance.choice([number for number, rest in left.items() if rest])
        machine = machines[number]
        at(machine.skew_ms)
        some = min(left[number], chance.randrange(1, 30))
        machine.work(random_steps(chance, some))
        left[number] -= some
        if chance.random() < 0.1:
            machine.scrub(f"Content {chance.randrange(8)}")
        if chance.random() < 0.6:
            machine.sync()
        if chance.random() < 0.2:
            machine.target.close()
        known = replicas.known_batches(machine.connection, machine.replica.id)
        if known and chance.random() < 0.2:
            # A repeated batch, as after a restored backup.
            machine.forget_batches(chance.sample(sorted(known), 1))
    for _ in range(4):
        for machine in machines:
            at(machine.skew_ms)
            machine.sync()
    states = [machine.state() for machine in machines]
    assert states[0] == states[1] == states[2]
    for machine in machines:
        assert_sound(machine.connection)
        assert not replicas.unsent_ids(machine.connection, machine.replica.id)
        assert not list(replicas.unconfirmed(machine.connection, machine.replica.id))
    assert on_server(postgres, database) == in_store(machines[0])


def test_what_the_server_reads_grows_with_what_is_exchanged(
    machines: list[TeamMachine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each batch reads its own records, not all of them."""
    monkeypatch.setattr(replicate, "_MOST_RECORDS", 50)
    monkeypatch.setattr(team_graph, "_PART", 50)
    one, other, _ = machines
    one.work([("add", 0, 0, 0)] * 600)
    for machine in (one, other):
        machine.sync()
        machine.target.connection().execute("SELECT pg_stat_force_next_flush()")
    connection = one.target.connection()
    read = connection.execute(
        "SELECT sum(seq_tup_read + idx_tup_fetch)::integer FROM pg_stat_user_tables"
        " WHERE schemaname = 'ctx' AND relname LIKE 'records%'"
    ).fetchall()[0][0]
    stored = connection.execute("SELECT count(*) FROM ctx.records").fetchall()[0][0]
    assert 600 <= stored <= read <= 3 * stored


def on_server(postgres: PostgresServer, database: str) -> dict[str, list[tuple[Any, ...]]]:
    statements = {
        "nodes": "SELECT id, type, content, summary, token_estimate, created_at, updated_at,"
        " metadata::text FROM ctx.nodes",
        "tags": "SELECT node_id, tag, created_at FROM ctx.tags",
        "edges": "SELECT id, from_id, to_id, type, created_at, metadata::text FROM ctx.edges",
        "records": "SELECT id, body::text FROM ctx.records",
    }
    with postgres.connect(database=database) as connection:
        return {
            name: sorted(connection.execute(sql.encode()).fetchall(), key=str)
            for name, sql in statements.items()
        }


def in_store(machine: Machine) -> dict[str, list[tuple[Any, ...]]]:
    found = tables(machine.connection)
    # Current tasks stay on a machine, and every new store has the initial records.
    records = machine.connection.execute(
        "SELECT id, body FROM records WHERE kind <> 'task.set' AND stamp > 0"
    ).fetchall()
    return {
        "nodes": sorted(((*row[:5], *row[6:9]) for row in found["nodes"]), key=str),
        "tags": sorted(found["tags"], key=str),
        "edges": sorted(found["edges"], key=str),
        "records": sorted(records, key=str),
    }
