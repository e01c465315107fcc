"""The migrations of the user store. `schema.sql` shows the result; a test compares the two.

Each function runs once for a database, inside a transaction, after a backup. It never changes after
a release: a later migration corrects it.
"""

from sqlite3 import Connection

from ctx.sqlite.connection import execute_script


def m001_graph(connection: Connection) -> None:
    """The tables of the graph, and the default view."""
    execute_script(connection, _GRAPH)
    # The view has a record like everything else. Its stamp, 0, is before all others.
    connection.execute(
        "INSERT INTO records (id, stamp, change, action, kind, subject, body, author)"
        " VALUES (?, 0, ?, 'open', 'view.put', 'default', ?, 'ctx')",
        (_FIRST, _FIRST, f'{{"created_at":"{_EPOCH}","query":"{_DEFAULT_QUERY}"}}'),
    )
    connection.execute(
        "INSERT INTO views (name, query, created_at, updated_at) VALUES ('default', ?, ?, ?)",
        (_DEFAULT_QUERY, _EPOCH, _EPOCH),
    )


def m002_sessions(connection: Connection) -> None:
    """Tables for hooks: compiled views, events, commands, receipts and contexts."""
    from ctx.memory.query.prepared_views import prepare_views

    connection.execute("ALTER TABLE views ADD COLUMN compiled TEXT")
    prepare_views(connection)
    execute_script(connection, _SESSIONS)


def m003_outside(connection: Connection) -> None:
    """Edges to nodes of a project's store."""
    execute_script(connection, _OUTSIDE)


def m004_capture(connection: Connection) -> None:
    """Tables for capture: sessions, symbol changes and the event log."""
    execute_script(connection, _CAPTURE)


def m005_model_answers(connection: Connection) -> None:
    """A model's answers about sessions."""
    execute_script(connection, _MODEL_ANSWERS)


def m006_session_commands(connection: Connection) -> None:
    """The commands that sessions ran to test, lint, build and start."""
    execute_script(connection, _SESSION_COMMANDS)


def m007_excerpts(connection: Connection) -> None:
    """Excerpts of what was said in sessions."""
    execute_script(connection, _EXCERPTS)


def m008_session_teams(connection: Connection) -> None:
    """The sessions of teams of agents."""
    execute_script(connection, _SESSION_TEAMS)


def m009_proposals(connection: Connection) -> None:
    """An index of the nodes that an agent proposes to change: few of many."""
    execute_script(connection, _PROPOSALS)


def m010_faster_views(connection: Connection) -> None:
    """The statements of views, which read less in one of several projects."""
    from ctx.memory.query.prepared_views import prepare_views

    prepare_views(connection)


def m011_sync(connection: Connection) -> None:
    """What other replicas of this store have: the batches in the targets of `ctx sync`."""
    execute_script(connection, _SYNC)


def m012_prompts(connection: Connection) -> None:
    """An index of the texts of prompts: the same text in several sessions is a template."""
    connection.execute(
        "CREATE INDEX idx_events_prompt ON events(json_extract(body, '$.text'), session)"
        " WHERE event = 'UserPromptSubmit' AND status = 'step'"
    )


def m013_unread_edits(connection: Connection) -> None:
    """Edits that two machines made without reading each other's."""
    execute_script(connection, _UNREAD)


