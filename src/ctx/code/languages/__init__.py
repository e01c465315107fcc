"""How each language is parsed: a query for its grammar in `<language>.scm`, and a class for what a
query cannot express. The languages of which only the definitions are read share one module.

A language module handles only syntax, without other files or the database. `resolve/` determines
what a name means.
"""
