"""How much disk space each part of the stores needs."""

import os
from collections.abc import Iterator
from typing import NamedTuple

from ctx import layout
from ctx.hook_files import hook_log, spool
from ctx.layout import Project, UserStore
from ctx.workspace import Environment

_DATABASE_FILES = ("", "-wal", "-shm")


class StoreSize(NamedTuple):
    """The files of one part of a store."""

    store: str
    """`user` or `project`."""
    what: str
    path: str
    size: int
    """Bytes."""
    is_derived: bool
    """Whether it can be deleted and is made again."""


def disk_use(environment: Environment) -> tuple[StoreSize, ...]:
    """All parts that exist: those of the user store, then those of the project in this folder."""
    project = layout.find_project(environment.folder, environment.user_store.home)
    found = [*_user_store(environment), *(_project_store(project) if project else ())]
    return tuple(each for each in found if each.size)


def _user_store(environment: Environment) -> Iterator[StoreSize]:
    store: UserStore = environment.user_store
    parts = (
        ("memory and captured sessions", environment.graph_file, False),
        ("backups", os.path.join(store.home, "backups"), False),
        ("model ledger", store.ledger, False),
        ("events that wait", os.path.join(store.home, spool.FOLDER), False),
        ("code indexes", store.code, True),
        ("vectors", store.vectors, True),
        ("worker log", store.worker_log, False),
        ("hook log", os.path.join(store.home, hook_log.NAME), False),
    )
    for what, path, is_derived in parts:
        yield StoreSize("user", what, path, size_of(path), is_derived)


def _project_store(project: Project) -> Iterator[StoreSize]:
    parts = (
        ("objects", project.objects, False),
        ("narrative", project.narrative, False),
        ("staged work", os.path.join(project.local, "stage"), False),
        ("indexes", project.indexes, True),
    )
    for what, path, is_derived in parts:
        yield StoreSize("project", what, path, size_of(path), is_derived)


def size_of(path: str) -> int:
    """The bytes of a folder, or of a file with what SQLite keeps beside it.

    Files that come and go while they are counted do not matter.
    """
    if os.path.isdir(path):
        return sum(
            _size(os.path.join(place, name)) for place, _, names in os.walk(path) for name in names
        )
    return sum(_size(f"{path}{end}") for end in _DATABASE_FILES)


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0
