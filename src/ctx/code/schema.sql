-- The index of the code of one working tree. It is derived: a file of another version is rebuilt.

CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value
) WITHOUT ROWID;

CREATE TABLE files (
    id INTEGER PRIMARY KEY,
    path TEXT NOT NULL UNIQUE,
    language TEXT,                  -- NULL: unknown
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    ctime_ns INTEGER NOT NULL,
    inode INTEGER NOT NULL,
    settled INTEGER NOT NULL,       -- 0: time stamps are not reliable, compare the content
    hash BLOB,                      -- of its content; NULL until it has been read
    lines INTEGER NOT NULL DEFAULT 0,
    reader INTEGER NOT NULL DEFAULT 0,   -- the version of the language reader
    skipped TEXT,                   -- why it was not parsed; NULL: it was parsed
    problems INTEGER NOT NULL DEFAULT 0,
    resolved INTEGER NOT NULL DEFAULT 1  -- 0: its mentions are not resolved yet
);
CREATE INDEX files_by_change ON files (mtime_ns);
CREATE INDEX files_unresolved ON files (id) WHERE resolved = 0;

-- The id of an item is the id of its file, with its slot in the low 16 bits, so the items of a file
-- are a range. An item keeps its slot as long as it exists, whatever else changes in the file.
CREATE TABLE items (
    id INTEGER PRIMARY KEY,
    parent INTEGER,                 -- NULL for the file itself, which is an item too
    kind INTEGER NOT NULL,          -- position in vocabulary.KINDS
    name TEXT NOT NULL,
    visibility INTEGER NOT NULL,    -- position in vocabulary.VISIBILITIES
    start INTEGER NOT NULL,
    stop INTEGER NOT NULL,
    line INTEGER NOT NULL,
    end_line INTEGER NOT NULL,
    signature TEXT NOT NULL,
    doc TEXT NOT NULL,              -- the first sentence
    body_hash BLOB NOT NULL
);
CREATE INDEX items_by_name ON items (name);

-- The facts of a file that are needed to resolve names in it or through it.
CREATE TABLE facts (
    file_id INTEGER PRIMARY KEY,
    slots BLOB,                     -- the slot of each item; NULL if the slots are in order
    facts BLOB NOT NULL,            -- see resolve/facts.py
    targets BLOB                    -- the target of each import: the id of an item, or 0
);

-- The mentions of a file, and the hashes of all names in them, which show which files must be
-- resolved again when a name is added or removed.
CREATE TABLE mentioned (
    file_id INTEGER PRIMARY KEY,
    hashes BLOB NOT NULL,
    mentions BLOB NOT NULL
);

CREATE TABLE edges (
    source INTEGER NOT NULL,
    label INTEGER NOT NULL,         -- position in vocabulary.LABELS
    target INTEGER NOT NULL,
    confidence INTEGER NOT NULL,    -- position in vocabulary.CONFIDENCES
    line INTEGER NOT NULL,
    times INTEGER NOT NULL,
    PRIMARY KEY (source, label, target)
) WITHOUT ROWID;

-- The content of the manifests.
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
    manifest TEXT NOT NULL,         -- of the dependent package
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    optional INTEGER NOT NULL,
    features TEXT NOT NULL,         -- separated by spaces
    requirement TEXT NOT NULL,
    target TEXT NOT NULL,           -- the manifest of the required package; empty: external
    PRIMARY KEY (manifest, name, kind, requirement)
) WITHOUT ROWID;
CREATE INDEX dependencies_by_name ON dependencies (name);
