"""The engines that the tests of this folder run on."""

import os
from collections.abc import Iterator
from contextlib import closing

import pytest

from tests import engines
from tests.postgres_server import PostgresServer


@pytest.fixture(scope="session")
def server_engine(postgres: PostgresServer) -> Iterator[engines.ServerEngine]:
    name = f"engine_{os.getpid()}"
    with postgres.connect() as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    with closing(engines.ServerEngine(postgres, name)) as server:
        yield server


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Tests about SQLite alone, such as about its query plans, are marked `sqlite`."""
    if "engine" in metafunc.fixturenames:
        is_general = metafunc.definition.get_closest_marker("sqlite") is None
        engines_to_run = ["sqlite", "postgresql"] if is_general else ["sqlite"]
        metafunc.parametrize("engine", engines_to_run, indirect=True, scope="module")


@pytest.fixture(scope="module")
def engine(request: pytest.FixtureRequest) -> Iterator[str]:
    """Runs the tests of a module on SQLite, then on a team's server."""
    if request.param == "postgresql":
        engines.server = request.getfixturevalue("server_engine")
    try:
        yield request.param
    finally:
        engines.server = None
