"""A team's server with members, and containers without a store."""

import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from psycopg import errors

from ctx.sync.team_target import TeamTarget
from tests.conftest import Ctx, Ran
from tests.postgres_server import PostgresServer

PEOPLE = ("anna", "ben", "cleo")
Container = Callable[..., Ran]
Sql = Callable[..., list[tuple[Any, ...]]]


@pytest.fixture
def team(postgres: PostgresServer, database: str) -> str:
    """A prepared database. In the project shop, anna is the owner, ben writes and cleo reads."""
    with closing(TeamTarget(postgres.url(database=database))) as target:
        target.listing()
    with postgres.connect(database=database) as connection:
        for person in PEOPLE:
            try:
                connection.execute(f"CREATE ROLE {person} LOGIN IN ROLE ctx_member".encode())
            except errors.DuplicateObject:
                pass
    with postgres.connect("anna", database) as connection:
        connection.execute("INSERT INTO ctx.projects (name) VALUES ('shop')")
        connection.execute(
            "INSERT INTO ctx.members (project, member, role)"
            " VALUES ('shop', 'ben', 'writer'), ('shop', 'cleo', 'reader')"
        )
    return database


@pytest.fixture
def container(
    ctx: Ctx, postgres: PostgresServer, team: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Container:
    """Run a command as somebody, on the server itself."""
    monkeypatch.setenv("CTX_HOME", str(tmp_path / "container"))
    monkeypatch.setattr(os, "uname", lambda: _Uname("container"))

    def run(person: str, *words: str, code: int = 0) -> Ran:
        monkeypatch.setenv("CTX_DB", postgres.url(person, team))
        ran = ctx(*words)
        monkeypatch.delenv("CTX_DB")
        assert ran.code == code, ran.err
        assert not os.path.exists(tmp_path / "container" / "store.db")
        return ran

    return run


@pytest.fixture
def sql(postgres: PostgresServer, team: str) -> Sql:
    """Run a statement as somebody."""

    def run(person: str, statement: str, *values: object) -> list[tuple[Any, ...]]:
        with postgres.connect(person, team) as connection:
            cursor = connection.execute(statement.encode(), values or None)
            return cursor.fetchall() if cursor.description else []

    return run


class _Uname:
    def __init__(self, machine: str) -> None:
        self.nodename = machine
