"""How each language is parsed: a query for its grammar in `<language>.scm`, and a module for what a
query cannot express.

A language module handles only syntax, without other files or the database. `resolve/` determines
what a name means.
"""
