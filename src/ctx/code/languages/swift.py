"""Swift: definitions."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ctx.code.languages.definitions import Definitions

if TYPE_CHECKING:
    from tree_sitter import Node

_WITHOUT_A_NAME = {
    "init_declaration": "init",
    "deinit_declaration": "deinit",
    "subscript_declaration": "subscript",
}

_MOST_OPEN_COMMENTS = 50
_ACCESSES = {
    b"open": "public",
    b"public": "public",
    b"package": "crate",
    b"internal": "crate",
    b"fileprivate": "private",
    b"private": "private",
}


class Swift(Definitions):
    name = "swift"
    query_file = "swift.scm"
    bodies = ("body", "computed_value", "value")
    accesses = _ACCESSES
    unsaid = unsaid_member = "crate"
    constants = re.compile(rb"\blet\b")

    def readable(self, content: bytes) -> bytes:
        """The grammar takes very long for comments that are opened again and again."""
        opened = content.count(b"/*")
        if opened > _MOST_OPEN_COMMENTS:
            without = content.replace(b"/*", b"  ")
            if opened - without.count(b"*/") > _MOST_OPEN_COMMENTS:
                return without
        return content

    def names(self, node: "Node") -> Iterable["Node"]:
        word = _WITHOUT_A_NAME.get(node.type)
        if word is None:
            return super().names(node)
        # They are named after their keyword.
        return [child for child in node.children if child.type == word]

    def body(self, node: "Node") -> int:
        if node.type == "subscript_declaration":
            for child in node.named_children:
                if child.type == "computed_property":
                    return child.start_byte
        return super().body(node)


LANGUAGE = Swift()
