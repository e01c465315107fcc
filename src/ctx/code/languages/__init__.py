"""How each language is parsed: a query for its grammar in `<language>.scm`, and a module for what a
query cannot express.

A language knows only its own syntax. It knows neither other files nor the database: `resolve/`
finds out what a name means.
"""
