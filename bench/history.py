"""The cost of a repository's history: reading it, checking for new commits, and its size.

The floor of a full read is one git process that lists the same commits with the files that each
touched. ctx also detects renames, redacts and indexes the messages, and runs several git processes.
The floor of a refresh without new commits is the one git call that it makes. Reading after a commit
was removed, and after it was added again, is shown too.

    python -m bench history [REPOSITORY [COMMITS [ROUNDS]]]
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from sqlite3 import Connection

from bench import report, timing
from bench.timing import Cost, Figure, more, ms, times
from ctx import layout
from ctx.code import postings
from ctx.code.history import commit_queries
from ctx.code.history.history_refresh import MOST, refresh
from ctx.code.history.history_tables import SCHEMA
from ctx.layout import Project
from ctx.sqlite.connection import connect, execute_script

HERE = Path(__file__).parent.parent
ASKED = 20


def database(path: str) -> Connection:
    connection = connect(path, "mode=rwc")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    execute_script(connection, SCHEMA + postings.SCHEMA)
    return connection


def read_anew(space: str, project: Project, most: int) -> Cost:
    with (
        tempfile.TemporaryDirectory(dir=space) as folder,
        closing(database(f"{folder}/code.db")) as connection,
    ):
        return timing.of_call_and_children(lambda: refresh(connection, project, most))


def one_commit(connection: Connection, clone: Project, most: int) -> Cost:
    """Remove the newest commit and read the result; then add the same commit again."""
    head = git(clone.root, "rev-parse", "HEAD")
    git(clone.root, "update-ref", "--no-deref", "HEAD", "HEAD~1")
    refresh(connection, clone, most)
    git(clone.root, "update-ref", "--no-deref", "HEAD", head)
    return timing.of_call_and_children(lambda: refresh(connection, clone, most))


def git(folder: str, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def answers(connection: Connection) -> list[Figure]:
    """Queries about the newest files."""
    rows = connection.execute("SELECT path FROM history_paths ORDER BY id DESC LIMIT ?", (ASKED,))
    paths = [path for (path,) in rows]
    subjects = [
        commit.subject
        for path in paths
        for commit in commit_queries.commits_of(connection, path, 1)
    ]
    work: dict[str, Callable[[], object]] = {
        "commits of a file": lambda: [commit_queries.commits_of(connection, p, 10) for p in paths],
        "files that change together": lambda: [
            commit_queries.changed_together(connection, p, 10) for p in paths
        ],
        "search for a subject": lambda: [
            commit_queries.search(connection, s, 10) for s in subjects
        ],
    }
    asked = {name: timing.of_call(ask).wall / max(1, len(paths)) for name, ask in work.items()}
    return [Figure(f"{name}, mean of {len(paths)}", ms(took)) for name, took in asked.items()]


def figures(space: str, project: Project, most: int, rounds: int) -> list[Figure]:
    log = ["git", "log", f"--max-count={most}", "--name-only", "--format=%H %ct %B"]
    full = timing.alternate(
        rounds,
        {
            "ours": lambda: read_anew(space, project, most),
            "floor": lambda: timing.of_child(log, folder=project.root),
        },
    )
    clone_folder = f"{space}/clone"
    git(space, "clone", "-q", "--shared", "--no-checkout", project.root, clone_folder)
    clone = layout.project_at(clone_folder)
    path = f"{space}/code.db"
    with closing(database(path)) as connection:
        refresh(connection, clone, most)
        head = ["git", "rev-parse", "--verify", "--quiet", "HEAD^{commit}"]
        still = timing.alternate(
            max(rounds, 9),
            {
                "ours": lambda: timing.of_call_and_children(
                    lambda: refresh(connection, clone, most)
                ),
                "floor": lambda: timing.of_child(head, folder=clone_folder),
            },
        )
        news = timing.alternate(3, {"ours": lambda: one_commit(connection, clone, most)})
        asked = answers(connection)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        count = connection.execute("SELECT count(*) FROM commits").fetchone()[0]
    size = os.path.getsize(path)
    each = f"{size / max(1, count):.0f} bytes"
    beside = still.wall("ours") - still.wall("floor")
    print(f"{count:,} commits, {os.cpu_count()} cores")
    return [
        Figure("full read, wall", seconds(full.wall("ours")), seconds(full.wall("floor")), "",
               times(full.wall_ratio("ours", "floor"))),
        Figure("full read, CPU", seconds(full.cpu("ours")), seconds(full.cpu("floor")), "",
               times(full.cpu_ratio("ours", "floor"))),
        Figure("no new commit, wall", ms(still.wall("ours")), ms(still.wall("floor")), "",
               more(beside), "+10 ms"),
        Figure("one new commit, wall", ms(news.wall("ours"))),
        Figure("size", f"{size / 1e6:.1f} MB", "", "", f"{each} each"),
        *asked,
    ]  # fmt: skip


def seconds(took: float) -> str:
    return f"{took:.2f} s"


def main() -> None:
    repository = sys.argv[1] if len(sys.argv) > 1 else str(HERE)
    most = int(sys.argv[2]) if len(sys.argv) > 2 else MOST
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 3
    with tempfile.TemporaryDirectory() as space:
        report.print_figures(figures(space, layout.project_at(repository), most, rounds))


if __name__ == "__main__":
    main()
