"""Repositories with a history, created in one step, and databases that index it."""

import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from sqlite3 import Connection
from typing import NamedTuple

from ctx import layout
from ctx.code import postings
from ctx.code.history import commit_queries
from ctx.code.history.history_refresh import MOST, HistorySize, refresh
from ctx.code.history.history_tables import SCHEMA
from ctx.sqlite import connection as sqlite

FIRST = 1_700_000_000
"""When the first commit was made; each next one a minute later."""


class Made(NamedTuple):
    """A commit to create; a file that is None is removed."""

    message: str | bytes
    files: Mapping[str | bytes, str | None]
    parents: tuple[int, ...] | None = None
    """Numbers of commits, from 1 on; by default the previous one."""
    encoding: str = ""
    time: int = 0
    """Where it is not a minute after the one before."""


def make(folder: Path, *commits: Made, branch: str = "main") -> Path:
    """A repository whose branch has these commits."""
    if not (folder / ".git").exists():
        subprocess.run(["git", "init", "-q", "-b", "main", str(folder)], check=True)
    script = bytearray()
    for number, commit in enumerate(commits, 1):
        message = commit.message
        raw = message.encode() if isinstance(message, str) else message
        script += b"commit refs/heads/%s\nmark :%d\n" % (branch.encode(), number)
        time = commit.time or FIRST + 60 * number
        script += b"committer P <p@example.org> %d +0000\n" % time
        if commit.encoding:
            script += b"encoding %s\n" % commit.encoding.encode()
        script += b"data %d\n%s\n" % (len(raw), raw)
        if number == 1:
            # Nothing of what the branch was before.
            script = bytearray(b"reset refs/heads/%s\n\n" % branch.encode()) + script
        parents = commit.parents
        if parents is None:
            parents = (number - 1,) if number > 1 else ()
        for word, parent in zip((b"from", *[b"merge"] * 9), parents, strict=False):
            script += b"%s :%d\n" % (word, parent)
        for path, content in commit.files.items():
            name = _quoted(path.encode() if isinstance(path, str) else path)
            if content is None:
                script += b"D %s\n" % name
            else:
                blob = content.encode()
                script += b"M 100644 inline %s\ndata %d\n%s\n" % (name, len(blob), blob)
    fast_import = ["git", "fast-import", "--quiet", "--force"]
    subprocess.run(fast_import, cwd=folder, input=bytes(script), check=True)
    return folder


def _quoted(path: bytes) -> bytes:
    return b'"%s"' % b"".join(b"\\%03o" % byte for byte in path)


class History:
    """A database that contains only history, and its project."""

    def __init__(self, root: Path, database: str = ":memory:") -> None:
        self.connection: Connection = (
            Connection(database, isolation_level=None)
            if database == ":memory:"
            else sqlite.connect(database, "mode=rwc")
        )
        if not self.connection.execute("SELECT 1 FROM sqlite_master").fetchone():
            sqlite.execute_script(self.connection, SCHEMA + postings.SCHEMA)
        self.project = layout.project_at(str(root))

    def refresh(
        self, most: int = MOST, tick: Callable[[int, int], None] | None = None
    ) -> HistorySize:
        done = refresh(self.connection, self.project, most, *([tick] if tick else []))
        assert done is not None
        return done

    def subjects(self, path: str, limit: int = 100) -> list[str]:
        return [
            commit.subject for commit in commit_queries.commits_of(self.connection, path, limit)
        ]

    def search(self, words: str, limit: int = 10) -> list[str]:
        return [
            found.commit.subject for found in commit_queries.search(self.connection, words, limit)
        ]

    def together(self, path: str, limit: int = 10) -> list[commit_queries.CoChange]:
        return commit_queries.changed_together(self.connection, path, limit)

    def everything(self, paths: list[str], words: str) -> object:
        """The answers to every query about some paths and words."""
        found = commit_queries.search(self.connection, words, 1000)
        return (
            found,
            {
                item.commit.hash: commit_queries.files_of(self.connection, item.commit.hash)
                for item in found
            },
            {path: commit_queries.commits_of(self.connection, path, 1000) for path in paths},
            {path: self.together(path, 1000) for path in paths},
        )
