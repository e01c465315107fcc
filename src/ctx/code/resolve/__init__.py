"""What the names in a file mean: imports to files and items, calls and references to items.

`world` is what is known of all files, loaded as it is needed. `evaluate` follows an expression
from name to name, the same way for every language. What differs between languages, above all
where an import leads, is in `resolve/<language>.py`, as a class of `rules.Rules`.

It reads the index and writes nothing.
"""
