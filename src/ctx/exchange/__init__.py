"""Export, import, recovery and scrubbing of memory.

    graph_json           exports a graph as JSON, and compares such a document with a graph
    graph_document       parses such a document
    graph_stream         reads a large one in parts
    importer             imports nodes, edges and views
    foreign/             reads the formats of other programs
    integrity            checks that the tables match the records
    salvage              reads what is left in a damaged store
    recovery             makes a store of that
    scrub_store          removes a text from the user store
    scrub_files          removes a text from the files beside it
    scrub_objects        removes a text from the objects of a project
    scrub_project        removes a text from a project's store

Imported data passes the same checks as what a person types.
"""
