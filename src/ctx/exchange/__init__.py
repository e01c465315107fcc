"""Memory in and out, and what to do with a damaged store.

    exchange, intake     export and import of nodes, edges and views
    foreign/             what other programs have written
    integrity            whether the tables are what the records say
    recovery, salvaged   what can be saved from a damaged store
    scrub,
    scrubbed_objects,
    scrub_files,
    scrub_project        a word taken out of everything that was stored

What comes from outside passes the same checks as what a person types.
"""
