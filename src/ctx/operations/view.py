"""Views, which are named queries with a budget: create, change and render them."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

from ctx import clock
from ctx.errors import UsageError
from ctx.memory import model
from ctx.memory.model import DEFAULT_VIEW, View
from ctx.memory.query.compile import Scope, compile_query
from ctx.memory.query.query_parser import parse
from ctx.operations.compose import Composition, Options, compose
from ctx.operations.visible_nodes import VisibleNodes
from ctx.redaction import redact
from ctx.workspace import Memory


class ViewResult(NamedTuple):
    """The answer of `ctx view create`, `update` and `delete`."""

    view: View
    changed: bool
    scope: str
    """The store that contains it: `project` or `user`."""


class ViewList(NamedTuple):
    """The answer of `ctx view list`."""

    views: tuple[View, ...]
    default_budget: int
    """The budget of a view without its own."""
    scopes: Mapping[str, str]
    """The store of each view, by name: `project` or `user`."""


def create(
    memory: Memory, name: str, query: str, budget: int | None, scope: str | None = None
) -> ViewResult:
    """Create a view in a store, by default in the store for new nodes.

    Creating an identical view again is not an error.
    """
    model.view_name(name)
    _check_query(query)
    # Redacted as it is stored, so that an identical view is recognised.
    query = redact(query).text
    with memory.transaction("view create", scope) as change:
        present = change.graph.find_view(name)
        if present and (present.query, present.budget) != (query, budget):
            raise UsageError(
                f"The view {name!r} already exists, with another query or budget.",
                hint=f'`ctx view update {name} "…"` changes it.',
            )
        if present is None:
            change.put_view(name, query, budget)
    return _result(memory, name, change.graph.scope, changed=present is None)


def update(
    memory: Memory,
    name: str,
    query: str | None,
    budget: int | Literal["default"] | None,
    scope: str | None = None,
) -> ViewResult:
    """Change the query or the budget. The budget `default` is the configured one."""
    if query is not None:
        _check_query(query)
    with memory.transaction("view update", scope or _scope(memory, name)) as change:
        present = change.graph.view(name)
        wanted = present._replace(
            query=present.query if query is None else query,
            budget=present.budget if budget is None else None if budget == "default" else budget,
        )
        if wanted != present:
            change.put_view(name, wanted.query, wanted.budget)
    return _result(memory, name, change.graph.scope, changed=wanted != present)


def delete(memory: Memory, name: str, scope: str | None = None) -> ViewResult:
    if name == DEFAULT_VIEW:
        raise UsageError(
            f"The view {name!r} cannot be deleted: sessions start with it.",
            hint=f'`ctx view update {name} "…"` changes it.',
        )
    with memory.transaction("view delete", scope or _scope(memory, name)) as change:
        view = change.graph.view(name)
        change.delete_view(name)
    return ViewResult(view, True, change.graph.scope)


def list_views(memory: Memory) -> ViewList:
    held = reversed(memory.graph.graphs)
    scopes = {view.name: graph.scope for graph in held for view in graph.views()}
    budget = memory.config.integer("view.default_budget")
    return ViewList(tuple(memory.graph.views()), budget, scopes)


def render(memory: Memory, name: str, budget: int | None, visible: VisibleNodes) -> Composition:
    view = memory.graph.view(name)
    wanted = view.budget if budget is None else budget
    return compose(memory, Options(view.query, wanted, visible=visible))


def _result(memory: Memory, name: str, scope: str, *, changed: bool) -> ViewResult:
    [graph] = [each for each in memory.graph.graphs if each.scope == scope]
    return ViewResult(graph.view(name), changed, scope)


def _scope(memory: Memory, name: str) -> str | None:
    """The store that contains the view; the default view is in every store."""
    scopes = [graph.scope for graph in memory.graph.graphs if graph.find_view(name)]
    return scopes[0] if scopes else None


def _check_query(query: str) -> None:
    """Report a mistake when the view is created, not when a session starts."""
    compile_query(parse(query), Scope(), clock.now_ms())
