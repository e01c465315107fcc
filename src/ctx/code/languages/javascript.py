"""JavaScript, with or without JSX."""

from ctx.code.languages.ecmascript import EcmaScript


class JavaScript(EcmaScript):
    name = "javascript"
    query_file = "javascript.scm jsx.scm"


LANGUAGE = JavaScript()
