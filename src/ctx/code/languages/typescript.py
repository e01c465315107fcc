"""TypeScript."""

from ctx.code.languages.ecmascript import EcmaScript


class TypeScript(EcmaScript):
    name = "typescript"
    grammar = ("tree_sitter_typescript", "language_typescript")
    query_file = "typescript.scm"


LANGUAGE = TypeScript()
