"""Spells the statements of `memory/` for PostgreSQL.

The statements are constant texts of ctx in SQLite's SQL, with `?` for every value. Only the
spelling differs here. What works differently is a dialect of its own (`memory/query/dialects.py`).
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

_WHOLE = {
    "BEGIN IMMEDIATE": "BEGIN",
    # A block that only reads sees the state of one moment.
    "BEGIN": "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
}
_SUPERSEDED = (
    r"EXISTS (SELECT 1 FROM superseded AS older WHERE older.id = \1.id"
    r" AND superseding(older.id) IS NOT NULL)"
)
_NOT_SUPERSEDED = (
    r"(NOT EXISTS (SELECT 1 FROM superseded AS older WHERE older.id = \1.id)"
    r" OR superseding(\1.id) IS NULL)"
)
_SPELLINGS = (
    # PostgreSQL cannot tell how often a computed column is null. Few nodes have an edge that
    # supersedes them, and only for these the column is computed.
    (re.compile(r"\bNOT \+?(\w+)\.superseded_by IS NOT NULL"), _NOT_SUPERSEDED),
    (re.compile(r"\b(\w+)\.superseded_by IS NULL"), _NOT_SUPERSEDED),
    (re.compile(r"\+?\b(\w+)\.superseded_by IS NOT NULL"), _SUPERSEDED),
    # These choose a query plan of SQLite, and mean nothing.
    (re.compile(r" INDEXED BY \w+"), ""),
    (re.compile(r"(?<=[\s(])\+(?=[a-z])"), ""),
    (re.compile(r" LIMIT -1\b"), ""),
    (re.compile(r"\bCROSS JOIN\b"), "JOIN"),
    # Functions and operators.
    (
        re.compile(r"\bjson_extract\(([\w.]+), '\$\.(\w+)'\)"),
        r"""(ctx.json_text(\1, '\2') COLLATE "C")""",
    ),
    (re.compile(r"\bgroup_concat\((\w+)\)"), r"string_agg(\1, ',')"),
    (re.compile(r"\bgroup_concat\("), "string_agg("),
    (re.compile(r"\binstr\("), "strpos("),
    (re.compile(r"\bchar\(10\)"), "chr(10)"),
    (re.compile(r"\bGLOB \?"), "~ glob_pattern(?)"),
    (re.compile(r"%"), "%%"),
)
_PLACE = re.compile(r"'(?:[^']|'')*'|\?(\d*)")


class Translation(NamedTuple):
    sql: str
    order: tuple[int, ...]
    """Which parameter belongs to each place, from 0."""

    def parameters(self, values: Sequence[Any]) -> list[Any]:
        """The values in the order of their places. PostgreSQL cannot store NUL."""
        return [
            value.replace("\0", "\ufffd") if isinstance(value, str) else value
            for value in (values[place] for place in self.order)
        ]


@lru_cache(maxsize=500)
def translate(sql: str) -> Translation:
    """A statement with the placeholders of psycopg."""
    if whole := _WHOLE.get(sql):
        return Translation(whole, ())
    for pattern, spelling in _SPELLINGS:
        sql = pattern.sub(spelling, sql)
    order: list[int] = []

    def place(match: re.Match[str]) -> str:
        if match[0].startswith("'"):
            return match[0]
        order.append(int(match[1]) - 1 if match[1] else len(order))
        return "%s"

    return Translation(_PLACE.sub(place, sql), tuple(order))
