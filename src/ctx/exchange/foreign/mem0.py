"""Reads the memories of mem0, from its `history.db` or from the JSON of `get_all`.

The database lists what happened to each memory: ADD, UPDATE and DELETE, in the order of the rows.
The last text of a memory counts. The messages of conversations are not memories. The vectors are
not read: a local Qdrant store consists of pickles, which can run code.
"""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from sqlite3 import Connection
from typing import Any

from ctx import disk
from ctx.errors import ContentRefused, DatabaseFailure
from ctx.exchange.foreign import foreign_database, foreign_items
from ctx.exchange.foreign.foreign_items import ForeignSource, Item, SkippedItem
from ctx.memory.model import Draft
from ctx.sqlite.connection import path_text

PROGRAM = "mem0"
SOURCE = f"source:{PROGRAM}"

EXPORT_START = re.compile(rb'\{\s*"results"\s*:\s*\[')
_TABLE = "history"
_COLUMNS = {
    "memory_id": ("memory_id",),
    "text": ("new_memory", "new_value"),
    "event": ("event",),
    "created_at": ("created_at",),
    "updated_at": ("updated_at",),
    "is_deleted": ("is_deleted",),
    "actor_id": ("actor_id",),
    "role": ("role",),
}
_KEPT = ("user_id", "agent_id", "run_id", "actor_id", "role")
_LARGEST_EXPORT = 256 * 1024 * 1024


def has_tables(connection: Connection) -> bool:
    present = foreign_database.columns(connection).get(_TABLE, ())
    return {"memory_id", "old_memory", "new_memory", "event"} <= set(present)


@contextmanager
def reading(path: str) -> Iterator[ForeignSource]:
    foreign_database.require_file(path)
    with disk.explain_errors("reading what to import"):
        start = disk.read_plain(os.path.realpath(path), len(foreign_database.HEADER))
    if not start.startswith(foreign_database.HEADER):
        memories = _export(path)
        yield ForeignSource(PROGRAM, len(memories), _of_export(memories))
        return
    with foreign_database.open_snapshot(path) as connection:
        with foreign_database.explain_errors(path):
            is_known = has_tables(connection)
        if not is_known:
            raise DatabaseFailure(
                f"{path_text(path)} is not a database of mem0.",
                hint="Give its `history.db`, usually in ~/.mem0.",
            )
        with foreign_database.explain_errors(path):
            items = list(_of_history(connection))
        yield ForeignSource(PROGRAM, len(items), iter(items))


def _of_history(connection: Connection) -> Iterator[Item]:
    present = foreign_database.columns(connection)[_TABLE]
    memories: dict[str, dict[str, Any]] = {}
    for row in foreign_database.rows(connection, _TABLE, present, _COLUMNS):
        memory_id = foreign_items.text(row["memory_id"])
        if not memory_id:
            yield SkippedItem("a row of the history", "it names no memory")
            continue
        known = memories.setdefault(memory_id, {"id": memory_id})
        if row["event"] == "DELETE" or row["is_deleted"]:
            known["memory"] = None
            continue
        known["memory"] = row["text"]
        known.setdefault("created_at", row["created_at"] or row["updated_at"])
        known["updated_at"] = row["updated_at"] or row["created_at"]
        known.update((key, row[key]) for key in ("actor_id", "role") if row[key])
    for memory in memories.values():
        if memory["memory"] is not None:  # Not deleted.
            yield _item(memory)


def _export(path: str) -> list[Any]:
    with disk.explain_errors("reading what to import"):
        data = disk.read_plain(os.path.realpath(path), _LARGEST_EXPORT + 1)
    value = foreign_items.json_value(data) if len(data) <= _LARGEST_EXPORT else None
    # Older versions return the list alone.
    results = value.get("results") if isinstance(value, dict) else value
    if not isinstance(results, list):
        raise ContentRefused(
            f"{path_text(path)} is not an export of mem0.",
            hint="Nothing was changed. Write one with `json.dump(memory.get_all(…), file)`.",
        )
    return results


def _of_export(memories: list[Any]) -> Iterator[Item]:
    for number, memory in enumerate(memories, start=1):
        if isinstance(memory, dict) and {"id", "memory"} <= memory.keys():
            yield _item(memory)
        else:
            yield SkippedItem(f"result {number}", "it is not a memory")


def _item(memory: Mapping[str, Any]) -> Draft | SkippedItem:
    memory_id, content = foreign_items.text(memory["id"]), foreign_items.text(memory["memory"])
    if not content.strip():
        return SkippedItem(f"memory {memory_id[:80]}", "it has no text")
    created = foreign_items.moment(memory.get("created_at"))
    updated = foreign_items.moment(memory.get("updated_at"), memory.get("created_at"))
    extra = memory.get("metadata")
    metadata = {key: memory[key] for key in _KEPT if memory.get(key)}
    return Draft(
        # A memory may have a time in one of the two files only.
        foreign_items.derived_id(None, PROGRAM, memory_id),
        "fact",
        content,
        foreign_items.iso(created),
        foreign_items.iso(updated),
        tags=foreign_items.tags(SOURCE),
        metadata={**(extra if isinstance(extra, dict) else {}), **metadata, "mem0_id": memory_id},
    )
