"""C#: definitions."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ctx.code.language import ItemDescription, SourceText
from ctx.code.languages.definitions import Definitions, children
from ctx.code.source_model import SourceItem

if TYPE_CHECKING:
    from tree_sitter import Node

_OPERATOR = re.compile(rb"\boperator\s*([^\s(]+)")
_OF_THE_TYPE = re.compile(rb"\b(?:const|static)\b")

_ACCESSES = {
    b"public": "public",
    b"protected": "super",
    b"internal": "crate",
    b"private": "private",
}


class CSharp(Definitions):
    name = "csharp"
    query_file = "csharp.scm"
    bodies = ("body", "accessors", "value")
    accesses = _ACCESSES
    unsaid = "crate"
    unsaid_member = "private"
    open_types = ("interface", "enum")
    constants = re.compile(rb"\bconst\b")

    def item(
        self, node: "Node", kind: str, parent: SourceItem, source: SourceText
    ) -> ItemDescription | Iterable[ItemDescription] | None:
        match node.type:
            case "operator_declaration" | "conversion_operator_declaration":
                match = _OPERATOR.search(source.content, node.start_byte, node.end_byte)
                if match is None:
                    return None
                name = f"operator {match.group(1).decode('utf-8', 'replace')}"
                at = match.start()
                access = self.visibility(source.content[node.start_byte : at], kind, parent)
                return ItemDescription(name, at, "method", access, self.body(node))
            case "destructor_declaration":
                end = node.child_by_field_name("name")
                if end is None:
                    return None
                name = f"~{source.text(end)}"
                return ItemDescription(name, end.start_byte, kind, "private", self.body(node))
            case "field_declaration":
                # Instance fields are not items.
                text = source.content[node.start_byte : node.end_byte]
                if not _OF_THE_TYPE.search(text.partition(b"=")[0]):
                    return None
        return super().item(node, kind, parent, source)

    def names(self, node: "Node") -> Iterable["Node"]:
        if node.type == "field_declaration":
            declared = children(node, "variable_declaration", "variable_declarator")
            named = (child.child_by_field_name("name") for child in declared)
            return [name for name in named if name]
        return super().names(node)


LANGUAGE = CSharp()
