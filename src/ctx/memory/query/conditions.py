"""The filters in SQL: a condition on the node `n`, and a list of the matching ids."""

from collections.abc import Iterable, Sequence
from enum import Enum
from sqlite3 import Connection
from typing import NamedTuple

from ctx.memory.query.filters import (
    Filter,
    HasFilter,
    IdFilter,
    LinkedFrom,
    LinkedTo,
    OtherNameFilter,
    PathFilter,
    SessionFilter,
    TagFilter,
    TagPrefixFilter,
    TokensFilter,
    TypeFilter,
)
from ctx.memory.query.query_parser import And, Expression, Not, Or
from ctx.memory.query.time_filters import TimeFilter


class Dialect(Enum):
    """An SQL engine that a query can be compiled for.

    Statements are written in SQLite's SQL. `direct/translation.py` changes the spelling for
    PostgreSQL, and leaves out what only chooses a query plan. A dialect is for what works
    differently: PostgreSQL chooses a plan by statistics, and searches text in another way
    (`tsvector_search.py`).
    """

    SQLITE = "sqlite"
    POSTGRESQL = "postgresql"


# Characters that sort after all characters of an id or a tag.
_AFTER_IDS, _AFTER_TEXT = "~", "\U0010ffff"
_FEW_TAGS = 4
_HAS = {
    "summary": "+{row}.summary IS NOT NULL",
    "metadata": "CAST({row}.metadata AS text) <> '{{}}'",
    "superseded": "+{row}.superseded_by IS NOT NULL",
    "tags": "EXISTS (SELECT 1 FROM tags WHERE node_id = n.id)",
    "edges": "(EXISTS (SELECT 1 FROM edges WHERE from_id = n.id)"
    " OR EXISTS (SELECT 1 FROM edges WHERE to_id = n.id))",
}


class SqlFragment(NamedTuple):
    """A part of a statement and its parameters."""

    sql: str
    parameters: tuple[str | int, ...] = ()


def join_fragments(pieces: Iterable[SqlFragment], separator: str) -> SqlFragment:
    fragments = list(pieces)
    return SqlFragment(
        separator.join(piece.sql for piece in fragments),
        tuple(value for piece in fragments for value in piece.parameters),
    )


def condition(expression: Expression, now_ms: int, row: str = "n") -> SqlFragment:
    """Whether the expression is true for the node with the id `n.id`. The result is never null.

    `row` has the columns of the node. If it is not `n` itself, conditions on the id alone are
    checked before the row is read.
    """
    match expression:
        case And(()):
            return SqlFragment("TRUE")
        case Or(()):
            return SqlFragment("FALSE")
        case And(parts):
            inner = join_fragments((condition(part, now_ms, row) for part in parts), " AND ")
            return SqlFragment(f"({inner.sql})", inner.parameters)
        case Or(parts):
            tags = tuple(part.tag for part in parts if isinstance(part, TagFilter))
            others = [
                condition(part, now_ms, row) for part in parts if not isinstance(part, TagFilter)
            ]
            inner = join_fragments([_has_tag(tags), *others] if tags else others, " OR ")
            return SqlFragment(f"({inner.sql})", inner.parameters)
        case Not(part):
            inner = condition(part, now_ms, row)
            return SqlFragment(f"NOT {inner.sql}", inner.parameters)
        case _:
            return _filter_condition(expression, now_ms, row)


def _filter_condition(filter_: Filter, now_ms: int, row: str) -> SqlFragment:
    match filter_:
        case TagFilter(tag):
            return _has_tag((tag,))
        case TagPrefixFilter(prefix):
            return SqlFragment(
                "EXISTS (SELECT 1 FROM tags WHERE node_id = n.id AND tag >= ? AND tag < ?)",
                (prefix, prefix + _AFTER_TEXT),
            )
        case TypeFilter(name):
            return SqlFragment(f"+{row}.type = ?", (name,))
        case TimeFilter():
            return _time_range(f"+{row}.{filter_.column}", filter_, now_ms)
        case TokensFilter(comparison, number):
            return SqlFragment(f"+{row}.token_estimate {comparison} ?", (number,))
        case HasFilter(what):
            return SqlFragment(_HAS[what].format(row=row))
        case IdFilter(prefix):
            return SqlFragment("(+n.id >= ? AND +n.id < ?)", (prefix, prefix + _AFTER_IDS))
        case OtherNameFilter(namespace, name):
            # Zero if the node has no tag in the namespace. The bounds are literals, so that a
            # partial index can be used.
            return SqlFragment(
                "coalesce((SELECT min(CASE WHEN tag <> ? THEN 1 ELSE 0 END) FROM tags"
                f" WHERE node_id = n.id AND tag >= '{namespace}' AND tag < '{namespace[:-1]};'), 0)"
                " = 1",
                (namespace + name,),
            )
        case LinkedFrom() | LinkedTo() | SessionFilter() | PathFilter():
            fragment = ids(filter_, now_ms)
            return SqlFragment(f"+n.id IN ({fragment.sql})", fragment.parameters)


def _has_tag(tags: tuple[str, ...]) -> SqlFragment:
    places = ", ".join("?" * len(tags))
    # A few tags are looked up. Many tags are compared with the tags of the node.
    column, index = ("tag", " INDEXED BY idx_tags_tag") if len(tags) <= _FEW_TAGS else ("+tag", "")
    return SqlFragment(
        f"EXISTS (SELECT 1 FROM tags{index} WHERE node_id = n.id AND {column} IN ({places}))", tags
    )


