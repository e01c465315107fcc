"""The people of a team, and their machines."""

import os
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from psycopg import errors

from ctx.sync.team_target import TeamTarget
from tests.conftest import Ctx, Ran
from tests.postgres_server import PostgresServer

On = Callable[..., Ran]
Sql = Callable[..., list[tuple[Any, ...]]]
PEOPLE = ("anna", "ben", "cleo", "dora")


@pytest.fixture
def team(postgres: PostgresServer, database: str) -> str:
    """A prepared database with four people; shop: anna owns it, ben writes, cleo reads."""
    with closing(TeamTarget(postgres.url(database=database))) as target:
        target.listing()
    with postgres.connect(database=database) as connection:
        for person in PEOPLE:
            with suppress(errors.DuplicateObject):
                connection.execute(f"CREATE ROLE {person} LOGIN IN ROLE ctx_member".encode())
    with postgres.connect("anna", database) as connection:
        connection.execute("INSERT INTO ctx.projects (name) VALUES ('shop')")
        connection.execute(
            "INSERT INTO ctx.members (project, member, role)"
            " VALUES ('shop', 'ben', 'writer'), ('shop', 'cleo', 'reader')"
        )
    with postgres.connect("dora", database) as connection:
        connection.execute("INSERT INTO ctx.projects (name) VALUES ('garden')")
    return database


@pytest.fixture
def sql(postgres: PostgresServer, team: str) -> Sql:
    """Run a statement as somebody."""

    def run(person: str, statement: str, *values: object) -> list[tuple[Any, ...]]:
        with postgres.connect(person, team) as connection:
            cursor = connection.execute(statement.encode(), values or None)
            return cursor.fetchall() if cursor.description else [(cursor.rowcount,)]

    return run


@pytest.fixture
def on(
    ctx: Ctx,
    postgres: PostgresServer,
    team: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> On:
    """Run a command on the machine of somebody: `anna`, or `anna-desktop`. The first one adds the
    target."""
    known: set[str] = set()

    def run(machine: str, *words: str, code: int = 0) -> Ran:
        monkeypatch.setenv("CTX_HOME", str(tmp_path / machine))
        monkeypatch.setattr(os, "uname", lambda: _Uname(machine))
        if machine not in known:
            known.add(machine)
            added = ctx("sync", "add", "team", postgres.url(machine.partition("-")[0], team))
            assert added.code == 0, added.err
        ran = ctx(*words)
        assert ran.code == code, ran.err
        return ran

    return run


class _Uname:
    def __init__(self, machine: str) -> None:
        self.nodename = f"the-{machine}"
