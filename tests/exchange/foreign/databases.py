"""Databases of other programs, as those programs make them."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from ctx.ids import NodeId, Ulid

GO_SCHEMA = """
CREATE TABLE schema_version (version INTEGER PRIMARY KEY, applied_at TEXT NOT NULL);
CREATE TABLE nodes (
    id TEXT PRIMARY KEY, type TEXT NOT NULL, content TEXT NOT NULL, summary TEXT,
    token_estimate INTEGER NOT NULL, superseded_by TEXT REFERENCES nodes(id),
    created_at TEXT NOT NULL, updated_at TEXT NOT NULL, metadata TEXT DEFAULT '{}'
);
CREATE TABLE edges (
    id TEXT PRIMARY KEY, from_id TEXT NOT NULL, to_id TEXT NOT NULL, type TEXT NOT NULL,
    created_at TEXT NOT NULL, metadata TEXT DEFAULT '{}'
);
CREATE UNIQUE INDEX idx_edges_unique ON edges(from_id, to_id, type);
CREATE TABLE tags (
    node_id TEXT NOT NULL, tag TEXT NOT NULL, created_at TEXT NOT NULL,
    PRIMARY KEY (node_id, tag)
);
CREATE TABLE views (
    name TEXT PRIMARY KEY, query TEXT NOT NULL, budget INTEGER DEFAULT 50000,
    created_at TEXT NOT NULL, updated_at TEXT NOT NULL
);
CREATE TABLE pending (key TEXT PRIMARY KEY, value TEXT NOT NULL, created_at TEXT NOT NULL);
CREATE VIRTUAL TABLE nodes_fts USING fts5(content, content='nodes', content_rowid='rowid');
"""
# What later versions added.
GO_SCHEMA_NEWER = """
ALTER TABLE nodes ADD COLUMN sync_version INTEGER DEFAULT 0;
ALTER TABLE nodes ADD COLUMN origin_device TEXT;
ALTER TABLE nodes ADD COLUMN kind TEXT NOT NULL DEFAULT 'memory';
ALTER TABLE edges ADD COLUMN document_id TEXT REFERENCES nodes(id) ON DELETE CASCADE;
ALTER TABLE edges ADD COLUMN position INTEGER;
"""

DAY = "2024-01-15T10:00:00Z"
NEXT_DAY = "2024-01-16T10:00:00Z"
FACT = NodeId(Ulid("01HM5Q0000AAAAAAAAAAAAAAAA"))
DECISION = NodeId(Ulid("01HM5Q0000BBBBBBBBBBBBBBBB"))
OLDER = NodeId(Ulid("01HM5Q0000CCCCCCCCCCCCCCCC"))
EDGE = Ulid("01HM5Q0000DDDDDDDDDDDDDDDD")


def insert(path: Path, table: str, **values: Any) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        names, places = ", ".join(values), ", ".join("?" * len(values))
        connection.execute(f"INSERT INTO {table} ({names}) VALUES ({places})", [*values.values()])


def make(path: Path, schema: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(schema)
    return path


def go_node(path: Path, node_id: str, content: str, **values: Any) -> None:
    told = {"type": "fact", "token_estimate": 1, "created_at": DAY, "updated_at": DAY, **values}
    insert(path, "nodes", id=node_id, content=content, **told)


def go_store(path: Path, *, newer: bool = False) -> Path:
    """Three nodes, of which one replaced another, two tags, two edges, two views."""
    make(path, GO_SCHEMA + (GO_SCHEMA_NEWER if newer else ""))
    go_node(path, FACT, "Single binaries are preferred", updated_at=NEXT_DAY)
    go_node(
        path,
        DECISION,
        "We use SQLite",
        type="decision",
        summary="SQLite",
        metadata='{"rationale": "no servers", "confidence": 0.9}',
    )
    go_node(path, OLDER, "We use files", type="decision", superseded_by=DECISION)
    insert(path, "tags", node_id=FACT, tag="tier:reference", created_at=DAY)
    insert(path, "tags", node_id=FACT, tag="project:viberent", created_at=NEXT_DAY)
    insert(path, "edges", id=EDGE, from_id=DECISION, to_id=FACT, type="DEPENDS_ON", created_at=DAY)
    insert(
        path, "views", name="facts", query="type:fact", budget=40000, created_at=DAY, updated_at=DAY
    )
    default = "tag:tier:pinned OR tag:tier:working"
    insert(path, "views", name="default", query=default, created_at=DAY, updated_at=DAY)
    return path


CLAUDE_MEM_SCHEMA = """
CREATE TABLE schema_versions (id INTEGER PRIMARY KEY, version INTEGER UNIQUE, applied_at TEXT);
CREATE TABLE sdk_sessions (
    id INTEGER PRIMARY KEY AUTOINCREMENT, content_session_id TEXT NOT NULL,
    memory_session_id TEXT UNIQUE, project TEXT NOT NULL,
    platform_source TEXT NOT NULL DEFAULT 'claude', user_prompt TEXT, started_at TEXT NOT NULL,
    started_at_epoch INTEGER NOT NULL, completed_at TEXT, completed_at_epoch INTEGER,
    status TEXT NOT NULL DEFAULT 'active'
);
CREATE TABLE observations (
    id INTEGER PRIMARY KEY AUTOINCREMENT, memory_session_id TEXT NOT NULL, project TEXT NOT NULL,
    text TEXT, type TEXT NOT NULL, title TEXT, subtitle TEXT, facts TEXT, narrative TEXT,
    concepts TEXT, files_read TEXT, files_modified TEXT, prompt_number INTEGER,
    discovery_tokens INTEGER DEFAULT 0, created_at TEXT NOT NULL, created_at_epoch INTEGER NOT NULL,
    merged_into_project TEXT, content_hash TEXT
);
CREATE TABLE session_summaries (
    id INTEGER PRIMARY KEY AUTOINCREMENT, memory_session_id TEXT NOT NULL, project TEXT NOT NULL,
    request TEXT, investigated TEXT, learned TEXT, completed TEXT, next_steps TEXT,
    files_read TEXT, files_edited TEXT, notes TEXT, prompt_number INTEGER,
    created_at TEXT NOT NULL, created_at_epoch INTEGER NOT NULL
);
CREATE TABLE user_prompts (
    id INTEGER PRIMARY KEY AUTOINCREMENT, session_db_id INTEGER, content_session_id TEXT NOT NULL,
    prompt_number INTEGER NOT NULL, prompt_text TEXT NOT NULL, created_at TEXT NOT NULL,
    created_at_epoch INTEGER NOT NULL
);
"""
# Before sessions were renamed and observations had parts.
CLAUDE_MEM_SCHEMA_OLD = """
CREATE TABLE sdk_sessions (
    id INTEGER PRIMARY KEY AUTOINCREMENT, claude_session_id TEXT UNIQUE NOT NULL,
    sdk_session_id TEXT UNIQUE, project TEXT NOT NULL, started_at_epoch INTEGER NOT NULL
);
CREATE TABLE observations (
    id INTEGER PRIMARY KEY AUTOINCREMENT, sdk_session_id TEXT NOT NULL, project TEXT NOT NULL,
    text TEXT NOT NULL, type TEXT NOT NULL, created_at TEXT NOT NULL,
    created_at_epoch INTEGER NOT NULL
);
CREATE TABLE session_summaries (
    id INTEGER PRIMARY KEY AUTOINCREMENT, sdk_session_id TEXT UNIQUE NOT NULL,
    project TEXT NOT NULL, request TEXT, learned TEXT, created_at TEXT NOT NULL,
    created_at_epoch INTEGER NOT NULL
);
"""
CLAUDE_MEM_SCHEMA_FIRST = """
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY, session_id TEXT UNIQUE NOT NULL, project TEXT NOT NULL,
    created_at TEXT NOT NULL, created_at_epoch INTEGER NOT NULL
);
CREATE TABLE memories (
    id INTEGER PRIMARY KEY, session_id TEXT NOT NULL, text TEXT NOT NULL, keywords TEXT,
    created_at TEXT NOT NULL, created_at_epoch INTEGER NOT NULL, project TEXT NOT NULL,
    title TEXT, subtitle TEXT, facts TEXT, concepts TEXT, files_touched TEXT
);
CREATE TABLE overviews (
    id INTEGER PRIMARY KEY, session_id TEXT NOT NULL, content TEXT NOT NULL,
    created_at TEXT NOT NULL, created_at_epoch INTEGER NOT NULL, project TEXT NOT NULL
);
"""

EPOCH = 1_705_312_800  # DAY


def observation(path: Path, session: str, number: int, **values: Any) -> None:
    at = EPOCH + number
    told = {
        "memory_session_id": session,
        "project": "shop",
        "type": "discovery",
        "title": f"Title {number}",
        "created_at": "",
        "created_at_epoch": at * 1000,
        **values,
    }
    insert(path, "observations", **told)


def summary(path: Path, session: str, number: int, **values: Any) -> None:
    told = {
        "memory_session_id": session,
        "project": "shop",
        "request": f"Request {number}",
        "created_at": "",
        "created_at_epoch": (EPOCH + number) * 1000,
        **values,
    }
    insert(path, "session_summaries", **told)


def claude_mem(path: Path) -> Path:
    """A session with two observations, its summary, and a prompt."""
    make(path, CLAUDE_MEM_SCHEMA)
    insert(
        path,
        "sdk_sessions",
        content_session_id="agent-session",
        memory_session_id="own-session",
        project="shop",
        started_at="",
        started_at_epoch=EPOCH * 1000,
    )
    observation(
        path,
        "own-session",
        1,
        type="bugfix",
        title="Retries were lost",
        subtitle="The queue dropped them",
        narrative="A failed job was removed before it was put back.",
        facts='["put back first", "then remove"]',
        concepts='["problem-solution", "job queue"]',
        files_read='["src/queue.py"]',
        files_modified='["src/queue.py", "tests/test_queue.py"]',
        prompt_number=2,
    )
    observation(path, "own-session", 2, type="decision")
    summary(
        path,
        "own-session",
        3,
        investigated="the queue",
        learned="order matters",
        next_steps="a test",
        files_edited='["src/queue.py"]',
    )
    insert(
        path,
        "user_prompts",
        content_session_id="agent-session",
        prompt_number=1,
        prompt_text="Why are jobs lost?",
        created_at="",
        created_at_epoch=EPOCH * 1000,
    )
    return path
