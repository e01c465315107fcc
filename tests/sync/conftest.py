"""A PostgreSQL server for the tests of this folder, started once."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.postgres_server import PostgresServer

_NUMBERS = count(1)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    # Not under pytest's own folder, which only its user may enter.
    folder = Path(tempfile.mkdtemp(prefix="ctx-postgres-"))
    try:
        server = PostgresServer(folder)
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def database(postgres: PostgresServer) -> str:
    """The name of a new, empty database."""
    name = f"memory_{os.getpid()}_{next(_NUMBERS)}"
    with postgres.connect() as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return name
