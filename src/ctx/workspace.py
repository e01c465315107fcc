"""Opens the parts that a command works with. There is no logic here.

What a command does not use is not loaded: listing nodes must not pay for the object store.
"""

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from ctx import layout
from ctx.errors import CtxError, IndexCorrupt, StoreNotTrusted
from ctx.ids import SessionId
from ctx.layout import Place, Project, UserStore
from ctx.memory import store
from ctx.memory.graph import PROJECT, USER, Graph
from ctx.memory.graphs import Graphs
from ctx.sqlite.connection import explained

if TYPE_CHECKING:
    from ctx.config.resolve import Config
    from ctx.ids import NodeId
    from ctx.memory.changes import Change, Who
    from ctx.memory.claims import Claim
    from ctx.objects.repository import Repository
    from ctx.project.project_memory import ProjectMemory
    from ctx.project.trust_check import Verdict


class Surroundings(NamedTuple):
    """Where a command runs and what it was told, as far as opening a workspace needs it."""

    folder: str
    user_store: UserStore
    environment: Mapping[str, str]
    overrides: Sequence[str]
    session: SessionId
    database: str = ""
    """Where the user store's graph lies, if not in its home."""
    untrusted: bool = False
    """Whether somebody asked to see the project's store also where it is not trusted."""

    @property
    def graph(self) -> str:
        """The file of the graph."""
        return self.database or self.user_store.database

    @property
    def is_alone(self) -> bool:
        """Whether a file was named: then nothing else is read."""
        return self.graph != self.user_store.database

    @property
    def person_config(self) -> "Config":
        """What a person has set, where a project has no say, as far as it can be understood.

        What is wrong with other settings is no reason not to do anything.
        """
        from ctx.config.resolve import survey

        return survey(self.user_store.config_file, None, self.environment, ())


class Workspace(NamedTuple):
    """A project, its settings, its memory, and the session that a command joins."""

    project: Project
    config: "Config"
    memory: "ProjectMemory"
    session: SessionId

    @property
    def repository(self) -> "Repository":
        return self.memory.repository

    @property
    def repo_id(self) -> str:
        """The project's name: what its configuration says, else that of its folder."""
        return self.config.text("repo.id") or os.path.basename(self.project.root)


