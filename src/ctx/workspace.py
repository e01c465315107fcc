"""Opens the parts that a command works with. There is no logic here.

What a command does not use is not loaded: listing nodes must not pay for the object store.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from ctx import layout
from ctx.ids import SessionId
from ctx.layout import Place, Project, UserStore
from ctx.memory import store
from ctx.memory.graph import Graph
from ctx.sqlite.connection import explained

if TYPE_CHECKING:
    from ctx.config.resolve import Config
    from ctx.memory.changes import Who
    from ctx.memory.claims import Claim
    from ctx.objects.repository import Repository


class Surroundings(NamedTuple):
    """Where a command runs and what it was told, as far as opening a workspace needs it."""

    folder: str
    user_store: UserStore
    environment: Mapping[str, str]
    overrides: Sequence[str]
    session: SessionId
    database: str = ""
    """Where the user store's graph lies, if not in its home."""

    @property
    def graph(self) -> str:
        """The file of the graph."""
        return self.database or self.user_store.database


class Workspace(NamedTuple):
    """A project, its settings, its object store, and the session that a command joins."""

    project: Project
    config: "Config"
    repository: "Repository"
    session: SessionId

    @property
    def repo_id(self) -> str:
        """The project's name: what its configuration says, else that of its folder."""
        return self.config.text("repo.id") or os.path.basename(self.project.root)


class Memory:
    """The user store's graph, and where, for whom and how a command works on it."""

    def __init__(
        self,
        graph: Graph,
        surroundings: Surroundings,
        author: str,
        once: "Claim | None" = None,
    ) -> None:
        self.graph = graph
        self.path = surroundings.graph
        self.folder = surroundings.folder
        self.session = surroundings.session
        self.surroundings = surroundings
        self._author = author
        self._once = once

    @cached_property
    def who(self) -> "Who":
        from ctx.memory.changes import Who

        return Who(self.session, self._author, self._once)

    def once(self, claim: "Claim") -> "Memory":
        """The same, for a change that must not be made twice."""
        return Memory(self.graph, self.surroundings, self._author, claim)

    @cached_property
    def config(self) -> "Config":
        from ctx.config.resolve import load

        project = self._project_store
        return load(
            self.surroundings.user_store.config_file,
            project.config_file if project else None,
            self.surroundings.environment,
            self.surroundings.overrides,
        )

    @cached_property
    def place(self) -> Place:
        return layout.place(self.folder, self.surroundings.user_store.home)

    @property
    def project(self) -> str | None:
        """The name of the project that a command works in; None outside of any."""
        return self.place.project

    @cached_property
    def project_tag(self) -> str | None:
        """What nodes of this project carry; None outside of any.

        A folder may have a name that no tag can have: its nodes are everybody's.
        """
        from ctx.errors import UsageError
        from ctx.memory import model

        try:
            return model.tag(f"project:{self.project}") if self.project else None
        except UsageError:
            return None

    @property
    def task_key(self) -> str:
        """Under which `pending` keeps the current task: one for each working tree."""
        return self.place.task_key

    @cached_property
    def _project_store(self) -> Project | None:
        return layout.find_project(self.folder, self.surroundings.user_store.home)


@contextmanager
def open_memory(
    surroundings: Surroundings, *, writing: bool, author: str = "cli"
) -> Iterator[Memory]:
    """The graph of the user store. Everything that SQLite says inside is put into words."""
    path = surroundings.graph
    with explained(path), store.suspecting_damage(path):
        opened = store.open_for_writing(path) if writing else store.open_for_reading(path)
        with closing(opened):
            yield Memory(Graph(opened), surroundings, author)


def open_project(surroundings: Surroundings) -> Workspace:
    """The workspace of the project that a folder belongs to. E012 where there is none."""
    from ctx.config.resolve import load
    from ctx.objects.repository import Repository

    user_store = surroundings.user_store
    project = layout.require_project(surroundings.folder, user_store.home)
    config = load(
        user_store.config_file,
        project.config_file,
        surroundings.environment,
        surroundings.overrides,
    )
    repository = Repository(
        project,
        compression_level=config.integer("storage.compression_level"),
        lock_timeout_seconds=config.number("storage.lock_timeout_seconds"),
    )
    return Workspace(project, config, repository, surroundings.session)
