"""Named queries with a budget: make them, change them, render them."""

from typing import Literal, NamedTuple

from ctx import clock
from ctx.errors import UsageError, ViewNotFound
from ctx.memory import model
from ctx.memory.changes import changing
from ctx.memory.model import DEFAULT_VIEW, View
from ctx.memory.query.compile import Scope, compile_query
from ctx.memory.query.parse import parse
from ctx.operations.compose import Composition, Options, Visible, compose
from ctx.redaction import redact
from ctx.workspace import Memory


class Viewed(NamedTuple):
    """The answer of `ctx view create`, `update` and `delete`."""

    view: View
    changed: bool


class Views(NamedTuple):
    """The answer of `ctx view list`."""

    views: tuple[View, ...]
    default_budget: int
    """That of a view that has none of its own."""


def create(memory: Memory, name: str, query: str, budget: int | None) -> Viewed:
    """A new view. To make one that is there, just so, is no mistake."""
    model.view_name(name)
    _check_query(query)
    # As it will be kept, so that making it again is no mistake.
    query = redact(query).text
    with changing(memory.graph, "view create", memory.who) as change:
        present = _present(memory, name)
        if present and (present.query, present.budget) != (query, budget):
            raise UsageError(
                f"There is a view {name!r} already, with another query or budget.",
                hint=f"`ctx view update {name} --query=…` changes it.",
            )
        if present is None:
            change.put_view(name, query, budget)
    return Viewed(memory.graph.view(name), present is None)


def update(
    memory: Memory, name: str, query: str | None, budget: int | Literal["default"] | None
) -> Viewed:
    """Change what is given, leave the rest. The budget `default` is the configured one."""
    if query is not None:
        _check_query(query)
    with changing(memory.graph, "view update", memory.who) as change:
        present = memory.graph.view(name)
        wanted = present._replace(
            query=present.query if query is None else query,
            budget=present.budget if budget is None else None if budget == "default" else budget,
        )
        if wanted != present:
            change.put_view(name, wanted.query, wanted.budget)
    return Viewed(memory.graph.view(name), wanted != present)


def delete(memory: Memory, name: str) -> Viewed:
    if name == DEFAULT_VIEW:
        raise UsageError(
            f"The view {name!r} cannot be deleted: it is what a session begins with.",
            hint=f"`ctx view update {name} --query=…` changes it.",
        )
    with changing(memory.graph, "view delete", memory.who) as change:
        view = memory.graph.view(name)
        change.delete_view(name)
    return Viewed(view, True)


def list_views(memory: Memory) -> Views:
    return Views(tuple(memory.graph.views()), memory.config.integer("view.default_budget"))


def render(memory: Memory, name: str, budget: int | None, visible: Visible) -> Composition:
    view = memory.graph.view(name)
    wanted = view.budget if budget is None else budget
    return compose(memory, Options(view.query, wanted, visible=visible))


def _present(memory: Memory, name: str) -> View | None:
    try:
        return memory.graph.view(name)
    except ViewNotFound:
        return None


def _check_query(query: str) -> None:
    """A mistake is found when the view is made, not when a session begins."""
    compile_query(parse(query), Scope(), clock.now_ms())
