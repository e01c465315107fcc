"""Convert a store that the Go program of the same name left at our path.

Both programs keep their graph in `~/.ctx/store.db`. The old file is not changed: it is copied, the
new store is built from the copy under another name, and then replaces the old file atomically. If
this is interrupted, the old store is still there, and the next command starts again. If several
commands find it at the same time, one converts it and the others wait.
"""

import os
from collections.abc import Iterator
from contextlib import closing
from sqlite3 import Connection
from typing import NamedTuple

from ctx import clock, disk, locks
from ctx.exchange.foreign import go_ctx
from ctx.exchange.foreign.foreign_items import ForeignSource, Item, SkippedItem
from ctx.exchange.importer import ACTION, ItemImporter
from ctx.memory import user_store
from ctx.memory.changes import ChangeAuthor, changing
from ctx.memory.graph import Graph
from ctx.memory.model import Redaction
from ctx.sqlite.connection import connect, explain_errors, folder_of, temporary_file, transaction

_WAIT_SECONDS = 600
_BUSY_MS = 10_000


class ConvertedStore(NamedTuple):
    """A converted store, and what it contained."""

    backup: str
    """Their store, as it was."""
    nodes: int
    edges: int
    views: int
    redacted: tuple[Redaction, ...]
    """Secrets that were not written down; the backup still has them."""
    skipped: tuple[SkippedItem, ...]


def convert_go_store(path: str, tick: clock.Tick = clock.no_tick) -> ConvertedStore | None:
    """Replace a store of the Go program by ours; None if there is none."""
    path = os.path.realpath(path)
    with locks.hold(f"{path}.adopting", "converting a store of the Go program", _WAIT_SECONDS):
        # Another process may have been first.
        if not go_ctx.is_go_store(path):
            return None
        with (
            disk.explain_errors("converting a store"),
            explain_errors(path),
            closing(connect(path, "mode=rw", _BUSY_MS)) as theirs,
        ):
            # Its log must be gone before another file takes its place: SQLite would apply it to
            # that file. No other process may have it open for this.
            theirs.execute("PRAGMA journal_mode = DELETE")
            # From here on, no other process writes to it.
            with transaction(theirs):
                return _replace_store(path, tick)


def _replace_store(path: str, tick: clock.Tick) -> ConvertedStore:
    now = clock.iso(clock.now_ms()).replace("-", "").replace(":", "")
    with temporary_file(path) as copy, temporary_file(path) as built:
        with (
            closing(connect(path, "mode=ro")) as source,
            closing(connect(copy, "mode=rw")) as target,
        ):
            source.backup(target)
        _sync(copy)
        adopted = _build(built, copy, tick)
        backup = f"{path}.go-{now}"
        os.replace(copy, backup)
        disk.sync_folder(folder_of(path))
        os.replace(built, path)
        disk.sync_folder(folder_of(path))
    return adopted._replace(backup=backup)


def _build(path: str, copy: str, tick: clock.Tick) -> ConvertedStore:
    with closing(user_store.open_for_writing(path)) as connection:
        adopted = _fill_store(connection, copy, tick)
    # With the last connection its log is gone, and everything is in the file.
    _sync(path)
    return adopted


def _items_with_progress(reading: ForeignSource, tick: clock.Tick) -> Iterator[Item]:
    for done, item in enumerate(reading.items):
        tick(done, max(done, reading.total))
        yield item


def _fill_store(connection: Connection, copy: str, tick: clock.Tick) -> ConvertedStore:
    who = ChangeAuthor("cli", f"{ACTION}:{go_ctx.PROGRAM}")
    with (
        go_ctx.reading(copy) as reading,
        changing(Graph(connection), ACTION, who) as change,
    ):
        intake = ItemImporter(change, reading.total)
        intake.take_all(_items_with_progress(reading, tick), reading.program)
        counts = intake.finish()
    return ConvertedStore(
        "",
        sum(counts.added.values()),
        counts.edges,
        counts.views,
        tuple(change.redacted),
        tuple(intake.skipped),
    )


def _sync(path: str) -> None:
    with open(path, "rb") as file:
        disk.sync(file.fileno())
