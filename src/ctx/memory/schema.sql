-- The current tables of the user store. migrations.py creates them step by step; a test compares
-- the two. Times are text, 2026-01-20T10:00:00Z; ids are ULIDs.

-- The row number is a column, so that VACUUM cannot change the numbers that nodes_fts refers to.
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
CREATE INDEX idx_nodes_proposed ON nodes(id) WHERE json_extract(metadata, '$.proposed') IS NOT NULL;

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

-- Edges from a node here to a node in a project's store. Edges in a project's store never point out
-- of it.
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

-- A view without a budget has the configured one. Hooks run the statements in `compiled`, see
-- query/prepared_views.py.
CREATE TABLE views (
    name TEXT PRIMARY KEY,
    query TEXT NOT NULL,
    budget INTEGER,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    compiled TEXT
);

-- Values that one command stores for a later one. Only the current task is derived from records.
CREATE TABLE pending (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL,
    created_at TEXT NOT NULL
);

-- All changes. The tables above are derived from them.
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

-- What agents were given: nodes, their versions and their tokens. `items` is a JSON list; for a pack
-- it is an object that also has the reason for each chunk.
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

-- Events from hooks and transcripts. The id is the name of the file that the hook wrote. The body of
-- a `new` event is the redacted payload; that of a `step` is the part that the policy keeps. An event
-- that was `dropped`, or `skipped` after three failures, has a reason instead.
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
CREATE INDEX idx_events_tool_use ON events(tool_use, session) WHERE tool_use IS NOT NULL;
CREATE INDEX idx_events_new ON events(id) WHERE status = 'new';
CREATE INDEX idx_events_skipped ON events(id) WHERE status = 'skipped';
CREATE INDEX idx_events_prompt ON events(json_extract(body, '$.text'), session)
    WHERE event = 'UserPromptSubmit' AND status = 'step';

-- The sessions of agents. `seen` is how much of the transcript was read, `synthesised` the last event
-- that synthesis used, `summary` the node with the session summary.
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

-- How sessions changed items of the code: `new`, `modified` or `deleted` since the session began.
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

-- A model's answers about a session, if a model is configured. The `kind` is `excerpts` or `summary`.
-- `steps` has the ids of the steps whose excerpts were in the question, and the last step that it
-- covers. `first` is not empty in answers of older versions, which are not used any more. `problem` is
-- the reason why there is no answer.
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

-- The commands that a session ran to test, lint, build and start, in a normalised form, and those that
-- failed because of their environment. `last` is the last known outcome, `problem` why a command of
-- the second kind failed, `replaced_by` what worked then.
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

-- The sessions of a team of agents. `name` is what a teammate is called in the team, empty for the
-- lead; `lead` is the session that leads it, empty as long as that is unknown.
CREATE TABLE session_teams (
    session TEXT NOT NULL,
    team TEXT NOT NULL,
    name TEXT NOT NULL,
    lead TEXT NOT NULL,
    PRIMARY KEY (session, team)
) WITHOUT ROWID;
CREATE INDEX idx_session_teams_lead ON session_teams(lead);

-- What was said in sessions, in passages of a few hundred characters. `source` is `user`, `agent` or
-- `pasted`; `worth`, in thousandths, is how likely a later session needs it.
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

-- What ctx itself did and what it cost, for measuring how well it works.
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

-- The commands in the answers of agents. Each runs once. The id consists of the session, the message
-- and the position in it. `problem` is the reason why a command was not executed.
CREATE TABLE commands (
    id TEXT PRIMARY KEY,
    session TEXT NOT NULL,
    name TEXT NOT NULL,
    at TEXT NOT NULL,
    problem TEXT
);
CREATE INDEX idx_commands_session ON commands(session);

-- Prepared contexts. A context is valid as long as `stamp` is the last stamp of `records` and
-- `settings` matches the configuration.
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

-- Where `ctx sync` sends the graph, and how the last attempt went. `failures` counts attempts that
-- failed since. The id is that of this replica in the target. Its other settings are in files.
CREATE TABLE sync_targets (
    id TEXT PRIMARY KEY,
    synced_at TEXT,
    tried_at TEXT NOT NULL,
    failures INTEGER NOT NULL,
    problem TEXT NOT NULL
) WITHOUT ROWID;

-- The batches in a target that this store has read or written. `replica` wrote it.
CREATE TABLE sync_batches (
    id INTEGER PRIMARY KEY,
    target TEXT NOT NULL,
    name TEXT NOT NULL,
    replica TEXT NOT NULL
);
CREATE UNIQUE INDEX idx_sync_batches_name ON sync_batches(name, target);

-- The records of each batch. `version` is empty, or the scrub that changed the record there.
CREATE TABLE sync_records (
    batch INTEGER NOT NULL,
    record TEXT NOT NULL,
    version TEXT NOT NULL,
    PRIMARY KEY (batch, record),
    FOREIGN KEY (batch) REFERENCES sync_batches(id) ON DELETE CASCADE
) WITHOUT ROWID;
CREATE INDEX idx_sync_records_record ON sync_records(record, batch);

-- The scrubs of records that other replicas may have. `replaces` lists the earlier versions, and
-- `depth` is their number: the deepest version replaces all others.
CREATE TABLE sync_versions (
    record TEXT NOT NULL,
    version TEXT NOT NULL,
    depth INTEGER NOT NULL,
    replaces TEXT NOT NULL,
    PRIMARY KEY (record, version)
) WITHOUT ROWID;

-- The replicas that share a target: each is one machine of the user.
CREATE TABLE sync_replicas (
    target TEXT NOT NULL,
    replica TEXT NOT NULL,
    machine TEXT NOT NULL,
    sent_at TEXT NOT NULL,
    has_left INTEGER NOT NULL,
    PRIMARY KEY (target, replica)
) WITHOUT ROWID;

-- The scrubs that each replica has applied.
CREATE TABLE sync_confirmed (
    target TEXT NOT NULL,
    replica TEXT NOT NULL,
    version TEXT NOT NULL,
    PRIMARY KEY (target, replica, version)
) WITHOUT ROWID;

-- The changes that came from other replicas: `ctx undo` without arguments does not undo them.
CREATE TABLE sync_changes (
    change TEXT PRIMARY KEY
) WITHOUT ROWID;

-- Edits of a text on two machines: the author of `record` had not read `unread`, an earlier edit.
CREATE TABLE sync_unread (
    record TEXT NOT NULL,
    unread TEXT NOT NULL,
    PRIMARY KEY (record, unread)
) WITHOUT ROWID;

-- ctx searches in `terms`; other SQLite clients can search in `content`.
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
