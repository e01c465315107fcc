"""The repository as code: its files, what they contain, and how they are connected.

Files are listed, parsed with the grammar of their language (`languages/`), and resolved against
each other (`resolve/`). The result is one derived file, `code.db`: deleting it loses nothing.

This package handles files, git and grammars. It contains nothing about memory, which refers to code
by names (`project/anchors.py`). `packs` reads both.
"""
