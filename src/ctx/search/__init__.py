"""Search in texts: by the words of a question, and by vectors of its meaning.

    question          the words of a question
    boilerplate       what of a pasted issue is left out
    entities          the names, paths and commands in it
    trace_frames      the stack traces in it
    dates             the time that it names; `date_patterns`: how dates are written
    embedders         turns texts into vectors, with one of:
    static_embedder   the built-in table
    embedding_server  a server
    vectors           stores vectors in a derived file and finds the nearest

This package handles texts and keys. What they stand for (nodes, files, narrative) is up to the
callers. Vectors are optional: without them, search uses words.
"""
