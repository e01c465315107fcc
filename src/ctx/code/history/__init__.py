"""The git history of a project: which commits touched which files, and their messages.

It contains the newest commits reachable from HEAD, up to a limit. `history_refresh` reads
them from git and updates the tables, `commit_queries` reads the tables.

Paths are relative to the project's root, which may be a folder inside the checkout. A file keeps
its history when it is renamed. The project's own store is excluded, and so are names that cannot be
stored. Authors are not stored.
"""
