"""git's history of the code: files that changed together, and commit messages."""

import os
from contextlib import closing
from sqlite3 import Connection
from typing import NamedTuple

from ctx import clock, locks
from ctx.code import index_file
from ctx.code.history import commit_queries
from ctx.code.history import history_refresh as history
from ctx.code.history.commit_queries import CoChange
from ctx.code.lookup import Code
from ctx.codebase.indexing import Codebase
from ctx.errors import LockConflict, PathRefused, UsageError
from ctx.layout import Project
from ctx.sqlite.connection import explain_errors

_WAIT_SECONDS = 2.0
_LONGEST_HASH = 12
_EVERY = 1 << 30


class Options(NamedTuple):
    path: str = ""
    """A file or a folder, from the folder of the command or from the root."""
    words: str = ""
    """What a commit's message is about."""
    limit: int = 20
    """0: all."""


class TouchingCommit(NamedTuple):
    """A commit, as far as it is about what was asked."""

    commit: str
    time: str
    subject: str
    files: tuple[str, ...]


class FileHistory(NamedTuple):
    """The answer of `ctx code history`."""

    path: str | None
    words: str | None
    commits: tuple[TouchingCommit, ...]
    together: tuple[CoChange, ...]
    """The files that are closest to it: changed in the same commits, most often first."""
    read: int
    """How many commits are known."""
    complete: bool
    """Whether these are all; else they are the newest."""


def code_history(
    codebase: Codebase, options: Options, tick: clock.Tick = clock.no_tick
) -> FileHistory:
    """The commits of a file with the files that changed with it, or the commits that match
    words."""
    if bool(options.path) == bool(options.words):
        raise UsageError(
            "Name a file, or words to look for.",
            hint='`ctx code history src/net.py` or `ctx code history --search "timeout"`.',
        )
    place = codebase.place
    if place.checkout is None:
        raise PathRefused(f"{place.root} is not in a git repository, and has no history.")
    with (
        explain_errors(place.database),
        closing(index_file.open_for_writing(place.database)) as connection,
    ):
        known = history.history_size(connection)
        try:
            with locks.hold(place.lock, "ctx code history", _WAIT_SECONDS):
                project = Project(place.root, place.checkout)
                known = history.refresh(connection, project, tick=tick) or known
        except LockConflict:
            # Another process is updating it: the existing history is valid, only older.
            known = history.history_size(connection)
        limit = options.limit or _EVERY
        total, complete = known.commits_total, known.complete
        if options.words:
            found = commit_queries.search(connection, options.words, limit)
            commits = [each.commit for each in found]
            return FileHistory(
                None, options.words, _touching_commits(connection, commits), (), total, complete
            )
        path, commits = _commits(connection, codebase, options.path, limit)
        # What is gone says nothing about what to read next.
        beside = commit_queries.changed_together(connection, path, 4 * limit)
        there = [each for each in beside if os.path.lexists(os.path.join(place.root, each.path))]
        closest = sorted(there[:limit], key=lambda each: (-each.times, each.path))
        return FileHistory(
            path, None, _touching_commits(connection, commits), tuple(closest), total, complete
        )


def _touching_commits(
    connection: Connection, commits: list[commit_queries.IndexedGitCommit]
) -> tuple[TouchingCommit, ...]:
    return tuple(
        TouchingCommit(
            each.hash[:_LONGEST_HASH],
            clock.iso(1000 * each.time),
            each.subject,
            tuple(commit_queries.files_of(connection, each.hash)),
        )
        for each in commits
    )


def _commits(
    connection: Connection, codebase: Codebase, said: str, limit: int
) -> tuple[str, list[commit_queries.IndexedGitCommit]]:
    """What is meant by a path, from the root, and its commits. It need not be there any more."""
    root = codebase.place.root
    meant = [
        each
        for each in Code(connection, root).inside(said, codebase.folder)
        if each != ".." and not each.startswith("../")
    ]
    if not meant:
        raise PathRefused(f"{said!r} is outside of {root}.")
    there = [each for each in meant if os.path.lexists(os.path.join(root, each))]
    for path in dict.fromkeys((*there, *meant)):
        found = commit_queries.commits_of(connection, path, limit)
        if found := found or commit_queries.commits_inside(connection, path, limit):
            return path, found
    if not there:
        raise PathRefused(
            f"{said[:200]!r} does not exist, and no commit has changed such a file.",
            hint="`ctx code history --search WORDS` searches commit messages.",
        )
    return there[0], []
