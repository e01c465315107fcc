"""Opens the parts that a command works with. There is no logic here."""

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ctx import layout
from ctx.config.resolve import Config, load
from ctx.ids import SessionId
from ctx.layout import Project, UserStore
from ctx.objects.repository import Repository


class Surroundings(NamedTuple):
    """Where a command runs and what it was told, as far as opening a workspace needs it."""

    folder: str
    user_store: UserStore
    environment: Mapping[str, str]
    overrides: Sequence[str]
    session: SessionId


class Workspace(NamedTuple):
    """A project, its settings, its object store, and the session that a command joins."""

    project: Project
    config: Config
    repository: Repository
    session: SessionId

    @property
    def repo_id(self) -> str:
        """The project's name: what its configuration says, else that of its folder."""
        return self.config.text("repo.id") or os.path.basename(self.project.root)


def open_project(surroundings: Surroundings) -> Workspace:
    """The workspace of the project that a folder belongs to. E012 where there is none."""
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
