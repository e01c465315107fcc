"""The two engines that a graph can be on: SQLite, and a team's PostgreSQL server.

A test module runs on both with

    pytestmark = pytest.mark.usefixtures("engine")
"""

from contextlib import ExitStack, closing

import psycopg

from ctx.direct import team_graph_store
from ctx.memory.graph import Graph
from ctx.sync import team_schema
from tests.postgres_server import PostgresServer

MEMBER = "engine"
PROJECTS = ("shop",)
"""Projects of the server; other nodes are personal."""
_TABLES = ("records", "nodes", "tags", "stored_edges", "subjects", "batches")


class ServerEngine:
    """A prepared database, which is emptied for each graph."""

    def __init__(self, postgres: PostgresServer, database: str) -> None:
        self._postgres = postgres
        self._database = database
        with postgres.connect(database=database) as connection:
            team_schema.migrate(connection)
            connection.execute(f"DROP ROLE IF EXISTS {MEMBER}".encode())
            connection.execute(f"CREATE ROLE {MEMBER} LOGIN IN ROLE ctx_member".encode())
        with self.connect() as connection:
            for project in PROJECTS:
                connection.execute("INSERT INTO ctx.projects (name) VALUES (%s)", (project,))
        self._opened = ExitStack()
        self._administrator = self._opened.enter_context(
            closing(postgres.connect(database=database))
        )
        self._graph = self._opened.enter_context(team_graph_store.open_graph(self.url))

    @property
    def url(self) -> str:
        return self._postgres.url(MEMBER, self._database)

    def connect(self) -> psycopg.Connection[tuple[object, ...]]:
        return self._postgres.connect(MEMBER, self._database)

    def empty(self) -> None:
        # With so few rows, this is faster than TRUNCATE.
        self._administrator.execute(
            ";".join(f"DELETE FROM ctx.{name}" for name in _TABLES).encode()
        )

    def close(self) -> None:
        self._opened.close()

    def empty_graph(self) -> Graph:
        """The graph of one connection, which stays open: a new one reads the catalogue again."""
        self.empty()
        return self._graph


server: ServerEngine | None = None
"""The engine of the current test; None: SQLite."""
