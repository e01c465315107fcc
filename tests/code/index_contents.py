"""Everything in a code index, without row ids."""

import os
from array import array
from pathlib import Path
from typing import NamedTuple

from ctx.code import build, index_check, index_file
from ctx.code.resolve import facts
from ctx.code.vocabulary import CONFIDENCES, KINDS, LABELS, VISIBILITIES

Key = tuple[str, int, int, str, str]
"""An item: its file, where it begins and ends, its kind and its name."""


class Built(NamedTuple):
    files: dict[str, tuple[object, ...]]
    items: dict[Key, tuple[object, ...]]
    imports: dict[str, list[tuple[str, str, Key | None]]]
    edges: list[tuple[Key, str, Key, str, int, int]]
    unresolved: int


def place(root: Path, database: Path) -> index_check.SourceTree:
    return index_check.SourceTree(str(root), None, str(database))


def built(database: Path) -> Built:
    connection = index_file.open_for_reading(str(database))
    assert connection is not None
    try:
        files, paths = {}, {}
        for file_id, path, *rest in connection.execute(
            "SELECT id, path, language, size, mtime_ns, hash, lines, reader, skipped, problems"
            " FROM files"
        ):
            files[path] = tuple(rest)
            paths[file_id] = path
        keys: dict[int, Key] = {}
        rows = connection.execute("SELECT * FROM items ORDER BY id").fetchall()
        for item, _, kind, name, _, start, stop, *_ in rows:
            keys[item] = (paths[item >> 16], start, stop, KINDS[kind], name)
        items = {
            keys[item]: (keys.get(parent), VISIBILITIES[seen], *rest)
            for item, parent, _, _, seen, _, _, *rest in rows
        }
        assert len(items) == len(rows)
        imports = {}
        for file_id, packed, targets in connection.execute(
            "SELECT file_id, facts, targets FROM facts"
        ):
            known = facts.decode(packed).imports
            imports[paths[file_id]] = [
                (each.module, each.item, keys[target] if target else None)
                for each, target in zip(
                    known, array("q", targets or bytes(8 * len(known))), strict=True
                )
            ]
        edges = sorted(
            (keys[source], LABELS[label], keys[target], CONFIDENCES[sure], line, times)
            for source, label, target, sure, line, times in connection.execute(
                "SELECT * FROM edges"
            )
        )
        (unresolved,) = connection.execute(
            "SELECT count(*) FROM files WHERE resolved = 0"
        ).fetchone()
        return Built(files, items, imports, edges, unresolved)
    finally:
        connection.close()


def built_from_scratch(root: Path, database: Path) -> Built:
    """The content of an index that is built from scratch."""
    for suffix in ("", "-wal", "-shm"):
        if os.path.exists(f"{database}{suffix}"):
            os.unlink(f"{database}{suffix}")
    return refreshed_and_resolved(root, database)


def refreshed_and_resolved(root: Path, database: Path) -> Built:
    """The content of an index after a refresh, with every name resolved."""
    build.refresh(place(root, database))
    build.follow(place(root, database))
    return built(database)
