"""Detects which program wrote a file, by its contents."""

import os
from typing import Literal

from ctx import disk
from ctx.errors import ContentRefused, DatabaseFailure, UsageError
from ctx.exchange.foreign import (
    claude_mem,
    foreign_database,
    foreign_items,
    go_ctx,
    instruction_files,
    jsonl,
    mcp_memory,
)
from ctx.memory.user_store import APPLICATION_ID
from ctx.sqlite.connection import path_text
from ctx.sqlite.truth import application_id_of

Kind = Literal[
    "graph",
    "ctx",
    "claude-mem",
    "claude-code",
    "instructions",
    "basic-memory",
    "mcp-memory",
    "jsonl",
]
"""`graph` is a JSON document with nodes and edges: our own, or the Go program's export."""

_DETECTION_BYTES = 64 * 1024


def kind(path: str) -> Kind:
    """The format of a file or folder; otherwise an error that lists the supported formats."""
    if os.path.isdir(path):
        return _folder(path)
    foreign_database.require_file(path)
    # SQLite checks the file before anything else opens it: closing another handle on a store that
    # this process has open would drop its locks.
    with foreign_database.explain_errors(path):
        is_ours = application_id_of(path) == APPLICATION_ID
    if is_ours:
        raise UsageError(
            f"{path_text(path)} is a store of ctx itself.",
            hint="`ctx --db FILE export` writes it as JSON, which can be imported.",
        )
    with disk.explain_errors("reading what to import"):
        start = disk.read_plain(os.path.realpath(path), _DETECTION_BYTES)
    if start.startswith(foreign_database.HEADER):
        return _database(path)
    if instruction_files.tool_of(path):
        return "instructions"
    if path.endswith((".md", ".markdown")):
        return "claude-code"
    if path.endswith((".jsonl", ".ndjson")):
        first = start.removeprefix(b"\xef\xbb\xbf").lstrip().partition(b"\n")[0]
        return "mcp-memory" if mcp_memory.is_line(foreign_items.json_value(first)) else "jsonl"
    if b"\n" not in start and len(start) >= _DETECTION_BYTES:
        with disk.explain_errors("reading what to import"), open(path, "rb") as file:
            start = file.readline(jsonl.LONGEST_LINE) + file.read(_DETECTION_BYTES)
    return of_text(start, path_text(path))


def _folder(path: str) -> Kind:
    match os.path.abspath(path).split(os.sep)[-2:]:
        case [_, ".cursor" | ".windsurf" | ".github"]:
            return "instructions"
        case _:
            return "claude-code"


def of_text(start: bytes, name: str) -> Kind:
    """The format of a text, by its first line and a little more."""
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(b"{"):
        first, _, rest = text.partition(b"\n")
        value = foreign_items.json_value(first.strip())
        if mcp_memory.is_line(value):
            return "mcp-memory"
        if not isinstance(value, dict) or "nodes" in value or "format" in value:
            return "graph"
        # The first of many lines may have no content.
        return "jsonl" if "content" in value or rest.lstrip().startswith(b"{") else "graph"
    raise ContentRefused(
        f"{name} is not a file that ctx can import.",
        hint="Name the format with --from; `ctx import --help` lists them.",
    )


def _database(path: str) -> Kind:
    with foreign_database.open_snapshot(path) as connection, foreign_database.explain_errors(path):
        if go_ctx.has_tables(connection):
            return "ctx"
        if claude_mem.has_tables(connection):
            return "claude-mem"
    raise DatabaseFailure(
        f"{path_text(path)} is a database that ctx cannot import.",
        hint="It imports those of the Go program ctx and of claude-mem, and JSON Lines of others.",
    )
