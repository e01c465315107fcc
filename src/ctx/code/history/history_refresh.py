"""Update the tables of history to HEAD.

The commits reachable from HEAD are listed and compared with the stored ones: missing ones are read,
others are removed. So a rebase, a deepened clone, a pruned tip and an interrupted refresh need no
special case.
"""

import os
import re
from collections import defaultdict, deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from sqlite3 import Connection
from typing import BinaryIO, NamedTuple

from ctx import checkouts, clock, git, layout, redaction
from ctx.code import file_words, postings
from ctx.code.history import commit_meanings
from ctx.code.history.history_tables import LARGEST_SHARED, key_of, pack, shrink, unpack
from ctx.errors import GitFailure
from ctx.layout import STORE_NAME, Project
from ctx.sqlite.connection import transaction

MOST = 20_000
_NEWEST = 2_000
"""The number of commits that determine which files are being worked on."""
_OLDEST = (1 << 32) - 1


class HistorySize(NamedTuple):
    commits_new: int
    commits_total: int
    complete: bool
    """Whether it contains everything reachable from HEAD, rather than the newest part."""


class _State(NamedTuple):
    """What the tables were updated to."""

    head: str | None
    folder: str
    edge: str
    most: int


def refresh(
    connection: Connection, project: Project, most: int = MOST, tick: clock.Tick = clock.no_tick
) -> HistorySize | None:
    """Update the history to HEAD; None outside of git.

    Each step is a separate transaction, and leaves a consistent history.
    """
    checkout = project.checkout
    if checkout is None:
        return None
    head, edge = git.rev_parse_head(checkout), git.shallow_edge(checkout)
    folder = os.path.relpath(project.root, checkout.top)
    folder = "" if folder == "." else folder
    # The name of a folder may not be valid text for SQLite.
    named = os.fsencode(folder).decode("utf-8", "backslashreplace")
    wanted = _State(head or "", named, " ".join(sorted(edge)), most)
    state, complete = _state(connection)
    if state == wanted:
        return HistorySize(0, _count(connection), complete)

    listed = git.newest_commits(checkout, head, most + 1) if head else []
    complete = len(listed) <= most and edge.isdisjoint(listed)
    reader = os.urandom(8).hex()
    with transaction(connection):
        _remove_outdated_commits(connection, wanted, edge)
        missing = _keep_only(connection, listed[:most])
        connection.execute("DELETE FROM history_state")
        # Nothing counts as up to date until the end, also after an interruption.
        begun = wanted._replace(head=None)
        connection.execute(
            "INSERT INTO history_state VALUES (?, ?, ?, ?, 0, ?, ?)",
            (*begun, reader, _last_touched(connection)),
        )
    paths = _PathIds(connection)
    new = 0
    tick(new, len(missing))
    # Closed at once after an interruption, so that no git process is left behind.
    with closing(read_log(checkout, folder, missing, edge)) as parts:
        for part in parts:
            with transaction(connection):
                if not _is_reading(connection, reader):
                    return HistorySize(new, _count(connection), complete=False)
                _add(connection, paths, part, inside=bool(folder))
            new += len(part)
            tick(new, len(missing))
    if postings.is_due(connection, postings.COMMITS):
        with transaction(connection):
            postings.settle(connection, postings.COMMITS)
    connection.execute(
        "UPDATE history_state SET head = ?, complete = ?, lately = ? WHERE reader = ?",
        (wanted.head, complete, _last_touched(connection), reader),
    )
    return HistorySize(new, _count(connection), complete)


def _last_touched(connection: Connection) -> bytes:
    """The last time each path was touched, based on the newest small commits; see
    `history_tables.py`."""
    rows = connection.execute(
        "SELECT time, files FROM commits WHERE length(files) BETWEEN 4 AND ? AND time <= ?"
        " ORDER BY time DESC LIMIT ?",
        # Commits dated in the future say nothing about the age of the others.
        (4 * LARGEST_SHARED, clock.wall_s(), _NEWEST),
    ).fetchall()
    last = {path_id: time for time, packed in reversed(rows) for path_id in unpack(packed)}
    touched = sorted(last)
    return pack(touched) + pack([min(rows[0][0] - last[path_id], _OLDEST) for path_id in touched])


