"""TypeScript."""

from ctx.code.languages.ecmascript import EcmaScript


class TypeScript(EcmaScript):
    name = "typescript"
    query_file = "typescript.scm"


LANGUAGE = TypeScript()
