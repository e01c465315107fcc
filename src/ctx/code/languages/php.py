"""PHP: definitions."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ctx.code.languages.definitions import Definitions, children

if TYPE_CHECKING:
    from tree_sitter import Node

_ACCESSES = {b"public": "public", b"protected": "super", b"private": "private"}


class Php(Definitions):
    name = "php"
    query_file = "php.scm"
    separator = "\\"
    accesses = _ACCESSES

    def names(self, node: "Node") -> Iterable["Node"]:
        if node.type == "const_declaration":
            return children(node, "const_element", "name")
        return super().names(node)


LANGUAGE = Php()
