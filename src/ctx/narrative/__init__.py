"""Narrative: the markdown that people read and edit, under `.ctx/narrative/`.

A document has a title, a comment with metadata and a body (`documents`, with `metadata` and
`blocks`). Its path says what part it plays (`roles`), which stream it belongs to (`streams`) and
which number people know it by (`naming`). `scan` finds the documents and reads them; `files` writes
them. `log` is what each commit and each note leaves behind, in `words` that cannot break the page;
`projection` shows all decisions at once; `snapshots` keeps documents in a commit. `sections` is
what search sees of a document, and `index` finds it by its words.

Files that came with a clone are a stranger's: reading never fails on what they say, no link is
followed, nothing outside the folder is touched. A person's words are never written over: what
changes a document has seen it first, and leaves the rest of it as it was, to the byte.

Nothing here knows nodes, records or sessions; redaction is the business of whoever writes.
"""
