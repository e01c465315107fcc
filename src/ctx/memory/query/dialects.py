"""The SQL engines that a query can be compiled for.

Statements are written in SQLite's SQL. `direct/translation.py` changes the spelling for PostgreSQL,
and leaves out what only chooses a query plan. A dialect is for what works differently: PostgreSQL
chooses a plan by statistics, and searches text in another way (`tsvector_search.py`).
"""

from collections.abc import Sequence
from enum import Enum
from sqlite3 import Connection


class Dialect(Enum):
    SQLITE = "sqlite"
    POSTGRESQL = "postgresql"


def dialect_of(connections: Sequence[Connection]) -> Dialect:
    """The dialect of the connections of one graph. SQLite's own connections do not name one."""
    for connection in connections:
        dialect: Dialect = getattr(connection, "dialect", Dialect.SQLITE)
        return dialect
    return Dialect.SQLITE
