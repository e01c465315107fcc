"""The memory of other tools, as a person who moves to ctx may have it."""

import sqlite3
from contextlib import closing
from pathlib import Path

from tests.exchange.foreign import databases

_MEM0 = """
CREATE TABLE history (
    id TEXT PRIMARY KEY, memory_id TEXT, old_memory TEXT, new_memory TEXT, event TEXT,
    created_at DATETIME, updated_at DATETIME, is_deleted INTEGER, actor_id TEXT, role TEXT
);
INSERT INTO history VALUES
    ('1', 'a', NULL, 'Prefers small commits', 'ADD', '2024-01-15', NULL, 0, NULL, 'user'),
    ('2', 'b', NULL, 'Uses tabs', 'ADD', '2024-01-15', NULL, 0, NULL, 'user'),
    ('3', 'b', 'Uses tabs', 'Uses spaces', 'UPDATE', '2024-01-15', '2024-01-16', 0, NULL, 'user');
"""
_NOTE = """---
title: Retries
tags: [payments]
---
# Retries

- [decision] A payment is retried three times #payments
- [fact] The bank answers within 3 s
- relates_to [[Bank]]
"""


def fill(home: Path, project: Path) -> None:
    """Sample stores of the Go program, claude-mem, mem0, Serena and Basic Memory."""
    databases.go_store(home / ".ctx" / "store.db")
    path = databases.make(home / ".claude-mem" / "claude-mem.db", databases.CLAUDE_MEM_SCHEMA)
    databases.observation(
        path,
        "one",
        1,
        type="bugfix",
        title="Retries were lost",
        narrative="A failed job was removed before it was put back.",
    )
    databases.summary(
        path, "one", 2, request="Why are retries lost?", completed="Put the job back."
    )
    (home / ".mem0").mkdir()
    with closing(sqlite3.connect(home / ".mem0" / "history.db")) as connection:
        connection.executescript(_MEM0)
    memories = project / ".serena" / "memories"
    memories.mkdir(parents=True)
    (memories / "testing.md").write_text("# Testing\n\nRun `make test`.\n")
    (home / "basic-memory").mkdir()
    (home / "basic-memory" / "retries.md").write_text(_NOTE)
    (home / "basic-memory" / "bank.md").write_text("---\ntitle: Bank\n---\nOur bank.\n")
