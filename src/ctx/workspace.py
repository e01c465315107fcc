"""Opens the parts that a command works with. There is no logic here.

What a command does not use is not loaded: listing nodes must not pay for the object store.
"""

import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from ctx import layout
from ctx.errors import DatabaseFailure, IndexCorrupt, StoreNotTrusted
from ctx.ids import SessionId
from ctx.layout import Place, Project, UserStore
from ctx.memory import model, sources, user_store
from ctx.memory.graph import PROJECT, USER, Graph
from ctx.memory.graphs import Graphs
from ctx.sqlite.connection import explain_errors, path_text

if TYPE_CHECKING:
    from ctx.config.resolve import Config
    from ctx.hosts.host_registry import Hosts
    from ctx.memory.changes import Change
    from ctx.memory.idempotency_keys import Claim
    from ctx.project.project_memory import Progress, ProjectMemory
    from ctx.project.project_repository import ProjectRepository
    from ctx.project.transaction import Transactions
    from ctx.project.trust_check import Verdict


class Environment(NamedTuple):
    """Where a command runs, and what opening a workspace needs to know."""

    folder: str
    user_store: UserStore
    variables: Mapping[str, str]
    overrides: Sequence[str]
    session: SessionId
    database: str = ""
    """Where the user store's graph lies, if not in its home."""
    untrusted: bool = False
    """Whether somebody asked to see the project's store also where it is not trusted."""
    load_hosts: "Callable[[], Hosts] | None" = None
    """The hosts that the entry point knows; without any, nothing of an agent can be taken in."""
    in_agents_shell: bool = False
    """Whether an agent runs the command."""
    progress: "Progress | None" = None
    keep_later: "Callable[[Callable[[], object]], None] | None" = None
    """Runs the writing of a receipt after the answer; None: it is written before."""

    @property
    def graph_file(self) -> str:
        """The file of the user store's graph."""
        return self.database or self.user_store.database

    @property
    def is_on_server(self) -> bool:
        """Whether the graph is on a team's server: then there is no store on this machine."""
        return layout.is_server(self.database)

    @property
    def is_single_store(self) -> bool:
        """Whether a file or a server was named: then nothing else is read."""
        return self.graph_file != self.user_store.database

    @property
    def hosts(self) -> "Hosts":
        from ctx.hosts.host_registry import NO_HOSTS

        return self.load_hosts() if self.load_hosts else NO_HOSTS

    @property
    def user_config(self) -> "Config":
        """What a person has set, where a project has no say, as far as it can be understood.

        What is wrong with other settings is no reason not to do anything.
        """
        from ctx.config.resolve import survey

        return survey(self.user_store.config_file, None, self.variables, self.overrides)


