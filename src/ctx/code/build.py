"""Refresh the code index to match the files.

The cost is proportional to what changed: files are compared by their stamps, then by their content;
only changed files are parsed; and only these, and files that mention names whose meaning changed,
are resolved again. An interrupted refresh continues later: parsed files stay parsed.

Resolving costs about as much as parsing, and most edges are never requested. So a refresh resolves
only if few files are pending; otherwise it leaves them marked, and reading edges first resolves the
files that matter for the answer (`code_graph.py`).
"""

import os
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from sqlite3 import Connection

from ctx import clock, disk
from ctx.code import (
    affected_files,
    code_tables,
    file_listing,
    file_reader,
    index_check,
    index_file,
    postings,
)
from ctx.code.file_listing import FileListing, ListedFile
from ctx.code.file_reader import FileRecord, FileToRead
from ctx.code.index_check import AT_ONCE, PACKAGES, RefreshCounts, SourceTree
from ctx.code.packages import manifests as packages
from ctx.code.process_pool import FEW, LARGE, ProcessPool
from ctx.code.resolve.facts import EVERYTHING
from ctx.code.resolve.resolver import ResolvedEdges, Resolver
from ctx.redaction import names_with_secrets

_TRANSACTION = 512
"""Files that are written in one transaction: the most that an interruption can lose."""


def refresh(
    place: SourceTree,
    tick: clock.Tick = clock.no_tick,
    *,
    chosen: Callable[[str], bool] | None = None,
    listing: FileListing | None = None,
    at_once: int = AT_ONCE,
) -> RefreshCounts:
    """Refresh the index; with `chosen`, only the paths that it accepts. If at most `at_once` files
    are pending, they are resolved too."""
    if listing is None:
        listing = file_listing.list_files(place.root, place.checkout, place.ignore_globs)
    connection = index_file.open_for_writing(place.database)
    try:
        return _Refresh(place, connection, tick, chosen).run(listing, at_once)
    finally:
        connection.close()


def follow(
    place: SourceTree, files: Collection[int] | None = None, tick: clock.Tick = clock.no_tick
) -> int:
    """Resolve the mentions of the pending files among these, or of all pending files. Returns their
    number."""
    connection = index_file.open_existing(place.database)
    try:
        waiting = index_file.unresolved_files(connection)
        if files is not None:
            wanted = frozenset(files)
            waiting = [file_id for file_id in waiting if file_id in wanted]
        done = _follow(connection, place, waiting, tick)
        if done:
            index_file.checkpoint(connection)
        return done
    finally:
        connection.close()


def _follow(connection: Connection, place: SourceTree, files: list[int], tick: clock.Tick) -> int:
    if not files:
        return 0
    done = 0
    pending: list[ResolvedEdges] = []
    with ProcessPool() as pool:
        if len(files) <= FEW:
            resolver = Resolver(connection, place.root)
            answers: Iterable[ResolvedEdges] = (resolver.resolve(file_id) for file_id in files)
        else:
            answers = pool.resolve(place.database, place.root, files)
        try:
            for answer in answers:
                pending.append(answer)
                done += 1
                if len(pending) >= _TRANSACTION:
                    _put_edges(connection, place, pending)
                tick(done, len(files))
        finally:
            _put_edges(connection, place, pending)
    code_tables.index_backward(connection)
    return done


def _put_edges(connection: Connection, place: SourceTree, answers: list[ResolvedEdges]) -> None:
    if answers:
        with index_file.writing(connection, place.database):
            for answer in answers:
                code_tables.put_edges(connection, answer)
        answers.clear()


