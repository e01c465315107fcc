"""Narrative: the markdown that people read and edit, under `.ctx/narrative/`.

A document has a title, a metadata comment and a body (`document_format`, with `document_metadata`
and `markdown_blocks`). Its path determines its role (`document_roles`), its stream (`streams`) and
its number (`document_names`). `narrative_scan` finds and reads documents; `narrative_files` writes
them. `log_files` writes the entry of each commit and note; `log_text` escapes other people's text
in it. `decisions_page` lists all decisions; `narrative_snapshots` stores documents in a commit.
`narrative_index` splits documents into sections and finds them by their words.

Files from a clone are untrusted: reading never fails on their content, links are not followed, and
nothing outside the folder is touched. User text is never overwritten: a writer reads the document
first and leaves the rest of it unchanged, byte for byte.

This package contains nothing about nodes, records or sessions. Callers are responsible for
redaction.
"""
