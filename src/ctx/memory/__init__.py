"""The graph of what is known: nodes, edges, tags and views, and the records that made them.

    model       the values and the vocabulary: types of nodes and edges, tags, tiers
    records     one immutable statement of change each; the only way in which a graph changes
    replay      from the records about a thing to what the thing is now, in any order
    schema.sql  the tables as they are today; migrations.py is how they came to be
    store       the database file of the user store
    graph       reading: nodes, edges, tags, views, history
    graphs      several graphs read as one: a project's and its user's
    changes     writing: one change at a time, through redaction, into records
    succession  which nodes are superseded, and by which
    materialise brings the tables to what the records say
    pending     what one command leaves for a later one
    claims      which command of an agent was done: each once
    receipts    what an agent was given, and why
    event_log   what ctx itself did, and what that cost
    undo        what takes a change back
    census      how much there is of everything
    walk        along the edges: trace, related
    shapes      which of a stranger's records are sound
    history     which commit holds what
    disputes    what was changed on two branches at once
    numbered    nodes by the numbers of their documents
    query/      the query language, from text to one SQL statement

It knows SQLite and objects and nothing above them: no session's life, no command. What is shown
to an agent, and in which order, is decided in `context` and `packs`; what a verb such as
`supersede` or `summarize` means is in `operations`.

It does not know `code`, `narrative` or `search`, its neighbours. They meet as ids.
"""
