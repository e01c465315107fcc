-- What is known about the code of one working tree. Derived: a file of another version is made anew.

CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value
) WITHOUT ROWID;

CREATE TABLE files (
    id INTEGER PRIMARY KEY,
    path TEXT NOT NULL UNIQUE,
    language TEXT,                  -- NULL: none that is known
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    ctime_ns INTEGER NOT NULL,
    inode INTEGER NOT NULL,
    settled INTEGER NOT NULL,       -- 0: its times cannot be relied on, its content must be looked at
    hash BLOB,                      -- of its content; NULL until it has been read
    lines INTEGER NOT NULL DEFAULT 0,
    reader INTEGER NOT NULL DEFAULT 0,   -- the version of what read it
    skipped TEXT,                   -- why nothing was read out of it; NULL: it was
    problems INTEGER NOT NULL DEFAULT 0,
    resolved INTEGER NOT NULL DEFAULT 1  -- 0: what it mentions has to be looked up
);
CREATE INDEX files_by_change ON files (mtime_ns);
CREATE INDEX files_unresolved ON files (id) WHERE resolved = 0;

-- The id of an item is the id of its file, and its slot in the low 16 bits: the items of a file are
-- a range. An item keeps its slot while it is there, whatever else happens to the file.
CREATE TABLE items (
    id INTEGER PRIMARY KEY,
    parent INTEGER,                 -- NULL for the file itself, which is an item too
    kind INTEGER NOT NULL,          -- its place in model.KINDS
    name TEXT NOT NULL,
    visibility INTEGER NOT NULL,    -- its place in model.VISIBILITIES
    start INTEGER NOT NULL,
    stop INTEGER NOT NULL,
    line INTEGER NOT NULL,
    end_line INTEGER NOT NULL,
    signature TEXT NOT NULL,
    doc TEXT NOT NULL,              -- its first sentence
    body_hash BLOB NOT NULL
);
CREATE INDEX items_by_name ON items (name);

-- What must be known of a file to look up what it, or another, mentions.
CREATE TABLE facts (
    file_id INTEGER PRIMARY KEY,
    slots BLOB,                     -- the slot of each item; NULL where it is their order
    facts BLOB NOT NULL,            -- see resolve/facts.py
    targets BLOB                    -- where each of its imports leads: the id of an item, or 0
);

-- What a file speaks of, and the hashes of all names in that: who has to be looked at when one comes
-- or goes.
CREATE TABLE mentioned (
    file_id INTEGER PRIMARY KEY,
    hashes BLOB NOT NULL,
    mentions BLOB NOT NULL
);

CREATE TABLE edges (
    source INTEGER NOT NULL,
    label INTEGER NOT NULL,         -- its place in model.LABELS
    target INTEGER NOT NULL,
    confidence INTEGER NOT NULL,    -- its place in model.CONFIDENCES
    line INTEGER NOT NULL,
    times INTEGER NOT NULL,
    PRIMARY KEY (source, label, target)
) WITHOUT ROWID;

-- What the manifests say.
CREATE TABLE packages (
    manifest TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    ecosystem TEXT NOT NULL,
    version TEXT NOT NULL,
    root TEXT NOT NULL,
    targets TEXT NOT NULL           -- JSON: name, kind and path of each
) WITHOUT ROWID;
CREATE INDEX packages_by_name ON packages (name);

CREATE TABLE dependencies (
    manifest TEXT NOT NULL,         -- of the package that needs it
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    optional INTEGER NOT NULL,
    features TEXT NOT NULL,         -- separated by spaces
    requirement TEXT NOT NULL,
    target TEXT NOT NULL,           -- the manifest of the package that is meant; empty: elsewhere
    PRIMARY KEY (manifest, name, kind, requirement)
) WITHOUT ROWID;
CREATE INDEX dependencies_by_name ON dependencies (name);
