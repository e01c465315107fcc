"""Finds the nodes that may answer a question, and the data to rank them.

A question is answered by comparing a few hundred nodes well rather than all of them roughly. This
module finds them and reads what ranking needs: how rare a word is, the text of a node, and its
neighbours in the session. The caller ranks them.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from sqlite3 import Connection
from typing import NamedTuple

from ctx.ids import NodeId
from ctx.memory.query import execute, tsvector_search
from ctx.memory.query.compile import Scope, SearchWords, compile_among, compile_query
from ctx.memory.query.conditions import Dialect, dialect_of
from ctx.memory.query.query_parser import Query
from ctx.memory.query.tsvector_search import SearchTerm

MOST_MATCHES = execute.MOST_RANKED
"""The maximum number of matches to rank. Ranking more takes too long, and words that so many nodes
have are not informative."""

LONGEST_TEXT = 60_000
"""The maximum number of characters of a node's words to compare."""

_PART = 400
_SHORTEST_MISSPELT = 4
_MOST_ALIKE = 300
_MANY_NODES = 20_000
_MOST_READ = 2_000


class NodeText(NamedTuple):
    """The text of a node."""

    id: NodeId
    terms: str
    """Its words from `ctx.terms`, separated by spaces."""
    session: str
    """The tag of its session; empty if it has none."""
    created_at: str
    is_superseded: bool


class NodeVocabulary:
    """How many nodes have a word, over several stores."""

    def __init__(self, connections: Sequence[Connection]) -> None:
        is_server = dialect_of(connections) is Dialect.POSTGRESQL
        kind = TsvectorVocabulary if is_server else FtsVocabulary
        self._stores: list[FtsVocabulary | TsvectorVocabulary] = [
            kind(connection) for connection in connections
        ]
        self.nodes = sum(store.nodes for store in self._stores)

    def count(self, term: str) -> int:
        """How many nodes have a word; a prefix counts as rare."""
        return sum(store.count(term) for store in self._stores)

    def alike(self, term: str) -> list[str]:
        """The words at one typing error from an unknown word.

        People rarely mistype the beginning of a word; without that rule `mango` matches `mongo`.
        """
        if len(term) < _SHORTEST_MISSPELT or not (term.isascii() and term.isalpha()):
            return []
        # Scanning the words of a large store takes time.
        beginning = term[: 2 if self.nodes < _MANY_NODES else 3]
        words = {word for store in self._stores for word in store.beginning_with(beginning)}
        return sorted(word for word in words if _is_slip(term, word))


class FtsVocabulary:
    """The words of one store, as the text index of SQLite lists them."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        # The tables in `temp` belong to this connection: nothing is written to the file.
        connection.execute(
            "CREATE VIRTUAL TABLE IF NOT EXISTS temp.node_words"
            " USING fts5vocab(main, nodes_fts, col)"
        )
        # The number of indexed nodes that the text index stores. Counting the nodes takes longer.
        sql = "SELECT count(*) FROM nodes_fts_docsize"
        self.nodes: int = connection.execute(sql).fetchone()[0]

    def count(self, term: str) -> int:
        sql = "SELECT doc FROM temp.node_words WHERE term = ? AND col = 'terms'"
        row = self._connection.execute(sql, (term,)).fetchone()
        return row[0] if row else 0

    def beginning_with(self, prefix: str) -> list[str]:
        rows = self._connection.execute(
            "SELECT term FROM temp.node_words WHERE term >= ? AND term < ? AND col = 'terms'"
            " LIMIT ?",
            (prefix, f"{prefix}~", _MOST_ALIKE),
        )
        return [row[0] for row in rows]


class TsvectorVocabulary:
    """The words of a team's server. PostgreSQL has no list of them."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        row = connection.execute("SELECT CAST(nodes AS bigint) FROM corpus()").fetchone()
        self.nodes: int = row[0]

    def count(self, term: str) -> int:
        counted = tsvector_search.count_with(SearchTerm(term))
        count: int = self._connection.execute(counted.sql, counted.parameters).fetchone()[0]
        return count

    def beginning_with(self, prefix: str) -> list[str]:
        """Words that begin so, from some of the nodes that have any."""
        rows = self._connection.execute(
            "SELECT DISTINCT w.lexeme FROM nodes_with(CAST(? AS tsquery), ?) AS found,"
            " unnest(found.search) AS w WHERE starts_with(w.lexeme, ?) LIMIT ?",
            (SearchTerm(prefix, is_prefix=True).query, _MOST_READ, prefix, _MOST_ALIKE),
        )
        return [row[0] for row in rows]


def _is_slip(typed: str, meant: str) -> bool:
    """Whether one letter is missing, extra, wrong, or swapped with the next one."""
    if abs(len(typed) - len(meant)) > 1 or typed == meant:
        return False
    at = next((at for at, (a, b) in enumerate(zip(typed, meant)) if a != b), None)  # noqa: B905
    if at is None:
        return True
    return (
        typed[at + 1 :] == meant[at + 1 :]
        or typed[at + 1 :] == meant[at:]
        or typed[at:] == meant[at + 1 :]
        or (typed[at : at + 2] == meant[at : at + 2][::-1] and typed[at + 2 :] == meant[at + 2 :])
    )