class _Refresh:
    def __init__(
        self,
        place: SourceTree,
        connection: Connection,
        tick: clock.Tick,
        chosen: Callable[[str], bool] | None,
    ) -> None:
        self._place = place
        self._connection = connection
        self._tick = tick
        self._chosen = chosen
        self._names: set[str] = set()
        """Names whose meaning changed in any file."""
        self._largest = 0
        self._configurations: list[bytes] | None = None
        self._is_new = False
        self._languages: set[str] = set()
        """Languages whose imports may lead elsewhere now."""

    def run(self, listing: FileListing, at_once: int) -> RefreshCounts:
        files = listing.files
        self._apply_changed_limits()
        if self._chosen:
            files = [file for file in files if self._chosen(file[0])]
        wanted, added, gone = self._compare(files)
        with ProcessPool() as pool:
            changed = self._read(pool, wanted, gone)
            if postings.is_due(self._connection, postings.FILES):
                with index_file.writing(self._connection, self._place.database):
                    postings.settle(self._connection, postings.FILES)
        resolved = 0
        waiting = index_file.unresolved_files(self._connection)
        if len(waiting) <= at_once:
            resolved = _follow(self._connection, self._place, waiting, self._tick)
        if not index_file.read_note(self._connection, PACKAGES):
            described = packages.read_all(self._place.root, [file[0] for file in listing.files])
            with index_file.writing(self._connection, self._place.database):
                code_tables.put_packages(self._connection, described)
                index_file.note(self._connection, PACKAGES, 1)
        index_check.note_refresh(self._connection, self._place, listing)
        if wanted or gone or resolved:
            index_file.checkpoint(self._connection)
        return RefreshCounts(
            len(files), added, changed - added, len(gone), resolved, tuple(listing.left_out)
        )

    def _apply_changed_limits(self) -> None:
        """Check every file again if the limits for parsing have changed."""
        digest = index_check.limits_digest(self._place)
        before = index_file.read_note(self._connection, index_check.LIMITS)
        if before != digest:
            with index_file.writing(self._connection, self._place.database):
                if before is not None:
                    self._connection.execute("UPDATE files SET settled = 0, reader = -1")
                index_file.note(self._connection, index_check.LIMITS, digest)
                root = os.fsencode(self._place.root)
                index_file.note(self._connection, index_file.ROOT, root)

    def _compare(self, files: list[ListedFile]) -> tuple[list[FileToRead], int, list[int]]:
        """The files to read, the number of new files, and the deleted files."""
        changed, new, gone = index_check.compare(self._connection, files)
        wanted = [
            FileToRead(each.file_id, each.file[0], each.hash, each.reader, each.file[1:])
            for each in changed
        ]
        self._largest = max((each.file[1] for each in changed), default=0)
        # The index stores paths, and no secrets.
        if secret := names_with_secrets([file[0] for file in new]):
            new = [file for file in new if file[0] not in secret]
        wanted += self._number(new)
        return wanted, len(new), [] if self._chosen else gone

    def _number(self, new: list[ListedFile]) -> list[FileToRead]:
        """Assign ids to new files. From now on they are in the index, still to be read."""
        if not new:
            return []
        self._largest = max(self._largest, *(file[1] for file in new))
        last = self._connection.execute("SELECT coalesce(max(id), 0) FROM files").fetchone()[0]
        self._is_new = not last
        with index_file.writing(self._connection, self._place.database):
            self._connection.executemany(
                "INSERT INTO files (id, path, size, mtime_ns, ctime_ns, inode, settled)"
                " VALUES (?, ?, ?, ?, ?, ?, 0)",
                [(last + number, *file) for number, file in enumerate(new, 1)],
            )
            index_file.note(self._connection, PACKAGES, 0)
            if last:
                # An unresolved mention may refer to a new file.
                for file in new:
                    self._names |= affected_files.names_in_path(self._connection, file[0])
        return [
            FileToRead(last + number, file[0], stamps=file[1:])
            for number, file in enumerate(new, 1)
        ]

    def _read(self, pool: ProcessPool, wanted: list[FileToRead], gone: list[int]) -> int:
        """Read the files that need it, and remove deleted ones."""
        changed = 0
        paths = {file.file_id: file.path for file in wanted}
        pending: list[FileRecord] = []
        limits = index_check.limits(self._place.root, self._place.max_bytes)
        if len(wanted) <= FEW and self._largest < LARGE:
            answers: Iterable[FileRecord] = (
                file_reader.read(self._place.root, file, limits) for file in wanted
            )
        else:
            answers = pool.read(self._place.root, self._place.max_bytes, wanted)
        done = 0
        try:
            for answer in answers:
                pending.append(answer)
                changed += answer.state in ("read", "skipped")
                done += 1
                if len(pending) >= _TRANSACTION:
                    self._store_records(pending, paths)
                self._tick(done, len(wanted))
        finally:
            # Also after an interruption, so that no file is read twice.
            self._store_records(pending, paths)
        if gone:
            with index_file.writing(self._connection, self._place.database):
                for file_id in gone:
                    self._remove(file_id)
                self._mark_affected_files()
        return changed

    def _store_records(self, answers: list[FileRecord], paths: dict[int, str]) -> None:
        if not answers:
            return
        with index_file.writing(self._connection, self._place.database):
            for answer in answers:
                if answer.state == "gone":
                    self._remove(answer.file_id)
                    continue
                names = code_tables.put(self._connection, answer, others=not self._is_new)
                if EVERYTHING in names:
                    names |= affected_files.names_of_file(paths[answer.file_id])
                self._names |= names
                if answer.state != "same":
                    path = paths[answer.file_id]
                    if not self._is_new:
                        self._languages.update(self._affected_languages(path))
                    if path.rpartition("/")[2] in packages.MANIFESTS:
                        index_file.note(self._connection, PACKAGES, 0)
            # In the same transaction, so that affected files are not lost.
            self._mark_affected_files()
        answers.clear()

    def _remove(self, file_id: int) -> None:
        row = self._connection.execute("SELECT path FROM files WHERE id = ?", (file_id,)).fetchone()
        if row:
            names = affected_files.names_in_path(self._connection, row[0])
            names |= code_tables.remove(self._connection, file_id)
            if EVERYTHING in names:
                names |= affected_files.names_of_file(row[0])
            self._names |= names
            self._languages.update(self._affected_languages(row[0]))
            index_file.note(self._connection, PACKAGES, 0)

    def _affected_languages(self, path: str) -> tuple[str, ...]:
        """The languages whose imports may lead elsewhere after a change of this file."""
        name = path.rpartition("/")[2]
        if name.endswith(".json") and name not in affected_files.MANIFESTS:
            if self._configurations is None:
                self._configurations = list(self._settings())
            stem = name.removesuffix(".json").encode()
            if any(stem in configuration for configuration in self._configurations):
                name = "tsconfig.json"
        return affected_files.MANIFESTS.get(name, ())

    def _settings(self) -> Iterator[bytes]:
        """The content of TypeScript's settings, which can include others under any name."""
        rows = self._connection.execute(
            "SELECT path FROM files WHERE path GLOB '*[tj]sconfig*.json' LIMIT 200"
        )
        for (path,) in rows.fetchall():
            with suppress(OSError):
                yield disk.read_plain(os.path.join(self._place.root, path), self._place.max_bytes)
            yield os.fsencode(path)

    def _mark_affected_files(self) -> None:
        """Mark all files whose edges may have changed."""
        files = affected_files.files_affected_by(self._connection, self._names)
        if files is None:
            code_tables.mark_all_unresolved(self._connection)
        else:
            code_tables.mark_unresolved(self._connection, files)
        self._names.clear()
        for language in self._languages:
            self._connection.execute(
                "UPDATE files SET resolved = 0 WHERE language = ? AND skipped IS NULL", (language,)
            )
        self._languages.clear()
