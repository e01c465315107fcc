"""Kotlin: definitions."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ctx.code.languages.definitions import Definitions, children
from ctx.code.source_model import SourceItem

if TYPE_CHECKING:
    from tree_sitter import Node

_BODIES = frozenset({"class_body", "enum_class_body", "function_body", "getter"})
_ENUM = re.compile(rb"\benum\b")

_ACCESSES = {
    b"public": "public",
    b"internal": "crate",
    b"protected": "super",
    b"private": "private",
}


class Kotlin(Definitions):
    name = "kotlin"
    query_file = "kotlin.scm"
    accesses = _ACCESSES
    constants = re.compile(rb"\bconst\b")

    def names(self, node: "Node") -> Iterable["Node"]:
        if node.type == "property_declaration":
            return list(children(node, "variable_declaration", "identifier"))[:1]
        name = node.child_by_field_name("name") or node.child_by_field_name("type")
        return (name,) if name else ()

    def kind(self, kind: str, before: bytes, parent: SourceItem) -> str:
        if kind == "class" and _ENUM.search(before):
            return "enum"
        return super().kind(kind, before, parent)

    def body(self, node: "Node") -> int:
        for child in node.named_children:
            if child.type in _BODIES:
                return child.start_byte
        return node.end_byte


LANGUAGE = Kotlin()