_FIRST = "0" * 26
_EPOCH = "1970-01-01T00:00:00Z"
_DEFAULT_QUERY = "tag:tier:pinned OR tag:tier:reference OR tag:tier:working"
_GRAPH = """
CREATE TABLE nodes (
    rowid INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    type TEXT NOT NULL,
    content TEXT NOT NULL,
    summary TEXT,
    token_estimate INTEGER NOT NULL,
    superseded_by TEXT REFERENCES nodes(id) ON DELETE SET NULL DEFERRABLE INITIALLY DEFERRED,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    metadata TEXT NOT NULL DEFAULT '{}',
    terms TEXT NOT NULL DEFAULT ''
);
CREATE INDEX idx_nodes_type ON nodes(type, id);
CREATE INDEX idx_nodes_created ON nodes(created_at, id);
CREATE INDEX idx_nodes_updated ON nodes(updated_at, id);
CREATE INDEX idx_nodes_row ON nodes(id, superseded_by, token_estimate, type);
CREATE INDEX idx_nodes_path ON nodes(json_extract(metadata, '$.path'))
    WHERE json_extract(metadata, '$.path') IS NOT NULL;
CREATE INDEX idx_nodes_superseded ON nodes(superseded_by) WHERE superseded_by IS NOT NULL;
CREATE INDEX idx_nodes_replaced ON nodes(id) WHERE superseded_by IS NOT NULL;

CREATE TABLE edges (
    id TEXT NOT NULL,
    from_id TEXT NOT NULL,
    to_id TEXT NOT NULL,
    type TEXT NOT NULL,
    created_at TEXT NOT NULL,
    metadata TEXT NOT NULL DEFAULT '{}',
    FOREIGN KEY (from_id) REFERENCES nodes(id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
    FOREIGN KEY (to_id) REFERENCES nodes(id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED
);
CREATE INDEX idx_edges_id ON edges(id);
CREATE UNIQUE INDEX idx_edges_unique ON edges(from_id, to_id, type);
CREATE INDEX idx_edges_to ON edges(to_id, type);

CREATE TABLE tags (
    node_id TEXT NOT NULL,
    tag TEXT NOT NULL,
    created_at TEXT NOT NULL,
    PRIMARY KEY (node_id, tag),
    FOREIGN KEY (node_id) REFERENCES nodes(id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED
) WITHOUT ROWID;
CREATE INDEX idx_tags_tag ON tags(tag, node_id);
CREATE INDEX idx_tags_tier ON tags(node_id, tag) WHERE tag >= 'tier:' AND tag < 'tier;';
CREATE INDEX idx_tags_project ON tags(node_id, tag) WHERE tag >= 'project:' AND tag < 'project;';

CREATE TABLE views (
    name TEXT PRIMARY KEY,
    query TEXT NOT NULL,
    budget INTEGER,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
);

CREATE TABLE pending (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL,
    created_at TEXT NOT NULL
);

CREATE TABLE records (
    id TEXT PRIMARY KEY,
    stamp INTEGER NOT NULL,
    change TEXT NOT NULL,
    action TEXT NOT NULL,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    key TEXT NOT NULL DEFAULT '',
    target TEXT,
    body TEXT NOT NULL DEFAULT '{}',
    session TEXT NOT NULL DEFAULT '',
    author TEXT NOT NULL DEFAULT ''
);
CREATE INDEX idx_records_subject ON records(subject, key);
CREATE INDEX idx_records_target ON records(target) WHERE target IS NOT NULL;
CREATE INDEX idx_records_change ON records(change);
CREATE INDEX idx_records_stamp ON records(stamp);
CREATE INDEX idx_records_session ON records(session, subject) WHERE session <> '';

CREATE VIRTUAL TABLE nodes_fts USING fts5(
    content,
    terms,
    content='nodes',
    content_rowid='rowid'
);
CREATE TRIGGER nodes_ai AFTER INSERT ON nodes BEGIN
    INSERT INTO nodes_fts(rowid, content, terms) VALUES (NEW.rowid, NEW.content, NEW.terms);
END;
CREATE TRIGGER nodes_ad AFTER DELETE ON nodes BEGIN
    INSERT INTO nodes_fts(nodes_fts, rowid, content, terms)
    VALUES ('delete', OLD.rowid, OLD.content, OLD.terms);
END;
CREATE TRIGGER nodes_au AFTER UPDATE OF content, terms ON nodes BEGIN
    INSERT INTO nodes_fts(nodes_fts, rowid, content, terms)
    VALUES ('delete', OLD.rowid, OLD.content, OLD.terms);
    INSERT INTO nodes_fts(rowid, content, terms) VALUES (NEW.rowid, NEW.content, NEW.terms);
END;
"""