class Workspace(NamedTuple):
    """A project, its settings, its memory, and the session that a command joins."""

    project: Project
    config: "Config"
    memory: "ProjectMemory"
    session: SessionId

    @property
    def repository(self) -> "ProjectRepository":
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
        project_memory: "ProjectMemory | None",
        environment: Environment,
        author: str,
        withheld: "Verdict | None" = None,
        local: sqlite3.Connection | None = None,
        *,
        is_for_agents: bool = False,
    ) -> None:
        self.user = user
        self.local = local or user.connection
        """The database with the tables of sessions, receipts and contexts, which belong to this
        machine: that of the user store, unless its graph is on a server."""
        self.project_memory = project_memory
        """The memory of the project, beside its code. One that is not trusted is not there."""
        self.withheld = withheld
        """Why the store of the project here is not read; None where it is, or there is none."""
        self.folder = environment.folder
        self.session = environment.session
        self.environment = environment
        self.author = author
        self._is_for_agents = is_for_agents
        self._only: str | None = None

    @property
    def graph(self) -> Graphs:
        """What can be read, the project's first."""
        every = [self.project_memory.graph, self.user] if self.project_memory else [self.user]
        return Graphs([each for each in every if self._only in (None, each.scope)])

    @property
    def home(self) -> str:
        """The scope of the store where what is stated goes.

        Where the project's store is not trusted, what an agent states goes into the user store, and
        a person decides: E032.
        """
        if self.withheld and not self._is_for_agents:
            raise StoreNotTrusted(
                f"{self.withheld.reason}: nothing can be added to it.",
                hint="To review and trust it: `ctx trust`. To add to your own store instead: "
                "`ctx add --user`",
            )
        return PROJECT if self.project_memory else USER

    @property
    def source_metadata(self) -> "dict[str, str]":
        """The metadata that states the source of a new node; a person's needs none."""
        return sources.metadata_of_author(
            self.author, in_agents_shell=self.environment.in_agents_shell
        )

    def transaction(
        self,
        action: str,
        *scopes: str | None,
        claim: "Claim | None" = None,
        author: str | None = None,
    ) -> "AbstractContextManager[Change]":
        """Change memory in the stores of some scopes; None: where what is stated goes.

        What becomes durable first is named first (`project/transaction.py`). A change that must not
        be made twice comes with a claim.
        """
        from ctx.memory.changes import ChangeAuthor

        named = dict.fromkeys(scope or self.home for scope in scopes or (None,))
        stores = tuple(named) if self.project_memory else (USER,)
        who = ChangeAuthor(self.session, author or self.author)
        return self._transactions.begin(action, who, stores, claim)

    @cached_property
    def _transactions(self) -> "Transactions":
        from ctx.project.transaction import Transactions

        return Transactions(self.user, self.project_memory)

    def only(self, scope: str) -> "Memory":
        """The same with one of its stores alone. E012 where the project has none."""
        if scope == PROJECT:
            self.require_trust()
        if scope == PROJECT and self.project_memory is None:
            layout.require_project(self.folder, self.environment.user_store.home)
        kept = self.project_memory if scope == PROJECT else None
        found = Memory(
            self.user,
            kept,
            self.environment,
            self.author,
            None if scope == USER else self.withheld,
            self.local,
            is_for_agents=self._is_for_agents,
        )
        found._only = scope
        return found

    def require_trust(self) -> None:
        """E032 where the project here has a store that is not trusted."""
        if self.withheld:
            raise StoreNotTrusted(f"{self.withheld.reason}.")

    @cached_property
    def config(self) -> "Config":
        project = layout.find_project(self.folder, self.environment.user_store.home)
        return _config(self.environment, None if self.withheld else project)

    @cached_property
    def place(self) -> Place:
        home = self.environment.user_store.home

        def is_trusted(project: Project) -> bool:
            from ctx.project import trust_check

            return trust_check.verify(home, project).is_trusted

        return layout.place(self.folder, home, is_trusted)

    @property
    def project(self) -> str | None:
        """The name of the project that a command works in; None outside of any."""
        return self.place.project

    @property
    def project_tag(self) -> str | None:
        """What is stated here is tagged with. In a store of its own, a node needs no such tag."""
        return None if self.project_memory is not None else self.own_tag

    @cached_property
    def own_tag(self) -> str | None:
        """What nodes of this project carry in the user store; None outside of any."""
        return model.project_tag(self.project)


@contextmanager
def open_memory(
    environment: Environment, *, writing: bool, author: str = "cli", adding: bool = True
) -> Iterator[Memory]:
    """The graphs of the user store and of the project here; with `--db`, of that file alone.

    A file that was named must exist, unless something is added to it. Everything that SQLite says
    inside is put into words.
    """
    with _opened_memory(environment, author, writing=writing, adding=adding) as memory:
        yield memory


@contextmanager
def open_agent_memory(environment: Environment, *, writing: bool, author: str) -> Iterator[Memory]:
    """The same for an agent. Where the project's store is not trusted, what it states goes into the
    user store."""
    environment = environment._replace(untrusted=False)
    with _opened_memory(environment, author, writing=writing, is_for_agents=True) as memory:
        yield memory