class Memory:
    """The graphs that a command works on, and where, for whom and how.

    There is the user store, and in a project its own. What is read comes from both. What is stated
    goes to the project's, if there is one, and what is changed is changed where it is.
    """

    def __init__(
        self,
        user: Graph,
        beside: "ProjectMemory | None",
        surroundings: Surroundings,
        author: str,
        once: "Claim | None" = None,
        withheld: "Verdict | None" = None,
    ) -> None:
        self.user = user
        self.beside = beside
        """The memory of the project, beside its code. One that is not trusted is there only for
        writing, and nothing can be read from it."""
        self.withheld = withheld
        """Why the store of the project here is not read; None where it is, or there is none."""
        self.path = surroundings.graph
        self.folder = surroundings.folder
        self.session = surroundings.session
        self.surroundings = surroundings
        self._author = author
        self._once = once
        self._only: str | None = None
        self._whole: Change | None = None

    @property
    def is_alone(self) -> bool:
        """Whether a file was named: then nothing else is read."""
        return self.surroundings.is_alone

    @property
    def graph(self) -> Graphs:
        """What can be read, the project's first."""
        every = [self.beside.graph, self.user] if self.beside else [self.user]
        return Graphs([each for each in every if self._only in (None, each.scope)])

    @property
    def home(self) -> str:
        """The scope of the store where what is stated goes."""
        return PROJECT if self.beside else USER

    @cached_property
    def who(self) -> "Who":
        from ctx.memory.changes import Who

        return Who(self.session, self._author, self._once)

    def changing(self, action: str, scope: str | None = None) -> "AbstractContextManager[Change]":
        """Make a change in the store of a scope; None: where what is stated goes."""
        if self._whole and self._whole.graph.scope == (scope or self.home):
            from ctx.memory.changes import part_of

            return part_of(self._whole)
        if self.beside is None or scope == USER:
            from ctx.memory.changes import changing

            return changing(self.user, action, self.who)
        from ctx.project.exactly_once import changing_once

        return changing_once(self.beside, self.user, action, self.who)

    def saying(self, who: "Who") -> "Memory":
        """The same, where something is said through something else."""
        return self._copy(who.author, who.once)

    def also_changing(
        self, change: "Change", scope: str | None
    ) -> "AbstractContextManager[Change]":
        """Make the part of a change that another store has; `ctx undo` takes both back."""
        who = self.who._replace(once=None)
        if self.beside is None or scope == USER:
            from ctx.memory.changes import changing

            return changing(self.user, change.action, who, change.id)
        return self.beside.changing(change.action, who, change.id)

    def change_each(
        self,
        action: str,
        by_scope: "Mapping[str, Sequence[NodeId]]",
        do: "Callable[[Change, Sequence[NodeId]], None]",
    ) -> None:
        """Do something to nodes where they live, as one change."""
        first: Change | None = None
        for scope, part in by_scope.items():
            same = self.also_changing(first, scope) if first else self.changing(action, scope)
            with same as change:
                do(change, part)
            first = first or change

    def scope_of(self, node_ids: "Iterable[NodeId]", doing: str) -> str | None:
        """The scope in which nodes live that are changed together; None for no nodes."""
        scopes = {self.graph.holding(node_id).scope for node_id in node_ids}
        if len(scopes) > 1:
            from ctx.errors import UsageError

            raise UsageError(
                f"Some of these nodes are the project's and some are yours, so {doing} them"
                " together is not possible.",
                hint="`ctx move ID --user` or `--project` brings a node to the others.",
            )
        return next(iter(scopes), None)

    def by_scope(self, node_ids: "Iterable[NodeId]") -> "dict[str, list[NodeId]]":
        """Nodes by where they live."""
        found: dict[str, list[NodeId]] = {}
        for node_id in dict.fromkeys(node_ids):
            found.setdefault(self.graph.holding(node_id).scope, []).append(node_id)
        return found

    def only(self, scope: str) -> "Memory":
        """The same with one of its stores alone. E012 where the project has none."""
        if scope == PROJECT:
            self.require_trust()
        if scope == PROJECT and self.beside is None:
            layout.require_project(self.folder, self.surroundings.user_store.home)
        found = self._copy(self._author, self._once)
        found.beside = self.beside if scope == PROJECT else None
        found._only = scope
        return found

    def require_trust(self) -> None:
        """E032 where the project here has a store that is not trusted."""
        if self.withheld:
            raise StoreNotTrusted(f"{self.withheld.reason}.")

    def within(self, change: "Change") -> "Memory":
        """The same, where what is changed in a store is a part of one change that is open there."""
        found = self._copy(self._author)
        found._whole = change
        return found

    def once(self, claim: "Claim") -> "Memory":
        """The same, for a change that must not be made twice."""
        return self._copy(self._author, claim)

    def _copy(self, author: str, once: "Claim | None" = None) -> "Memory":
        return Memory(self.user, self.beside, self.surroundings, author, once, self.withheld)

    @cached_property
    def config(self) -> "Config":
        from ctx.config.resolve import load

        project = None if self.withheld else self._project_store
        return load(
            self.surroundings.user_store.config_file,
            project.config_file if project else None,
            self.surroundings.environment,
            self.surroundings.overrides,
        )

    @cached_property
    def place(self) -> Place:
        from ctx.project import trust_check

        home = self.surroundings.user_store.home
        return layout.place(
            self.folder, home, lambda project: trust_check.verify(home, project).is_trusted
        )

    @property
    def project(self) -> str | None:
        """The name of the project that a command works in; None outside of any."""
        return self.place.project

    @property
    def project_tag(self) -> str | None:
        """What is stated here is tagged with. In a store of its own, a node needs no such tag."""
        return None if self.beside is not None else self.own_tag

    @cached_property
    def own_tag(self) -> str | None:
        """What nodes of this project carry in the user store; None outside of any.

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
    """The graphs of the user store and of the project here; with `--db`, of that file alone.

    Everything that SQLite says inside is put into words.
    """
    path = surroundings.graph
    with explained(path), store.explain_corruption(path):
        if writing:
            opened = store.open_for_writing(path)
        elif surroundings.is_alone and (not store.is_there(path) or store.is_blank(path)):
            # Whoever only looks at a place that was named, perhaps by mistake, makes nothing there.
            opened = store.empty()
        else:
            opened = store.open_for_reading(path)
        project, withheld = _project_here(surroundings)
        # Who only looks has nothing of a store that is not trusted in hand.
        openable = project if writing or not withheld else None
        with closing(opened), _opened_beside(surroundings, openable, withheld) as beside:
            yield Memory(Graph(opened), beside, surroundings, author, withheld=withheld)


@contextmanager
def for_agents(memory: Memory, folder: str, session: SessionId, author: str) -> Iterator[Memory]:
    """The same user store from where an agent works, with the project's own if it is trusted."""
    surroundings = memory.surroundings._replace(folder=folder, session=session, untrusted=False)
    project, withheld = _project_here(surroundings)
    openable = None if withheld else project
    with _opened_beside(surroundings, openable, withheld) as beside:
        yield Memory(memory.user, beside, surroundings, author, withheld=withheld)