_SESSIONS = """
CREATE TABLE receipts (
    id TEXT PRIMARY KEY,
    session TEXT NOT NULL,
    event TEXT NOT NULL,
    at TEXT NOT NULL,
    project TEXT,
    tokens INTEGER NOT NULL,
    items TEXT NOT NULL
);
CREATE INDEX idx_receipts_session ON receipts(session, id);

CREATE TABLE events (
    id TEXT PRIMARY KEY,
    session TEXT NOT NULL,
    event TEXT NOT NULL,
    at TEXT NOT NULL,
    folder TEXT NOT NULL DEFAULT '',
    tool TEXT,
    tool_use TEXT,
    status TEXT NOT NULL DEFAULT 'new',
    attempts INTEGER NOT NULL DEFAULT 0,
    reason TEXT,
    body TEXT NOT NULL
);
CREATE INDEX idx_events_session ON events(session, id);
CREATE INDEX idx_events_at ON events(at);

CREATE TABLE commands (
    id TEXT PRIMARY KEY,
    session TEXT NOT NULL,
    name TEXT NOT NULL,
    at TEXT NOT NULL,
    problem TEXT
);
CREATE INDEX idx_commands_session ON commands(session);

CREATE TABLE contexts (
    place TEXT PRIMARY KEY,
    stamp INTEGER NOT NULL,
    settings TEXT NOT NULL,
    project TEXT,
    made_at TEXT NOT NULL,
    text TEXT NOT NULL,
    tokens INTEGER NOT NULL,
    items TEXT NOT NULL
);
"""

_OUTSIDE = """
CREATE TABLE outside (
    id TEXT NOT NULL,
    from_id TEXT NOT NULL,
    to_id TEXT NOT NULL,
    type TEXT NOT NULL,
    created_at TEXT NOT NULL,
    metadata TEXT NOT NULL DEFAULT '{}',
    PRIMARY KEY (from_id, to_id, type),
    FOREIGN KEY (from_id) REFERENCES nodes(id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED
) WITHOUT ROWID;
CREATE INDEX idx_outside_to ON outside(to_id);
"""

_CAPTURE = """
CREATE INDEX idx_events_tool_use ON events(tool_use, session) WHERE tool_use IS NOT NULL;
CREATE INDEX idx_events_new ON events(id) WHERE status = 'new';
CREATE INDEX idx_events_skipped ON events(id) WHERE status = 'skipped';

CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    project TEXT,
    folder TEXT NOT NULL,
    repository TEXT,
    branch TEXT,
    head TEXT,
    client TEXT NOT NULL DEFAULT '',
    transcript TEXT NOT NULL DEFAULT '',
    seen INTEGER NOT NULL DEFAULT 0,
    goes_on_from TEXT,
    status TEXT NOT NULL DEFAULT 'active',
    started_at TEXT NOT NULL,
    last_at TEXT NOT NULL,
    ended_at TEXT,
    request TEXT NOT NULL DEFAULT '',
    synthesised TEXT NOT NULL DEFAULT '',
    summary TEXT
);
CREATE INDEX idx_sessions_project ON sessions(project, last_at);
CREATE INDEX idx_sessions_status ON sessions(status, last_at);

CREATE TABLE symbol_changes (
    session TEXT NOT NULL,
    path TEXT NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    change TEXT NOT NULL,
    signature TEXT NOT NULL,
    line INTEGER NOT NULL,
    project TEXT,
    at TEXT NOT NULL,
    PRIMARY KEY (session, path, name, kind)
) WITHOUT ROWID;
CREATE INDEX idx_symbol_changes_at ON symbol_changes(project, at);

CREATE TABLE event_log (
    id INTEGER PRIMARY KEY,
    at TEXT NOT NULL,
    session TEXT NOT NULL DEFAULT '',
    type TEXT NOT NULL,
    data TEXT NOT NULL DEFAULT '{}',
    duration_ms INTEGER,
    tokens_out INTEGER
);
CREATE INDEX idx_event_log_at ON event_log(type, at);
"""

_MODEL_ANSWERS = """
CREATE TABLE model_answers (
    session TEXT NOT NULL,
    kind TEXT NOT NULL,
    first TEXT NOT NULL,
    steps TEXT NOT NULL,
    at TEXT NOT NULL,
    model TEXT NOT NULL,
    body TEXT NOT NULL,
    problem TEXT NOT NULL,
    PRIMARY KEY (session, kind, first)
);
"""

_SESSION_COMMANDS = """
CREATE TABLE session_commands (
    session TEXT NOT NULL,
    command TEXT NOT NULL,
    purpose TEXT NOT NULL,
    runs INTEGER NOT NULL,
    passes INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    last_at TEXT NOT NULL,
    last TEXT NOT NULL,
    problem TEXT NOT NULL,
    replaced_by TEXT NOT NULL,
    PRIMARY KEY (session, command)
) WITHOUT ROWID;
"""