@contextmanager
def _opened_memory(
    environment: Environment,
    author: str,
    *,
    writing: bool,
    adding: bool = True,
    is_for_agents: bool = False,
) -> Iterator[Memory]:
    project, withheld = _project_here(environment)
    if environment.is_on_server:
        from ctx.direct import team_graph_store

        with (
            team_graph_store.open_graph(environment.database) as graph,
            closing(user_store.empty_store()) as local,
        ):
            yield Memory(
                graph, None, environment, author, withheld, local, is_for_agents=is_for_agents
            )
        return
    path = environment.graph_file
    is_missing = environment.is_single_store and not user_store.store_exists(path)
    if is_missing and not (writing and adding):
        raise DatabaseFailure(
            f"There is no store at {path_text(path)}.",
            hint="Check --db or CTX_DB. `ctx add` and `ctx import` begin a store there.",
        )
    with explain_errors(path), user_store.explain_corruption(path):
        if writing:
            opened = user_store.open_for_writing(path)
        elif environment.is_single_store and user_store.is_blank(path):
            opened = user_store.empty_store()
        else:
            opened = user_store.open_for_reading(path)
        with (
            closing(opened),
            _opened_project_memory(environment, project) as project_memory,
        ):
            yield Memory(
                Graph(opened),
                project_memory,
                environment,
                author,
                withheld,
                is_for_agents=is_for_agents,
            )


@contextmanager
def for_agents(memory: Memory, folder: str, session: SessionId, author: str) -> Iterator[Memory]:
    """The same user store from where an agent works, with the project's own if it is trusted."""
    environment = memory.environment._replace(folder=folder, session=session, untrusted=False)
    project, withheld = _project_here(environment)
    with _opened_project_memory(environment, project) as project_memory:
        yield Memory(
            memory.user,
            project_memory,
            environment,
            author,
            withheld,
            memory.local,
            is_for_agents=True,
        )


def _project_here(environment: Environment) -> "tuple[Project | None, Verdict | None]":
    """The project here, unless a file was named; or why its store is not opened.

    Every command comes by its project store here or through `open_project`: what is not trusted is
    not read.
    """
    if environment.is_single_store:
        return None, None
    home = environment.user_store.home
    project = layout.find_project(environment.folder, home)
    if project is None or environment.untrusted:
        return project, None
    from ctx.project import trust_check

    verdict = trust_check.verify(home, project)
    if not verdict.is_trusted:
        return None, verdict
    if project.local_before_git:
        from ctx.objects.repository import Repository

        Repository(project).adopt_staged_before_git()
    return project, None


@contextmanager
def _opened_project_memory(
    environment: Environment, project: Project | None
) -> "Iterator[ProjectMemory | None]":
    if project is None:
        yield None
        return
    layout.refuse_links(project)
    with closing(_project_memory(environment, project)) as project_memory:
        try:
            yield project_memory
        except sqlite3.DatabaseError as error:
            if not project_memory.is_damaged():
                raise
            project_memory.discard()
            raise IndexCorrupt(
                "The index of the project's memory was damaged, and is thrown away.",
                hint="Run the command again: it is made anew, and nothing is lost.",
            ) from error


def _project_memory(environment: Environment, project: Project) -> "ProjectMemory":
    from ctx.project.given import EverythingGiven, GivenObjects
    from ctx.project.project_memory import ProjectMemory

    given = EverythingGiven if environment.untrusted else GivenObjects
    return ProjectMemory(
        project,
        lambda: _config(environment, project),
        given(environment.user_store.home, project),
        # An index of what is not trusted must not lie where a hook finds it.
        keeps_index=not environment.untrusted,
        progress=environment.progress,
    )


def _config(environment: Environment, project: Project | None) -> "Config":
    from ctx.config.resolve import load

    return load(
        environment.user_store.config_file,
        None if project is None else project.config_file,
        environment.variables,
        environment.overrides,
    )


def open_project(environment: Environment) -> Workspace:
    """The workspace of the project that a folder belongs to. E012 where there is none.

    E032 where its store is not trusted.
    """
    project = layout.require_project(environment.folder, environment.user_store.home)
    _, withheld = _project_here(environment._replace(database=""))
    if withheld:
        raise StoreNotTrusted(f"{withheld.reason}.")
    memory = _project_memory(environment, project)
    return Workspace(project, memory.config, memory, environment.session)
