"""The history of a project: which commits touched which files, and what they said.

It holds the newest commits that HEAD leads to, as many as are asked for, and nothing else.
`log` reads commits from git, `refresh` keeps the tables in step with HEAD, `questions` answers.

Paths are from the project's root, which may be a folder inside the checkout. A file keeps its
history when it is renamed. What lies in the project's own store is left out, and so is what has
a name that cannot be written down. Who wrote a commit is not kept.
"""
