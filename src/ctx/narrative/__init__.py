"""Narrative: the markdown that people read and edit, under `.ctx/narrative/`.

It knows documents, what role a document plays and which stream it belongs to. A person's file
is read and never rewritten.
"""
