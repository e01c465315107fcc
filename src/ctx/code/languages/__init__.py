"""How each language is read: a query for its grammar in `<language>.scm`, and beside it what a
query cannot say.

A language knows its own syntax alone. It knows neither other files nor the database: what a name
means is for `resolve/` to find out.
"""
