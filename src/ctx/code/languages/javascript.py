"""JavaScript, with or without JSX."""

from ctx.code.languages.ecmascript import EcmaScript


class JavaScript(EcmaScript):
    name = "javascript"
    grammar = ("tree_sitter_javascript", "language")
    query_file = "javascript.scm jsx.scm"


LANGUAGE = JavaScript()
