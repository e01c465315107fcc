"""What a reading command may see: of projects, this one; of working notes, those of the task.

This is the one place that decides it, for the command line, the page and agents. Inside a project,
that is what belongs to it and what belongs to none; a person sees more with `--all-projects`, or by
a query that names a project. Outside of a project, a person sees the whole store.
"""

from typing import TYPE_CHECKING, NamedTuple

from ctx.memory import model
from ctx.memory.model import Node
from ctx.workspace import Memory

if TYPE_CHECKING:
    from ctx.memory.query.compile import Scope
    from ctx.memory.query.query_parser import Query


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
    only_project: bool = False
    """Whether to leave out what belongs to no project, too."""


def read_query(text: str, visible: VisibleNodes) -> "Query":
    from ctx.memory.query import query_parser

    query = query_parser.parse(text)
    return query._replace(names_project=False) if visible.is_for_agent else query


def project_of(memory: Memory, visible: VisibleNodes) -> str | None:
    """The project whose nodes count, beside those of none; None: those of all projects."""
    if visible.all_projects:
        return None
    return memory.project if visible.project is None else visible.project


def scope_of(memory: Memory, visible: VisibleNodes) -> "Scope":
    """What is in sight: of projects this one, of working notes those of the current task."""
    from ctx.memory import pending

    task = pending.current_task(memory.user, memory.place.task_key)
    return list_scope(memory, visible)._replace(task=task)


def list_scope(memory: Memory, visible: VisibleNodes) -> "Scope":
    """The same for lists and searches, which show the working notes of every task."""
    from ctx.memory.query.compile import Scope

    return Scope(
        include_superseded=visible.include_superseded,
        project=project_of(memory, visible),
        only_project=visible.only_project,
        session=visible.session,
    )


def visible_to_agent(memory: Memory) -> VisibleNodes:
    """What an agent may see: nothing of other projects, even outside of a project. There, it has to
    name the project of what it remembers, and sees that again."""
    own = "" if memory.project else memory.session
    return VisibleNodes(project=memory.project or "", session=own, is_for_agent=True)


def is_visible(node: Node, scope: "Scope") -> bool:
    """Whether a query with this scope could return the node."""

    def is_elsewhere(namespace: str, mine: str | None) -> bool:
        named = [tag for tag in node.tags if tag.startswith(f"{namespace}:")]
        return mine is not None and bool(named) and f"{namespace}:{mine}" not in named

    is_own = bool(scope.session) and f"session:{scope.session}" in node.tags
    return (
        (scope.include_superseded or node.superseded_by is None)
        and (not scope.only_project or f"project:{scope.project}" in node.tags)
        and (not is_elsewhere("project", scope.project) or is_own)
        and not (model.WORKING in node.tags and is_elsewhere("task", scope.task))
    )