def _project_here(surroundings: Surroundings) -> "tuple[Project | None, Verdict | None]":
    """The project here, unless a file was named, and why its store is not read, if so.

    Every command comes by its project store here or through `open_project`: what is not trusted is
    not read.
    """
    if surroundings.is_alone:
        return None, None
    home = surroundings.user_store.home
    project = layout.find_project(surroundings.folder, home)
    if project is None or surroundings.untrusted:
        return project, None
    from ctx.project import trust_check

    verdict = trust_check.verify(home, project)
    return project, None if verdict.is_trusted else verdict


@contextmanager
def _opened_beside(
    surroundings: Surroundings, project: Project | None, withheld: "Verdict | None"
) -> "Iterator[ProjectMemory | None]":
    if project is None:
        yield None
        return
    layout.refuse_links(project)
    from ctx.project.project_memory import ProjectMemory

    def config() -> "Config":
        return _config(surroundings, project, withheld)

    # An index of what is not trusted must not lie where a hook finds it.
    keeps_index = not surroundings.untrusted
    memory = ProjectMemory(project, config, withheld, keeps_index=keeps_index)
    with closing(memory) as beside:
        try:
            yield beside
        except CtxError as error:
            if withheld and error.quotes_store:
                raise error.unquoted() from error
            raise
        except sqlite3.DatabaseError as error:
            if not beside.is_damaged():
                raise
            beside.discard()
            raise IndexCorrupt(
                "The index of the project's memory was damaged, and is thrown away.",
                hint="Run the command again: it is made anew, and nothing is lost.",
            ) from error


def _config(
    surroundings: Surroundings, project: Project, withheld: "Verdict | None" = None
) -> "Config":
    from ctx.config.resolve import load

    return load(
        surroundings.user_store.config_file,
        None if withheld else project.config_file,
        surroundings.environment,
        surroundings.overrides,
    )


def open_project(surroundings: Surroundings, *, reading: bool = True) -> Workspace:
    """The workspace of the project that a folder belongs to. E012 where there is none.

    E032 where its store is not trusted, unless things are only put in.
    """
    from ctx.project.project_memory import ProjectMemory

    project = layout.require_project(surroundings.folder, surroundings.user_store.home)
    _, withheld = _project_here(surroundings._replace(database=""))
    if withheld and reading:
        raise StoreNotTrusted(f"{withheld.reason}.")
    config = _config(surroundings, project, withheld)
    keeps_index = not surroundings.untrusted
    memory = ProjectMemory(project, lambda: config, withheld, keeps_index=keeps_index)
    return Workspace(project, config, memory, surroundings.session)
