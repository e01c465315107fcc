"""Context: what an agent is given at a hook, in which order, at what cost.

    layers, session_layers   what a session is given when it starts; layer_lines: as lines
    contexts                 a context as a value, and the table that keeps it ready
    compose                  entries in, one markdown text out that never exceeds its budget
    entries, default_view    nodes of the graph as entries, and which of them
    where_you_were           what is given back after a compaction
    relevance                what comes with a prompt
    beside                   what an agent is given of a project's store
    limits, page             what a client takes at most, and a page of it

Nothing here writes. What a hook loads of it knows nothing that a hook could not afford.
"""
