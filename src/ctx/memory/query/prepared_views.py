"""Precompiled queries of views, which hooks run without this package.

A hook composes a context in milliseconds, so it must not parse or compile. The statements of a
view's query are stored with it as JSON:

    {"filters": {"": [["tier:pinned", "SELECT …", ["tier:pinned", ["project"]]], …], "task": […]}}

There is one list without a task and one with it; both take the project. A statement returns the ids
of one tier. For a query with words it returns ids, ranks and tiers, and the first statement with a
result is the answer. Parameters that are only known later are lists: `["project"]`, `["task"]`, and
`["ago", 86400000, "~"]` for a time that long ago followed by `~`.

A change of what a query compiles to needs a migration that prepares all views again.
"""

from sqlite3 import Connection
from typing import Any

from ctx import clock
from ctx.errors import CtxError
from ctx.memory import records
from ctx.memory.query import execute
from ctx.memory.query.compile import Scope, SqlStatement, compile_query, compile_tier, words_of
from ctx.memory.query.query_parser import And, Expression, Not, Or, Query, parse
from ctx.memory.query.time_filters import TimeFilter

# A character that no tag contains.
_LATER = "\0"
_SCOPES = {"": Scope(project=_LATER), "task": Scope(project=_LATER, task=_LATER)}
# A time that no query uses: it distinguishes ages, which are counted back from it, from dates.
_THEN_MS = 32_535_215_999_000 - 123_457_000


def prepared_statements(query: str) -> str | None:
    """The statements of a query as JSON; None if it is invalid."""
    try:
        parsed = parse(query)
    except CtxError:
        return None
    ages = {clock.iso(_THEN_MS - age): age for age in _ages(parsed.tree)}
    statements = {
        name: [
            [tier, statement.sql, [_open(value, ages) for value in statement.parameters]]
            for tier, statement in _statements(parsed, scope)
        ]
        for name, scope in _SCOPES.items()
    }
    return records.as_json({parsed.mode: statements})


def prepare_views(connection: Connection) -> None:
    """Prepare all views again."""
    for name, query in connection.execute("SELECT name, query FROM views").fetchall():
        connection.execute(
            "UPDATE views SET compiled = ? WHERE name = ?", (prepared_statements(query), name)
        )


def _statements(query: Query, scope: Scope) -> list[tuple[str | None, SqlStatement]]:
    if query.mode == "text":
        every = words_of(query)
        attempts = (every, every._replace(any_of_them=True))
        ranked = (compile_query(query, scope, _THEN_MS, words) for words in attempts)
        return [(None, execute.with_tiers(statement)) for statement in ranked]
    tiers = (*execute.TIERS, None)
    compiled = ((tier, compile_tier(query, scope, _THEN_MS, tier)) for tier in tiers)
    return [(tier, statement) for tier, statement in compiled if statement]


def _ages(expression: Expression | None) -> set[int]:
    match expression:
        case And(parts) | Or(parts):
            return set().union(*map(_ages, parts))
        case Not(part):
            return _ages(part)
        case TimeFilter(_, _, int() as age_ms, _):
            return {age_ms}
        case _:
            return set()


def _open(value: str | int, ages: dict[str, int]) -> Any:
    """A parameter, or the placeholder of one that is only known later."""
    match value:
        case "project:\0":
            return ["project"]
        case "task:\0":
            return ["task"]
        case str() if (age := ages.get(value.removesuffix("~"))) is not None:
            return ["ago", age, value[len(value.removesuffix("~")) :]]
        case _:
            return value
