"""The memory graph: nodes, edges, tags and views, and the records they are made of.

    model       the values and the vocabulary: types of nodes and edges, tags, tiers
    records     immutable statements of change; the only way a graph changes
    replay      computes the current state of a node from its records, in any order
    schema.sql  the current tables; migrations.py creates them step by step
    user_store  opens the database file of the user store
    graph       reads nodes, edges, tags, views and history
    graphs      reads several graphs as one: the project's and the user's
    changes     writes one change at a time: redacts it and records it
    superseded  computes `superseded_by` from the SUPERSEDES edges
    materialise updates the tables from the records
    pending     values one command stores for a later one
    idempotency_keys
                ensures that each command of an agent is carried out once
    receipts    what an agent was given, and why
    event_log   what ctx itself did, and what it cost
    inverse_changes
                the records that undo a change
    stats       counts of nodes, edges, tags and tokens
    walk        follows edges: trace, related
    lookups     single statements that find nodes by tag, key, path or age
    short_ids   the shortest unambiguous prefix of an id
    batch_lookup
                reads what a store has about the items of a batch, in a few statements
    written_records
                records that were just written, if they are all that is known about something
    sources     who said what a node says
    mentions    which nodes mention the files and items of the code
    code_anchors
                what a node says about the code, and whether it still holds
    learning_confidence
                how confident a learning is at a moment
    valid_records
                checks records that come with a repository
    history     which commit holds which records
    replicas    which batches and records the targets of `ctx sync` have
    record_versions
                the versions that scrubs give to records
    record_projects
                the projects that nodes belong to
    conflicts   fields that were edited on two branches at once
    documents_by_number
                finds a node by the number of its document
    query/      the query language: from text to one SQL statement

The package knows SQLite, redaction and words, but no files and no hosts. `context` and `packs`
decide what an agent is shown and in which order. `operations` defines verbs such as `supersede` and
`summarize`.

It does not import `code`, `narrative` or `search`. They refer to each other by id.
"""
