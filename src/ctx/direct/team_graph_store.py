"""A connection to a team's server with the part of SQLite's interface that `memory/` uses."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from sqlite3 import Connection
from typing import TYPE_CHECKING, Any, cast

from ctx.direct import send_records
from ctx.direct.translation import translate
from ctx.errors import SyncFailure
from ctx.memory.graph import Graph
from ctx.memory.query.conditions import Dialect
from ctx.sync import team_connection, team_schema

if TYPE_CHECKING:
    import psycopg


@contextmanager
def open_graph(url: str) -> Iterator[Graph]:
    """The graph of a team's server, as far as the user of the address may see it."""
    with closing(TeamConnection(url)) as connection:
        # The rest of ctx knows SQLite's connections alone, and uses what this class has of them.
        graph = Graph(cast(Connection, connection))
        graph.write_records = lambda records: send_records.write(
            connection.server, connection.user, records
        )
        yield graph


class TeamConnection:
    """Runs SQLite's statements on PostgreSQL. Every statement is a transaction, or part of one that
    `BEGIN` has started."""

    dialect = Dialect.POSTGRESQL

    def __init__(self, url: str) -> None:
        self.server = team_connection.connect(url)
        try:
            with team_connection.explain_errors():
                self.user = _prepare(self.server)
        except BaseException:
            self.server.close()
            raise

    @property
    def in_transaction(self) -> bool:
        from psycopg.pq import TransactionStatus

        status = self.server.info.transaction_status
        return status in (TransactionStatus.INTRANS, TransactionStatus.INERROR)

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> "psycopg.Cursor[Any]":
        import psycopg
        from psycopg.types.string import TextLoader

        translated = translate(sql)
        # Values are put into the statement here, because most of them have no type of their own.
        cursor = psycopg.ClientCursor(self.server)
        # Objects are read as text, as from SQLite.
        cursor.adapters.register_loader("json", TextLoader)
        with team_connection.explain_errors():
            return cursor.execute(translated.sql.encode(), translated.parameters(parameters))

    def close(self) -> None:
        self.server.close()


def _prepare(server: "psycopg.Connection[Any]") -> str:
    """Make a new connection read and write as a store's; returns the name of its user."""
    version = team_schema.prepare(server)
    if version < team_schema.DIRECT_VERSION:
        raise SyncFailure(
            "The tables of the server are too old to work on it without a replica.",
            hint="Ask its administrator to run `ctx sync` with this version of ctx.",
        )
    row = server.execute(
        "SELECT set_config('search_path', 'ctx_graph, pg_catalog', false),"
        # Compiling a statement takes longer than running it.
        " set_config('jit', 'off', false), current_user::text"
    ).fetchone()
    if row is None:
        raise SyncFailure("The server does not answer.")
    user: str = row[2]
    return user
