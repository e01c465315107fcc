"""The nodes of the view `default`, by the compiled statements that are stored with its query.

Hooks load this module, so it compiles nothing.
"""

import json
from collections.abc import Iterator, Sequence
from itertools import chain
from operator import itemgetter
from sqlite3 import Connection
from typing import Any, NamedTuple

from ctx import clock
from ctx.context import hook_queries
from ctx.ids import NodeId
from ctx.memory import model

_TIERS = (model.PINNED, model.WORKING, model.REFERENCE)


class ViewScope(NamedTuple):
    """The project, and the task whose working notes are included."""

    project: str | None
    task: str | None


def nodes_in_view(
    connections: Sequence[Connection], seen: ViewScope
) -> tuple[list[NodeId], Iterator[NodeId]]:
    """The pinned nodes of the view, and the others by tier; newest first.

    Within a tier, the first store comes first.
    """
    compiled = _compiled_view(connections)
    found = [_in_tiers(each, compiled, seen) for each in connections] if compiled else []
    if len(found) > 1:
        from heapq import merge

        found = [merge(*found, key=itemgetter(0))]
    ranked = chain(*found)
    pinned: list[NodeId] = []
    for rank, node_id in ranked:
        if rank:
            return pinned, chain([node_id], (each for _, each in ranked))
        pinned.append(node_id)
    return pinned, iter(())


def is_timeless(connections: Sequence[Connection]) -> bool:
    """Whether the view does not depend on the current time, so that its context can be kept."""
    return '["ago",' not in (_compiled_view(connections) or "").replace(" ", "")


def _compiled_view(connections: Sequence[Connection]) -> str | None:
    """The statements of the view: the project's if it has one, else the user's."""
    for connection in connections:
        if row := hook_queries.default_view(connection):
            return row[0] or None
    return None


def _in_tiers(
    connection: Connection, compiled: str, seen: ViewScope
) -> Iterator[tuple[int, NodeId]]:
    scope = "task" if seen.task else ""
    ((mode, statements),) = json.loads(compiled).items()
    now_ms = clock.now_ms()
    if mode == "text":
        yield from _ranked(connection, statements[scope], seen, now_ms)
        return
    for tier, sql, values in statements[scope]:
        filled = [_parameter_value(value, seen, now_ms) for value in values]
        for row in connection.execute(sql, filled):
            yield _rank(tier), row[0]


def _rank(tier: str | None) -> int:
    return _TIERS.index(tier) if tier in _TIERS else len(_TIERS)


def _ranked(
    connection: Connection, statements: Sequence[Any], seen: ViewScope, now_ms: int
) -> Iterator[tuple[int, NodeId]]:
    rows: list[tuple[NodeId, float, str | None]] = []
    for _, sql, values in statements:
        filled = [_parameter_value(value, seen, now_ms) for value in values]
        if rows := connection.execute(sql, filled).fetchall():
            break
    rows.sort(reverse=True)
    rows.sort(key=lambda row: row[1])
    ranks = [_rank(model.tier((row[2] or "").split(","))) for row in rows]
    for at in sorted(range(len(rows)), key=lambda at: ranks[at]):
        yield ranks[at], rows[at][0]


def _parameter_value(value: Any, seen: ViewScope, now_ms: int) -> str | int:
    match value:
        case ["project"]:
            # Outside projects, no node of a project is shown.
            return f"project:{seen.project or ''}"
        case ["task"]:
            return f"task:{seen.task}"
        case ["ago", age_ms, behind]:
            return f"{clock.iso(now_ms - age_ms)}{behind}"
        case _:
            known: str | int = value
            return known