def best_by_terms(
    connections: Sequence[Connection],
    query: Query,
    scope: Scope,
    now_ms: int,
    terms: Iterable[str],
    limit: int,
) -> list[NodeId]:
    """The best nodes by these terms alone, among those that have one of them.

    If no filter narrows the matches, only the newest are ranked.
    """
    is_wide = query.tree is None and scope.project is None and scope.task is None
    newest = MOST_MATCHES if is_wide else None
    words = SearchWords(tuple((term,) for term in terms), any_of_them=True, newest=newest)
    dialect = dialect_of(connections)
    statement = compile_query(query, scope, now_ms, words, dialect=dialect)
    statement = execute.first_rows(statement, limit, dialect)
    node_ids: dict[NodeId, None] = {}
    for connection in connections:
        rows = connection.execute(statement.sql, statement.parameters)
        node_ids.update((row[0], None) for row in islice(rows, limit))
    return list(node_ids)


def newest(
    connections: Sequence[Connection], query: Query, scope: Scope, now_ms: int, limit: int
) -> list[NodeId]:
    """The newest nodes that match the filters of a question, whatever their words."""
    dialect = dialect_of(connections)
    statement = compile_query(query._replace(mode="filters"), scope, now_ms, dialect=dialect)
    statement = execute.first_rows(statement, limit, dialect)
    newest_ids: dict[NodeId, None] = {}
    for connection in connections:
        rows = connection.execute(statement.sql, statement.parameters)
        newest_ids.update((row[0], None) for row in islice(rows, limit))
    return list(newest_ids)


def visible_nodes(
    connections: Sequence[Connection],
    query: Query,
    scope: Scope,
    now_ms: int,
    node_ids: Collection[NodeId],
) -> set[NodeId]:
    """Which of these nodes match the filters of a question and are in its scope."""
    visible: set[NodeId] = set()
    for part in _parts(node_ids):
        statement = compile_among(query, scope, now_ms, part)
        for connection in connections:
            rows = connection.execute(statement.sql, statement.parameters)
            visible.update(row[0] for row in rows)
    return visible


def texts(connections: Sequence[Connection], node_ids: Collection[NodeId]) -> Iterator[NodeText]:
    """The texts of the nodes, each once, unordered."""
    yielded: set[NodeId] = set()
    for connection in connections:
        for part in _parts(node_ids):
            places = ", ".join("?" * len(part))
            rows = connection.execute(
                f"SELECT id, substr(terms, 1, {LONGEST_TEXT}), coalesce((SELECT tag FROM tags"
                " WHERE node_id = id AND tag >= 'session:' AND tag < 'session;' LIMIT 1), ''),"
                f" created_at, superseded_by IS NOT NULL FROM nodes WHERE id IN ({places})",
                part,
            )
            for text in map(NodeText._make, rows):
                if text.id not in yielded:
                    yielded.add(text.id)
                    yield text


def contents(
    connections: Sequence[Connection], node_ids: Collection[NodeId], length: int
) -> dict[NodeId, str]:
    """The beginnings of the nodes as they were written, up to some characters."""
    by_node: dict[NodeId, str] = {}
    for connection in connections:
        for part in _parts(node_ids):
            places = ", ".join("?" * len(part))
            sql = f"SELECT id, substr(content, 1, ?) FROM nodes WHERE id IN ({places})"
            by_node.update(connection.execute(sql, (length, *part)))
    return by_node


def session_neighbours(
    connections: Sequence[Connection], sessions: Mapping[NodeId, str], reach: int
) -> dict[NodeId, list[tuple[NodeId, int]]]:
    """The neighbours of each node in its session, with their distance."""
    by_node: dict[NodeId, list[tuple[NodeId, int]]] = {node_id: [] for node_id in sessions}
    if dialect_of(connections) is Dialect.POSTGRESQL:
        for connection in connections:
            _add_neighbours_at_once(connection, sessions, reach, by_node)
        return by_node
    before = "SELECT node_id FROM tags WHERE tag = ? AND node_id < ? ORDER BY node_id DESC LIMIT ?"
    after = "SELECT node_id FROM tags WHERE tag = ? AND node_id > ? ORDER BY node_id LIMIT ?"
    for node_id, session in sessions.items():
        near = by_node[node_id]
        for connection in connections:
            for sql in (before, after):
                rows = connection.execute(sql, (session, node_id, reach))
                near += [(row[0], steps) for steps, row in enumerate(rows, start=1)]
    return by_node


def _add_neighbours_at_once(
    connection: Connection,
    sessions: Mapping[NodeId, str],
    reach: int,
    by_node: Mapping[NodeId, list[tuple[NodeId, int]]],
) -> None:
    """Each statement takes a way to the server and back, so there is one for many nodes."""
    for part in _parts(sessions):
        places = ", ".join(["(?, ?)"] * len(part))
        near = " UNION ALL ".join(
            f"(SELECT node_id, row_number() OVER (ORDER BY node_id {order}) AS steps FROM tags"
            f" WHERE tag = w.session AND node_id {sign} w.id ORDER BY node_id {order} LIMIT ?)"
            for sign, order in (("<", "DESC"), (">", "ASC"))
        )
        rows = connection.execute(
            f"WITH wanted (id, session) AS (VALUES {places})"
            f" SELECT w.id, near.node_id, near.steps FROM wanted AS w, LATERAL ({near}) AS near"
            " ORDER BY near.steps, near.node_id",
            (*(word for node_id in part for word in (node_id, sessions[node_id])), reach, reach),
        )
        for node_id, other, steps in rows:
            by_node[node_id].append((other, steps))


def _parts(node_ids: Iterable[NodeId]) -> Iterator[list[NodeId]]:
    waiting = iter(node_ids)
    while part := list(islice(waiting, _PART)):
        yield part
