"""Search in texts: by the words of a question, and by vectors of its meaning.

`ctx.terms` turns a text into terms; `question`, `entities` and `dates` read what a question asks
for. An `Embedder` turns texts into vectors: the built-in one is a table (`static_embedder`),
another may be a server (`embedding_server`). `vectors` stores them in a derived file and finds
the nearest.

This package handles texts and keys. What they stand for (nodes, files, narrative) is up to the
callers. Vectors are optional: without them, search uses words.
"""
