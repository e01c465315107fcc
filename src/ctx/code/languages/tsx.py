"""TypeScript with JSX."""

from ctx.code.languages.ecmascript import EcmaScript


class Tsx(EcmaScript):
    name = "tsx"
    query_file = "typescript.scm jsx.scm"


LANGUAGE = Tsx()