def history_size(connection: Connection) -> HistorySize:
    """What is stored, whether or not it is up to date."""
    return HistorySize(0, _count(connection), _state(connection)[1])


def _state(connection: Connection) -> tuple[_State | None, bool]:
    row = connection.execute(
        "SELECT head, folder, edge, most, complete FROM history_state"
    ).fetchone()
    return (_State(*row[:4]), bool(row[4])) if row else (None, False)


def _count(connection: Connection) -> int:
    count: int = connection.execute("SELECT count(*) FROM commits").fetchone()[0]
    return count


def _is_reading(connection: Connection, reader: str) -> bool:
    row = connection.execute("SELECT reader FROM history_state").fetchone()
    return row is not None and row[0] == reader


def _remove_outdated_commits(connection: Connection, wanted: _State, edge: frozenset[str]) -> None:
    """Remove data that was read under other conditions and would differ now."""
    state, _ = _state(connection)
    if state is None:
        return
    if state.folder != wanted.folder:
        _clear(connection)
    elif state.edge != wanted.edge:
        # For a commit at the boundary, no files are known; when the boundary has moved, they are.
        stored = connection.execute("SELECT id, hash, files IS NULL FROM commits").fetchall()
        _remove_commits(
            connection, [id for id, hash, blank in stored if blank or hash.hex() in edge]
        )


def _keep_only(connection: Connection, wanted: Sequence[str]) -> list[str]:
    """Remove all other commits, and return the wanted ones that are missing."""
    stored = {
        hash.hex(): id for hash, id in connection.execute("SELECT hash, id FROM commits").fetchall()
    }
    gone = stored.keys() - set(wanted)
    if len(gone) > len(stored) / 2:
        _clear(connection)
        return list(wanted)
    _remove_commits(connection, [stored[hash] for hash in gone])
    return [hash for hash in wanted if hash not in stored]


def _clear(connection: Connection) -> None:
    for table in ("commits", "history_paths", "renames", "commit_meanings"):
        connection.execute(f"DELETE FROM {table}")
    postings.clear(connection, postings.COMMITS)


def _remove_commits(connection: Connection, ids: Sequence[int]) -> None:
    gone_of: defaultdict[int, set[int]] = defaultdict(set)
    for id in ids:
        row = connection.execute("SELECT files FROM commits WHERE id = ?", (id,)).fetchone()
        for path_id in unpack(row[0] or b""):
            gone_of[path_id].add(id)
        connection.execute("DELETE FROM renames WHERE commit_id = ?", (id,))
        connection.execute("DELETE FROM commits WHERE id = ?", (id,))
    for path_id, gone in gone_of.items():
        row = connection.execute("SELECT commits FROM history_paths WHERE id = ?", (path_id,))
        kept = pack([id for id in unpack(row.fetchone()[0]) if id not in gone])
        connection.execute("UPDATE history_paths SET commits = ? WHERE id = ?", (kept, path_id))
    postings.remove(connection, postings.COMMITS, ids)
    commit_meanings.remove(connection, ids)
    if ids:
        connection.execute(
            "DELETE FROM history_paths WHERE commits = x''"
            " AND id NOT IN (SELECT old_id FROM renames)"
        )


