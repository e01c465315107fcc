"""Make what is derived from a project's objects anew."""

import os
import shutil
import sqlite3
from contextlib import closing
from typing import Literal, NamedTuple

from ctx import clock, disk
from ctx.code.coverage import Coverage
from ctx.codebase import indexing
from ctx.codebase.indexing import Codebase
from ctx.layout import Project
from ctx.memory import materialise
from ctx.operations import code_cycles
from ctx.operations.code_cycles import Condensation
from ctx.packs import node_vectors
from ctx.project import project_index, project_index_state
from ctx.sqlite.connection import explain_errors, size_of, transaction
from ctx.sqlite.truth import connect_for_reading
from ctx.workspace import Workspace

How = Literal["incremental", "full", "text", "scc"]


class RebuildResult(NamedTuple):
    """The answer of `ctx rebuild`."""

    how: How
    path: str
    """The index that the project is at."""
    bytes: int
    commits: int
    records: int
    nodes: int
    removed: int
    """Indexes that were deleted: all with --full, else those that were damaged."""
    code: Coverage | None = None
    """What is known of the code now; null where that was not looked at."""
    scc: Condensation | None = None
    """The cycles of the code, made anew."""


def incremental(workspace: Workspace, tick: clock.Tick = clock.no_tick) -> RebuildResult:
    """Remove what is damaged, and bring the indexes to what the project is at."""
    workspace.memory.close()
    removed = 0
    for folder in _folders(workspace.project):
        if any(_is_damaged(os.path.join(folder, name)) for name in disk.names(folder)):
            shutil.rmtree(folder, ignore_errors=True)
            removed += 1
    codebase = indexing.codebase_of(workspace)
    indexed = indexing.update(codebase, tick)
    node_vectors.fill_project(workspace)
    told = _result(workspace, "incremental", removed)
    return told._replace(code=indexed.coverage, scc=_condensation(codebase))


def rebuild_all(workspace: Workspace, tick: clock.Tick) -> RebuildResult:
    """Delete every index, and make that of the present heads from the objects."""
    workspace.memory.close()
    with workspace.repository.locked("ctx rebuild"):
        removed = len(_folders(workspace.project))
        now = project_index_state.state(workspace.project)
        path = project_index.rebuild(workspace.repository, now, tick)
        with explain_errors(path), closing(connect_for_reading(path)) as connection:
            told = _rebuild_result(connection, "full", path, removed)
    codebase = indexing.codebase_of(workspace)
    indexed = indexing.rebuild(codebase, tick)
    node_vectors.fill_project_anew(workspace)
    return told._replace(code=indexed.coverage, scc=_condensation(codebase))


def scc(workspace: Workspace, tick: clock.Tick) -> RebuildResult:
    """Make the view of the cycles in the code anew."""
    codebase = indexing.codebase_of(workspace)
    indexed = indexing.update(codebase, tick)
    told = _result(workspace, "scc", 0)
    return told._replace(code=indexed.coverage, scc=_condensation(codebase))


def text(workspace: Workspace) -> RebuildResult:
    """Make the index of words anew from the nodes that there are."""
    with workspace.repository.locked("ctx rebuild"):
        told = _result(workspace, "text", 0)
        workspace.memory.close()
        with explain_errors(told.path), closing(sqlite3.connect(told.path)) as connection:
            connection.isolation_level = None
            with transaction(connection):
                materialise.index_words(connection)
    return told


def _condensation(codebase: Codebase) -> Condensation:
    with indexing.open_unrefreshed(codebase) as opened:
        return code_cycles.condense(opened, codebase)


def _folders(project: Project) -> list[str]:
    """The indexes of memory, one for each set of heads."""
    every = (os.path.join(project.indexes, name) for name in disk.names(project.indexes))
    return [each for each in every if os.path.isdir(each)]


def _is_damaged(path: str) -> bool:
    if not path.endswith(".db"):
        return False
    try:
        with closing(connect_for_reading(path)) as connection:
            return bool(connection.execute("PRAGMA quick_check").fetchone() != ("ok",))
    except sqlite3.DatabaseError:
        return True


def _result(workspace: Workspace, how: How, removed: int) -> RebuildResult:
    connection = workspace.memory.graph.connection
    path = project_index_state.path_for(
        workspace.project, project_index_state.state(workspace.project)
    )
    return _rebuild_result(connection, how, path, removed)


def _rebuild_result(
    connection: sqlite3.Connection,
    how: How,
    path: str,
    removed: int,
) -> RebuildResult:
    commits, said, nodes = (
        connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        for table in ("commits", "records WHERE stamp > 0", "nodes")
    )
    size = size_of(path) + size_of(f"{path}-wal")
    return RebuildResult(how, path, size, commits, said, nodes, removed)