def _time_range(column: str, time: TimeFilter, now_ms: int) -> SqlFragment:
    start, end = time.bounds(now_ms)
    bounds = [SqlFragment(f"{column} >= ?", (start,))] if start is not None else []
    bounds += [SqlFragment(f"{column} < ?", (end,))] if end is not None else []
    fragment = join_fragments(bounds, " AND ")
    return SqlFragment(f"({fragment.sql})", fragment.parameters)


def reads_row(expression: Expression) -> bool:
    """Whether the condition needs columns other than the id."""
    match expression:
        case And(parts) | Or(parts):
            return any(map(reads_row, parts))
        case Not(part):
            return reads_row(part)
        case HasFilter(what):
            return what in ("summary", "metadata", "superseded")
        case _:
            return isinstance(expression, TypeFilter | TimeFilter | TokensFilter)


def ids(filter_: Filter, now_ms: int) -> SqlFragment:
    """The distinct ids of the nodes that match a filter. For tags and types, they are in order.

    The indexes are named, because SQLite might choose one for the order instead of the filter.
    """
    match filter_:
        case TagFilter(tag):
            return SqlFragment(
                "SELECT node_id AS id FROM tags INDEXED BY idx_tags_tag WHERE tag = ?", (tag,)
            )
        case TagPrefixFilter(prefix):
            return SqlFragment(
                "SELECT DISTINCT node_id AS id FROM tags INDEXED BY idx_tags_tag"
                " WHERE tag >= ? AND tag < ?",
                (prefix, prefix + _AFTER_TEXT),
            )
        case TypeFilter(name):
            return SqlFragment(
                "SELECT id FROM nodes INDEXED BY idx_nodes_type WHERE type = ?", (name,)
            )
        case TimeFilter(column):
            index = "idx_nodes_created" if column == "created_at" else "idx_nodes_updated"
            bounds = _time_range(column, filter_, now_ms)
            return SqlFragment(
                f"SELECT id FROM nodes INDEXED BY {index} WHERE {bounds.sql}", bounds.parameters
            )
        case HasFilter("superseded"):
            return SqlFragment(
                "SELECT id FROM nodes INDEXED BY idx_nodes_replaced WHERE superseded_by IS NOT NULL"
            )
        case IdFilter(prefix):
            return SqlFragment(
                "SELECT id FROM nodes INDEXED BY sqlite_autoindex_nodes_1 WHERE id >= ? AND id < ?",
                (prefix, prefix + _AFTER_IDS),
            )
        case LinkedFrom(prefix):
            return SqlFragment(
                "SELECT DISTINCT to_id AS id FROM edges INDEXED BY idx_edges_unique"
                " WHERE from_id >= ? AND from_id < ?",
                (prefix, prefix + _AFTER_IDS),
            )
        case LinkedTo(prefix):
            return SqlFragment(
                "SELECT DISTINCT from_id AS id FROM edges INDEXED BY idx_edges_to"
                " WHERE to_id >= ? AND to_id < ?",
                (prefix, prefix + _AFTER_IDS),
            )
        case SessionFilter(name):
            # Records can also be about edges and deleted nodes. The condition on the empty session
            # lets SQLite use a partial index that excludes it.
            return SqlFragment(
                "SELECT id FROM (SELECT node_id AS id FROM tags WHERE tag = ? UNION"
                " SELECT subject FROM records"
                " CROSS JOIN nodes AS n INDEXED BY sqlite_autoindex_nodes_1 ON n.id = subject"
                " WHERE session = ? AND session <> '') AS touched",
                (f"session:{name}", name),
            )
        case PathFilter(pattern):
            return _at_path(pattern)
        case _:
            raise AssertionError(f"{filter_} is looked up for each node")


def _at_path(pattern: str) -> SqlFragment:
    """The nodes of a path, and those that mention them."""
    path = "json_extract(metadata, '$.path')"
    wanted = pattern.removeprefix("./").rstrip("/") if pattern != "." else "*"
    fixed = min((wanted.find(sign) for sign in "*?[" if sign in wanted), default=len(wanted))
    # The first two comparisons allow the use of an index, if there is one.
    bounds = (wanted[:fixed], wanted[:fixed] + _AFTER_TEXT)
    if fixed == len(wanted):
        matches = SqlFragment(f"({path} = ? OR {path} >= ?)", (wanted, f"{wanted}/"))
        bounds = (wanted, f"{wanted}0")  # The character after the slash.
    else:
        # `**` also matches no folder at all. A name may contain brackets that are not a pattern.
        patterns = {wanted, wanted.replace("**/", "").replace("**", "*")}
        globs = [SqlFragment(f"{path} GLOB ?", (glob,)) for glob in sorted(patterns)]
        matches = join_fragments([SqlFragment(f"{path} = ?", (wanted,)), *globs], " OR ")
    return SqlFragment(
        "SELECT id FROM (WITH found AS MATERIALIZED (SELECT id FROM nodes"
        f" WHERE {path} >= ? AND {path} < ? AND ({matches.sql}))"
        " SELECT id FROM found UNION SELECT from_id FROM edges INDEXED BY idx_edges_to"
        " WHERE to_id IN (SELECT id FROM found) AND type = 'MENTIONS') AS there",
        bounds + matches.parameters,
    )


def dialect_of(connections: Sequence[Connection]) -> Dialect:
    """The dialect of the connections of one graph. SQLite's own connections do not name one."""
    for connection in connections:
        dialect: Dialect = getattr(connection, "dialect", Dialect.SQLITE)
        return dialect
    return Dialect.SQLITE
