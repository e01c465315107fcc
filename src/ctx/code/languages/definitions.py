"""The base of languages of which only the definitions are read.

Their calls and imports are unknown.
"""

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from ctx.code.language import ItemDescription, Language, SourceText
from ctx.code.source_model import SourceItem

if TYPE_CHECKING:
    from tree_sitter import Node

TYPES = frozenset({"class", "struct", "enum", "trait", "interface", "impl"})
_IN_FUNCTIONS = frozenset({"function", "method"})
_VALUES = frozenset({"const", "static"})


class Definitions(Language):
    """The query finds the items; the methods return name, body and visibility."""

    bodies: tuple[str, ...] = ("body",)
    """The fields of a node where a body can begin."""
    accesses: Mapping[bytes, str] = MappingProxyType({})
    """The modifiers that determine the visibility."""
    unsaid = unsaid_member = "public"
    """The default visibility, at the top level and inside of a type."""
    open_types: tuple[str, ...] = ("interface",)
    """Types whose members have the visibility of the type."""
    constants: re.Pattern[bytes] | None = None
    """Matches what precedes the name of a constant."""

    def __init__(self) -> None:
        super().__init__()
        words = b"|".join(map(re.escape, self.accesses))
        self._access_words = re.compile(rb"\b(?:" + words + rb")\b") if words else None

    def item(
        self, node: "Node", kind: str, parent: SourceItem, source: SourceText
    ) -> ItemDescription | Iterable[ItemDescription] | None:
        if kind in _VALUES and parent.kind in _IN_FUNCTIONS:
            return None
        items = []
        for name_node in self.names(node):
            at = name_node.start_byte
            before = source.content[node.start_byte : at]
            name, bases = self.name_and_owner(source.text(name_node))
            own = self.kind(kind, before, parent)
            if bases:
                own = "method"
            access = self.visibility(before, own, parent)
            body = self.body(node)
            if own in _VALUES:
                equals = source.content.find(b"=", name_node.end_byte, body)
                body = equals if equals >= 0 else body
            body -= source.content[body - 1 : body] == b";"
            items.append(ItemDescription(name, at, own, access, body, "", bases))
        return items or None

    def names(self, node: "Node") -> Iterable["Node"]:
        """The nodes of the names that a definition introduces."""
        name = node.child_by_field_name("name")
        return (name,) if name else ()

    def name_and_owner(self, text: str) -> tuple[str, tuple[str, ...]]:
        """A name, and the type that it is written as a member of."""
        return text, ()

    def kind(self, kind: str, before: bytes, parent: SourceItem) -> str:
        if kind == "function" and parent.kind in TYPES:
            return "method"
        if kind == "static" and self.constants and self.constants.search(before):
            return "const"
        return kind

    def visibility(self, before: bytes, kind: str, parent: SourceItem) -> str:
        words = self._access_words.findall(before) if self._access_words else []
        if words:
            # The last one: an earlier one may be the argument of an annotation.
            return self.accesses[words[-1]]
        if parent.kind in TYPES:
            return "public" if parent.kind in self.open_types else self.unsaid_member
        return "public" if kind == "module" else self.unsaid

    def body(self, node: "Node") -> int:
        for field in self.bodies:
            body = node.child_by_field_name(field)
            if body is not None:
                return body.start_byte
        return node.end_byte


def children(node: "Node", *types: str) -> Iterable["Node"]:
    """The children of some types, then theirs: a path into the tree."""
    nodes = [node]
    for type_ in types:
        nodes = [
            child for parent in nodes for child in parent.named_children if child.type == type_
        ]
    return nodes
