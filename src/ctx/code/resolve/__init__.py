"""What the names in a file mean: imports to files and items, calls and references to items.

`world` has the facts of all files, loaded on demand. `evaluator` follows an expression from name to
name, the same way for every language. The differences between languages, above all where an import
leads, are in `<language>_rules.py`, as a subclass of `rules.ResolutionRules`.

This package reads the index and writes nothing.
"""
