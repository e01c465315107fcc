"""The index of a project: answers that would otherwise need a walk over the whole history.

It is derived: built from the objects for one set of heads, cached under a key of those heads,
sealed, and never changed. Any of it can be deleted at any time.
"""

import os
import shutil
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from typing import Any, NamedTuple

from ctx import disk
from ctx.errors import DiskFailure, IndexCorrupt, UsageError
from ctx.ids import ObjectId
from ctx.layout import INDEX_KEY, Project
from ctx.objects import commits, trees
from ctx.objects.commits import Head
from ctx.objects.object_store import Reader, derived_id
from ctx.objects.repository import Repository
from ctx.objects.verify import Damage
from ctx.sqlite.connection import execute_script, explain_errors
from ctx.sqlite.derived import check_derived, open_derived

APPLICATION_ID = 0x63747869  # "ctxi"
VERSION = 2
KEPT = 8
FILE = "history.db"

_SCHEMA = """
CREATE TABLE commits (
    id TEXT PRIMARY KEY,
    position INTEGER NOT NULL,  -- 0 is the newest
    is_head INTEGER NOT NULL,
    timestamp_unix INTEGER NOT NULL,
    message TEXT NOT NULL,
    author TEXT NOT NULL,
    session_id TEXT NOT NULL,
    root_tree TEXT NOT NULL,
    cargo_snapshot TEXT,
    code_snapshot TEXT,
    diagnostics_snapshot TEXT
) WITHOUT ROWID;
CREATE TABLE parents (
    commit_id TEXT NOT NULL,
    parent_id TEXT NOT NULL,
    PRIMARY KEY (commit_id, parent_id)
) WITHOUT ROWID;
CREATE TABLE paths (
    path TEXT PRIMARY KEY,
    blob_id TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE narrative (
    commit_id TEXT NOT NULL,
    path TEXT NOT NULL,
    stream TEXT NOT NULL,
    role TEXT NOT NULL,
    blob_id TEXT NOT NULL,
    PRIMARY KEY (path, commit_id)
) WITHOUT ROWID;
"""

# One statement for each kind of key. A key is compared as it is, or as the beginning of an id.
_QUERIES = {
    "path": "SELECT path, file_id(path) AS file_id, blob_id FROM paths WHERE path = ?",
    "file": (
        "SELECT path, file_id(path) AS file_id, blob_id FROM paths "
        "WHERE file_id(path) GLOB ? || '*' ORDER BY path"
    ),
    "commit": (
        "SELECT id AS 'commit', is_head, timestamp_unix, session_id, author, message, root_tree, "
        "cargo_snapshot, code_snapshot, diagnostics_snapshot, "
        "(SELECT group_concat(parent_id, ' ') FROM parents WHERE commit_id = id) AS parents "
        "FROM commits WHERE id GLOB ? || '*' ORDER BY position"
    ),
    "narrative": (
        "SELECT path, stream, role, blob_id, commit_id FROM narrative "
        "JOIN commits ON commits.id = commit_id WHERE path = ? ORDER BY position"
    ),
}


class IndexAnswer(NamedTuple):
    key: str
    heads: tuple[ObjectId, ...]
    """The heads that the index was built from."""
    entries: tuple[Mapping[str, Any], ...]


def look_up(repository: Repository, repo_id: str, key: str | None) -> IndexAnswer:
    """The index entries for `path:…`, `file:…`, `commit:…` or `narrative:…`."""
    kind, colon, wanted = (key or "").partition(":")
    wanted = wanted.encode("utf-8", "replace").decode()
    if key and (not colon or kind not in _QUERIES):
        kinds = ", ".join(f"{name}:" for name in _QUERIES)
        raise UsageError(f"{key!r} is no key of the index.", hint=f"A key begins with {kinds}.")
    heads = repository.current()
    ids = tuple(id for id, _ in heads)
    with closing(_open(repository, heads)) as connection:
        connection.row_factory = sqlite3.Row
        # A project can be renamed, which changes the ids of its files.
        connection.create_function("file_id", 1, lambda path: derived_id("file", repo_id, path))
        with explain_errors(path_for(repository.project, ids), IndexCorrupt):
            if not key:
                return IndexAnswer("", ids, (_summary(connection),))
            rows = connection.execute(_QUERIES[kind], (wanted,)).fetchall()
    return IndexAnswer(key, ids, tuple(dict(row) for row in rows))


def path_for(project: Project, heads: Iterable[ObjectId]) -> str:
    """The path of the index for a set of heads."""
    return os.path.join(project.index_of(heads), FILE)


def damages(project: Project) -> Iterator[Damage]:
    """Everything that is wrong with any index file."""
    for name in disk.names(project.indexes):
        path = os.path.join(project.indexes, name, FILE)
        # An empty folder is left by an interrupted build.
        for problem in check_derived(path) if os.path.exists(path) else ():
            yield Damage(IndexCorrupt.code, path, problem)


def _open(repository: Repository, heads: Sequence[Head]) -> sqlite3.Connection:
    path = path_for(repository.project, [id for id, _ in heads])

    def build(connection: sqlite3.Connection) -> None:
        execute_script(connection, _SCHEMA)
        _fill(connection, repository.objects, heads)

    try:
        if not os.path.exists(path):
            make_room(repository.project)
        return open_derived(path, application_id=APPLICATION_ID, version=VERSION, build=build)
    except DiskFailure:
        # Read-only disk: build the index in memory.
        connection = sqlite3.connect(":memory:")
        build(connection)
        return connection


def _fill(connection: sqlite3.Connection, reader: Reader, heads: Sequence[Head]) -> None:
    starts = [id for id, _ in heads]
    for position, (id, commit) in enumerate(commits.walk(reader, starts)):
        if commit is None:
            continue
        connection.execute(
            "INSERT INTO commits VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                id, position, id in starts, commit.timestamp_unix, commit.message,
                commit.author, commit.session_id, commit.root_tree, commit.cargo_snapshot,
                commit.code_snapshot, commit.diagnostics_snapshot,
            ),
        )  # fmt: skip
        connection.executemany(
            "INSERT OR IGNORE INTO parents VALUES (?, ?)", [(id, p) for p in commit.parents]
        )
        connection.executemany(
            "INSERT OR IGNORE INTO narrative VALUES (?, ?, ?, ?, ?)",
            [(id, ref.path, ref.stream, ref.role, ref.blob_id) for ref in commit.narrative_refs],
        )
    present = trees.combined_paths(reader, heads)
    connection.executemany("INSERT INTO paths VALUES (?, ?)", present.items())


def _summary(connection: sqlite3.Connection) -> dict[str, int]:
    tables = ("commits", "paths", "narrative")
    counts = (connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in tables)
    return dict(zip(tables, counts, strict=True))


def make_room(project: Project) -> None:
    """Delete the least recently used indexes, to make room for one more set of heads."""
    folders = [
        os.path.join(project.indexes, name)
        for name in disk.names(project.indexes)
        if len(name) == INDEX_KEY and os.path.isdir(os.path.join(project.indexes, name))
    ]
    with suppress(FileNotFoundError):  # Another process is deleting too.
        by_age = sorted(folders, key=lambda folder: os.lstat(folder).st_mtime, reverse=True)
        for folder in by_age[KEPT - 1 :]:
            shutil.rmtree(folder, ignore_errors=True)
