"""List the files that an agent should be told about before it edits them."""

import os
from contextlib import suppress
from sqlite3 import DatabaseError

from ctx import disk
from ctx.context import before_edit
from ctx.hook_files import anchored_files
from ctx.memory import code_anchors
from ctx.workspace import Memory


def list_anchored(memory: Memory, home: str) -> None:
    """Write the list for the working tree of `memory`. It is only a filter, so a stale one does no
    harm: the hook asks the store for what it shows."""
    place = memory.place
    files: dict[str, list[str]] = {}
    items: dict[str, str] = {}
    for kind, node_id, name in before_edit.anchors(memory.graph.connections, place.project):
        if kind == "item":
            items[node_id] = name
        elif code_anchors.is_inside(name):
            files.setdefault(name, [])
    for node_id, path in _files_of_items(memory, items):
        files.setdefault(path, []).append(node_id)
    path = anchored_files.path_of(home, place.folder)
    content = anchored_files.content(files)
    with suppress(OSError):
        if disk.read_or_none(path) != content:
            disk.make_folder(os.path.dirname(path))
            disk.replace(path, content, durable_name=False)


def _files_of_items(memory: Memory, items: dict[str, str]) -> list[tuple[str, str]]:
    """Each item with the file that defines it, according to the index of the code as it is."""
    if not items:
        return []
    from ctx.code import lookup
    from ctx.codebase import freshness

    codebase = freshness.codebase_here(memory)
    if codebase is None:
        return []
    place = codebase.place
    inside = os.path.relpath(place.root, memory.place.folder)
    found: list[tuple[str, str]] = []
    with suppress(DatabaseError, ValueError, IndexError):
        code = lookup.open_index(place.database, place.root)
        if code is None:
            return []
        with code:
            for node_id, name in items.items():
                paths = {item.path for item in code.named(name) if item.kind != "module"}
                # A name in several files says nothing about one of them.
                if len(paths) == 1:
                    path = os.path.normpath(os.path.join(inside, paths.pop()))
                    found.append((node_id, path.replace(os.sep, "/")))
    return found
