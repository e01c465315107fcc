"""TypeScript with JSX."""

from ctx.code.languages.ecmascript import EcmaScript


class Tsx(EcmaScript):
    name = "tsx"
    grammar = ("tree_sitter_typescript", "language_tsx")
    query_file = "typescript.scm jsx.scm"


LANGUAGE = Tsx()
