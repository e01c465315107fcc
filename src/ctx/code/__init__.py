"""The repository as code: its files, what is in them, and how they hang together.

Files are listed, read by a grammar of their language (`languages/`), and resolved against each
other (`resolve/`). What comes of it lies in one derived file, `code.db`: deleting it loses nothing.

It knows files, git and the grammars. It does not know memory; the two meet as ids in `packs`.
"""