def _add(
    connection: Connection, paths: "_PathIds", part: "Iterable[LoggedCommit]", *, inside: bool
) -> None:
    """Store commits. For one that touched nothing inside the folder, only the hash is stored."""
    last = connection.execute("SELECT max(id) FROM commits").fetchone()[0] or 0
    rows, renames = [], []
    commits_of: defaultdict[int, list[int]] = defaultdict(list)
    for id, commit in enumerate(part, last + 1):
        files = None
        if commit.changes is not None:
            touched = {path_id for path, _ in commit.changes if (path_id := paths[path])}
            files = pack(sorted(touched))
            for path_id in touched:
                commits_of[path_id].append(id)
            renames += [
                (id, paths[was], paths[path])
                for path, was in commit.changes
                if was is not None and paths[was] and paths[path]
            ]
        subject, _, body = commit.message.partition("\n") if files or not inside else ("", "", "")
        body = body.strip()
        rows.append((id, bytes.fromhex(commit.hash), commit.time, subject, shrink(body), files))
        counts = file_words.of_message(subject, body)
        postings.put(connection, postings.COMMITS, id, min(len(files or b"") // 4, 255), counts)
    connection.executemany("INSERT INTO commits VALUES (?, ?, ?, ?, ?, ?)", rows)
    connection.executemany("INSERT OR IGNORE INTO renames VALUES (?, ?, ?)", renames)
    connection.executemany(
        "UPDATE history_paths SET commits = CAST(commits || ? AS BLOB) WHERE id = ?",
        ((pack(ids), path_id) for path_id, ids in commits_of.items()),
    )


class _PathIds(dict[bytes, int | None]):
    """The ids of paths, created on demand; None for excluded ones."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def __missing__(self, raw: bytes) -> int | None:
        path = os.fsdecode(raw)
        plain = path.isascii() and path.isprintable()
        if STORE_NAME in path.split("/") or (not plain and layout.unfit_name(path)):
            self[raw] = None
            return None
        key = key_of(path)
        row = self._connection.execute(
            "SELECT id FROM history_paths WHERE key = ? AND path = ?", (key, path)
        ).fetchone()
        if row is None:
            row = (
                self._connection.execute(
                    "INSERT INTO history_paths (path, key, commits) VALUES (?, ?, x'')", (path, key)
                ).lastrowid,
            )
        self[raw] = row[0]
        return self[raw]


LONGEST_MESSAGE = 1500
"""The maximum number of characters of a message."""

# Secrets are recognised by their context, so more of a message is searched than stored.
_LONGEST_READ_MESSAGE = 4 * LONGEST_MESSAGE
_AT_A_TIME = 2500
_PROCESSES = 4
_BLOCK = 1 << 20
_LONGEST_FIELD = 1 << 16
_LATEST = 1 << 40
_SHORTEST_HASH = 40


Change = tuple[bytes, bytes | None]
"""The path of a file that a commit added, changed, removed or renamed, and its old path if it was
renamed; as bytes, relative to the folder. There are too many for anything larger than tuples."""


class LoggedCommit(NamedTuple):
    hash: str
    time: int
    """The time of the commit, in seconds since 1970."""
    message: str
    changes: list[Change] | None
    """Empty for a merge; None if git cannot tell, as at the boundary of a shallow clone."""


def read_log(
    checkout: checkouts.Checkout, folder: str, hashes: Sequence[str], edge: frozenset[str]
) -> Generator[list[LoggedCommit]]:
    """These commits in order, in batches, with their changes under a folder.

    Only git's plumbing is used: no user setting changes its output, and it runs no program of the
    user: no signature check, no textconv, no external diff. The output may contain any bytes.
    Secrets, control characters and lines that only name people are removed from a message, and its
    length is limited.

    Several git processes work ahead of us. If one fails, because objects are missing that the
    comparison of files or trees needs, the rest is read in a way that needs less.
    """
    parts = deque(hashes[at : at + _AT_A_TIME] for at in range(0, len(hashes), _AT_A_TIME))
    at_once = min(os.cpu_count() or 1, _PROCESSES)
    ways = _log_options(folder)
    way = 0
    running: deque[tuple[int, Sequence[str], git.BackgroundProcess]] = deque()

    def start(part: Sequence[str]) -> tuple[int, Sequence[str], git.BackgroundProcess]:
        stdin = "".join(f"{hash}\n" for hash in part).encode()
        return (
            way,
            part,
            git.BackgroundProcess(checkout, *ways[way], *_MESSAGE_OPTIONS, stdin=stdin),
        )

    try:
        while parts or running:
            while parts and len(running) < at_once:
                running.append(start(parts.popleft()))
            used, part, reading = running[0]
            try:
                commits = list(_commits(_fields(reading.printed()), edge))
                if used == len(ways) - 1:
                    commits = [commit._replace(changes=None) for commit in commits]
            except GitFailure:
                way = max(way, used + 1)
                if way == len(ways):
                    raise
                reading.close()
                running[0] = start(part)
                continue
            running.popleft()
            reading.close()
            yield _fit(commits)
    finally:
        for _, _, reading in running:
            reading.close()


# A field contains anything but NUL, and a hash does not look like a file status.
_MESSAGE_OPTIONS = ("--stdin", "-z", "--encoding=UTF-8", "--format=%H%x00%ct%x00%B")


def _log_options(folder: str) -> list[tuple[str, ...]]:
    """The options, from the most detailed to those that need the fewest objects."""
    compared = [
        *("diff-tree", "--always", "--root", "-r", "--name-status", "--no-ext-diff"),
        *("--no-textconv", "--ignore-submodules=all"),
    ]
    if folder:
        compared.append(f"--relative={folder}/")
    return [
        # Detect renames with edits: needs the blobs. The limit prevents comparing a mass of files
        # pairwise.
        (*compared, "-M", "-l200"),
        # Detect exact renames: needs only the trees, which a blobless clone has.
        (*compared, "-M100%"),
        ("log", "--no-walk=unsorted", "--no-show-signature", "-s"),
    ]


def _fields(printed: BinaryIO) -> Iterator[bytes]:
    begun = b""
    while block := printed.read(_BLOCK):
        end, *others = block.split(b"\0")
        # Only the beginning of a very long message counts.
        begun = (begun + end)[:_LONGEST_FIELD] if len(begun) < _LONGEST_FIELD else begun
        for other in others:
            yield begun
            begun = other


def _commits(fields: Iterator[bytes], edge: frozenset[str]) -> Iterator[LoggedCommit]:
    field = next(fields, None)
    while field is not None:
        hash = field.decode("ascii", "replace")
        time, message = next(fields, b""), next(fields, b"")
        changes: list[Change] = []
        while (field := next(fields, None)) is not None and len(field) < _SHORTEST_HASH:
            path = next(fields, b"")
            match field.lstrip(b"\n")[:1]:
                case b"R":
                    changes.append((next(fields, b""), path))
                case b"C":
                    # A second file that was made from a removed one. The first one continues its
                    # history.
                    changes.append((next(fields, b""), None))
                case _:
                    changes.append((path, None))
        text = message[:_LONGEST_READ_MESSAGE].decode("utf-8", "replace")
        known = None if hash in edge else changes
        yield LoggedCommit(hash, min(int(time or 0), _LATEST), text, known)


def _fit(commits: list[LoggedCommit]) -> list[LoggedCommit]:
    """The same commits with messages that can be stored."""
    messages = [_CONTROL.sub("", commit.message) for commit in commits]
    # Hardly any message contains a secret, and one search over all of them takes a tenth of the
    # time. No rule matches across a NUL, and no message contains one.
    if redaction.redact("\n\0\n".join(messages)).findings:
        messages = [redaction.redact(message).text for message in messages]
    kept = (_NAMING_PEOPLE.sub("", message[:LONGEST_MESSAGE]).strip() for message in messages)
    return [commit._replace(message=message) for commit, message in zip(commits, kept, strict=True)]


_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_NAMING_PEOPLE = re.compile(r"\n[A-Za-z]{1,20}(?:-[A-Za-z]{1,20}){0,3}-by: .*")
