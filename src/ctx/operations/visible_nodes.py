"""What a reading command may see: of projects, this one; of working notes, those of the task."""

from typing import NamedTuple

from ctx.memory import model, pending
from ctx.memory.model import Node
from ctx.memory.query import query_parser
from ctx.memory.query.compile import Scope
from ctx.memory.query.query_parser import Query
from ctx.workspace import Memory


class VisibleNodes(NamedTuple):
    """What a reading command may see."""

    project: str | None = None
    """The project whose nodes count, beside those of none. None: where the command works; a
    name that no project has: of none."""
    all_projects: bool = False
    include_superseded: bool = False
    session: str = ""
    """The session whose own nodes count, whichever project they name."""
    is_for_agent: bool = False
    """Then a query cannot ask for another project either."""


def read_query(text: str, visible: VisibleNodes) -> Query:
    query = query_parser.parse(text)
    return query._replace(names_project=False) if visible.is_for_agent else query


def scope_of(memory: Memory, visible: VisibleNodes) -> Scope:
    """What is in sight: of projects this one, of working notes those of the current task."""
    project = memory.project if visible.project is None else visible.project
    return Scope(
        include_superseded=visible.include_superseded,
        project=None if visible.all_projects else project,
        task=pending.current_task(memory.user, memory.place.task_key),
        session=visible.session,
    )


def visible_to_agent(memory: Memory) -> VisibleNodes:
    """What an agent may see: nothing of other projects, even outside of a project. There, it has to
    name the project of what it remembers, and sees that again."""
    own = "" if memory.project else memory.session
    return VisibleNodes(project=memory.project or "", session=own, is_for_agent=True)


def is_visible(node: Node, scope: Scope) -> bool:
    """Whether a query with this scope could return the node."""

    def is_elsewhere(namespace: str, mine: str | None) -> bool:
        named = [tag for tag in node.tags if tag.startswith(f"{namespace}:")]
        return mine is not None and bool(named) and f"{namespace}:{mine}" not in named

    is_own = bool(scope.session) and f"session:{scope.session}" in node.tags
    return (
        (scope.include_superseded or node.superseded_by is None)
        and (not is_elsewhere("project", scope.project) or is_own)
        and not (model.WORKING in node.tags and is_elsewhere("task", scope.task))
    )