_EXCERPTS = """
CREATE TABLE excerpts (
    id INTEGER PRIMARY KEY,
    session TEXT NOT NULL,
    project TEXT,
    step TEXT NOT NULL,
    part INTEGER NOT NULL,
    at TEXT NOT NULL,
    kind TEXT NOT NULL,
    source TEXT NOT NULL,
    worth INTEGER NOT NULL,
    text TEXT NOT NULL,
    terms TEXT NOT NULL
);
CREATE UNIQUE INDEX idx_excerpts_step ON excerpts(session, step, part);
CREATE INDEX idx_excerpts_project ON excerpts(project, session, at);

CREATE VIRTUAL TABLE excerpts_fts USING fts5(
    terms,
    content='excerpts',
    content_rowid='id'
);
CREATE TRIGGER excerpts_ai AFTER INSERT ON excerpts BEGIN
    INSERT INTO excerpts_fts(rowid, terms) VALUES (NEW.id, NEW.terms);
END;
CREATE TRIGGER excerpts_ad AFTER DELETE ON excerpts BEGIN
    INSERT INTO excerpts_fts(excerpts_fts, rowid, terms) VALUES ('delete', OLD.id, OLD.terms);
END;
CREATE TRIGGER excerpts_au AFTER UPDATE OF terms ON excerpts BEGIN
    INSERT INTO excerpts_fts(excerpts_fts, rowid, terms) VALUES ('delete', OLD.id, OLD.terms);
    INSERT INTO excerpts_fts(rowid, terms) VALUES (NEW.id, NEW.terms);
END;
"""

_SESSION_TEAMS = """
CREATE TABLE session_teams (
    session TEXT NOT NULL,
    team TEXT NOT NULL,
    name TEXT NOT NULL,
    lead TEXT NOT NULL,
    PRIMARY KEY (session, team)
) WITHOUT ROWID;
CREATE INDEX idx_session_teams_lead ON session_teams(lead);
"""

_PROPOSALS = """
CREATE INDEX idx_nodes_proposed ON nodes(id) WHERE json_extract(metadata, '$.proposed') IS NOT NULL;
"""

_SYNC = """
CREATE TABLE sync_targets (
    id TEXT PRIMARY KEY,
    synced_at TEXT,
    tried_at TEXT NOT NULL,
    failures INTEGER NOT NULL,
    problem TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE sync_batches (
    id INTEGER PRIMARY KEY,
    target TEXT NOT NULL,
    name TEXT NOT NULL,
    replica TEXT NOT NULL
);
CREATE UNIQUE INDEX idx_sync_batches_name ON sync_batches(name, target);

CREATE TABLE sync_records (
    batch INTEGER NOT NULL,
    record TEXT NOT NULL,
    version TEXT NOT NULL,
    PRIMARY KEY (batch, record),
    FOREIGN KEY (batch) REFERENCES sync_batches(id) ON DELETE CASCADE
) WITHOUT ROWID;
CREATE INDEX idx_sync_records_record ON sync_records(record, batch);

CREATE TABLE sync_versions (
    record TEXT NOT NULL,
    version TEXT NOT NULL,
    depth INTEGER NOT NULL,
    replaces TEXT NOT NULL,
    PRIMARY KEY (record, version)
) WITHOUT ROWID;

CREATE TABLE sync_replicas (
    target TEXT NOT NULL,
    replica TEXT NOT NULL,
    machine TEXT NOT NULL,
    sent_at TEXT NOT NULL,
    has_left INTEGER NOT NULL,
    PRIMARY KEY (target, replica)
) WITHOUT ROWID;

CREATE TABLE sync_confirmed (
    target TEXT NOT NULL,
    replica TEXT NOT NULL,
    version TEXT NOT NULL,
    PRIMARY KEY (target, replica, version)
) WITHOUT ROWID;

CREATE TABLE sync_changes (
    change TEXT PRIMARY KEY
) WITHOUT ROWID;
"""

_UNREAD = """
CREATE TABLE sync_unread (
    record TEXT NOT NULL,
    unread TEXT NOT NULL,
    PRIMARY KEY (record, unread)
) WITHOUT ROWID;
"""

MIGRATIONS = (
    m001_graph,
    m002_sessions,
    m003_outside,
    m004_capture,
    m005_model_answers,
    m006_session_commands,
    m007_excerpts,
    m008_session_teams,
    m009_proposals,
    m010_faster_views,
    m011_sync,
    m012_prompts,
    m013_unread_edits,
)
