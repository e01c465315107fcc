"""Finding texts by what they say: the words of a question, and vectors for what it means.

A text becomes terms in `ctx.terms`; what a question asks for is read in `question`, `entities` and
`times`. An `Embedder` turns texts into vectors: the one that comes
with ctx is a table (`table`), another may be a server (`remote`). `vectors` keeps them in a
derived file and finds the nearest.

It knows texts and keys, and not what they stand for: nodes, files and narrative are the business
of those who ask. Nothing here is needed to answer: without vectors, words find everything.
"""
