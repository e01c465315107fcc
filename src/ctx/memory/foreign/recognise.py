"""Which program a file comes from, by what is in it."""

import os
from typing import Literal

from ctx import disk
from ctx.errors import ContentRefused, DatabaseFailure, UsageError
from ctx.memory.foreign import claude_mem, database, go_ctx, incoming
from ctx.memory.store import APPLICATION_ID
from ctx.sqlite.connection import shown
from ctx.sqlite.truth import application_id_of

Kind = Literal["graph", "ctx", "claude-mem", "claude-code", "jsonl"]
"""`graph` is a JSON document with nodes and edges: our own, or the Go program's export."""

_LOOKED_AT = 64 * 1024


def kind(path: str) -> Kind:
    """What a file or a folder is, or an error that says what could be read."""
    if os.path.isdir(path):
        return "claude-code"
    database.require_file(path)
    # Asked of SQLite before anything else opens the file: closing another handle on a store
    # that this process has open would drop its locks.
    with database.explained(path):
        is_ours = application_id_of(path) == APPLICATION_ID
    if is_ours:
        raise UsageError(
            f"{shown(path)} is a store of ctx itself.",
            hint="`ctx --db FILE export` writes it as JSON, which can be imported.",
        )
    with disk.explained("reading what to import"):
        start = disk.read_plain(os.path.realpath(path), _LOOKED_AT)
    if start.startswith(database.HEADER):
        return _database(path)
    if path.endswith((".md", ".markdown")):
        return "claude-code"
    return of_text(start, shown(path))


def of_text(start: bytes, name: str) -> Kind:
    """What a text is, by its beginning."""
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(b"{"):
        first = text.partition(b"\n")[0].strip()
        said = incoming.json_value(first)
        # A document in one line has nodes; a line of many has content.
        return "jsonl" if isinstance(said, dict) and "content" in said else "graph"
    raise ContentRefused(
        f"{name} is none of the files that can be imported.",
        hint="Name what it is with --from: ctx, claude-mem, claude-code or jsonl.",
    )


def _database(path: str) -> Kind:
    with database.opened(path) as connection, database.explained(path):
        if go_ctx.has_tables(connection):
            return "ctx"
        if claude_mem.has_tables(connection):
            return "claude-mem"
    raise DatabaseFailure(
        f"{shown(path)} is a database that cannot be imported.",
        hint="Those of the Go program ctx and of claude-mem can be.",
    )
